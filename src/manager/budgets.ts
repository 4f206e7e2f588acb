import { hostKeyOf } from '../api/host-key.ts';
import { NODE_LABEL } from '../api/marks.ts';
import { MemberBudgets } from '../budgets/member-budgets.ts';
import { HOST_UID_INDEX } from '../pods/pod-indexes.ts';
import type { ActingMember } from './acting-member.ts';
import type { VirtualNodes } from './virtual-nodes.ts';

/** Disruption budgets of the host in one member. */
export function memberBudgets(acting: ActingMember, nodes: VirtualNodes): MemberBudgets {
  const { services, connection, standing, member, mayWrite, logger } = acting;
  const { hostId, hostBudgets, events, budgetMetrics, informerMetrics, queueMetrics } = services;
  return new MemberBudgets({
    hostId,
    hostBudgets,
    member: connection,
    mode: () => member().spec.disruptionBudgets,
    hostPods: (namespace) => nodes.hostPodsIn(namespace),
    hostPodOf: (copy) => {
      const key = hostKeyOf(copy);
      return key === undefined ? undefined : nodes.get(copy.metadata.labels?.[NODE_LABEL] ?? '')?.bound.get(key);
    },
    copyOf: (uid) => connection.pods.byIndex(HOST_UID_INDEX, uid)[0],
    mayWrite,
    reachable: () => connection.reachable(),
    knowsMember: standing.knowsMember,
    events,
    metrics: budgetMetrics,
    informerMetrics,
    queueMetrics,
    logger,
  });
}
