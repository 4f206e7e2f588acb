import type { KubeClient } from '../kube/client.ts';
import type { Pod } from '../kube/core-v1.ts';
import type { Informer } from '../kube/informer.ts';
import { OutageDeletions } from '../pods/outages/outage-deletions.ts';
import { TolerationKeeper } from '../pods/outages/toleration-keeper.ts';
import type { ActingMember } from './acting-member.ts';

/**
 * Tolerations that keep pods while no manager serves the node, and Events for pods deleted all the same. Written whether the member
 * answers or not: one that never answered this process may be the very one whose pods are to go. `host`: with the identity of the node.
 */
export function nodeOutages(
  acting: ActingMember,
  { host, nodeName, hostPods }: { host: KubeClient; nodeName: string; hostPods: Informer<Pod> },
): { tolerations: TolerationKeeper; deletions: OutageDeletions } {
  const { services, connection, hostFrozen: frozen, nodesFail: nodeFails, logger } = acting;
  const { events, outageMetrics: metrics, queueMetrics, config } = services;
  const common = { nodeName, hostPods, nodeFails, events, metrics, logger };
  return {
    tolerations: new TolerationKeeper({ ...common, host: services.host, rule: config.outages, frozen, queueMetrics }),
    deletions: new OutageDeletions({ ...common, host, member: connection.name, clock: Date.now }),
  };
}
