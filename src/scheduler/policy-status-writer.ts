import { isFinished } from '../api/pod-phase.ts';
import {
  CLUSTER_PLACEMENT_POLICIES,
  PLACEMENT_POLICIES,
  type PlacementPolicy,
  type PlacementPolicyStatus,
} from '../api/placement-policy.ts';
import type { KubeClient } from '../kube/client.ts';
import { conditionOf } from '../kube/conditions.ts';
import { ifThere } from '../kube/if-there.ts';
import { jsonEqual } from '../kube/json-equal.ts';
import { patch } from '../kube/verbs.ts';
import type { EventRecorder } from '../kube/event-recorder.ts';
import type { HandlerResult } from '../kube/workqueue.ts';
import { policyStatus, type SchedulerNews } from '../placement/policy-conditions.ts';
import { whyOvershadowed } from '../placement/overshadowed.ts';
import { policyWarnings, selectorWarnings } from '../placement/policy-warnings.ts';
import { isMadeForItsNode } from './daemon-pod.ts';
import type { HostView } from './host-view.ts';
import type { KnownPolicy } from './policy-cache.ts';

export interface PolicyStatusWriterOptions {
  host: KubeClient;
  view: HostView;
  /** Whether any kube-scheduler has ever asked about a pod. */
  asked: () => boolean;
  events: Pick<EventRecorder, 'record'>;
  /** Wall clock in ms. */
  clock: () => number;
}

/** A scheduler has had the time to ask about a pod that is so old, in ms. */
const PATIENCE_MS = 30_000;

/** Says on each placement policy whether it is in use, whether schedulers let it act, and what in it contradicts itself or the clusters there are. */
export class PolicyStatusWriter {
  readonly #o: PolicyStatusWriterOptions;

  constructor(options: PolicyStatusWriterOptions) {
    this.#o = options;
  }

  /** `key`: namespace and name, or the name alone of a ClusterPlacementPolicy. Throws what the host answers. */
  async bringUpToDate(key: string, signal: AbortSignal): Promise<HandlerResult> {
    const { host, view, clock } = this.#o;
    const known = view.policies.get(key);
    if (known === undefined) return undefined;
    const scheduler = this.#scheduler(known);
    // Pods get old without a word from anybody.
    const again = scheduler === 'notYet' ? { requeueAfterMs: PATIENCE_MS } : undefined;
    const { metadata, policy, problems, status: before } = known;
    const status = policyStatus({
      generation: metadata.generation ?? 0,
      problems,
      warnings: policy === undefined || problems.length > 0 ? [] : this.#warnings(policy),
      scheduler,
      before,
      now: clock(),
    });
    if (isSame(before, status)) return again;
    const { namespace, name } = metadata;
    const resource = namespace === undefined ? CLUSTER_PLACEMENT_POLICIES : PLACEMENT_POLICIES;
    const how = { type: 'merge', subresource: 'status' } as const;
    await ifThere(patch(host, resource, { namespace, name }, { status }, how, { signal }));
    const effective = conditionOf({ status }, 'Effective');
    const said = conditionOf({ status: before }, 'Effective')?.reason;
    if (effective?.status === 'False' && said !== effective.reason) this.#record(known, effective);
    return again;
  }

  #scheduler(known: KnownPolicy): SchedulerNews {
    if (this.#o.asked()) return 'asks';
    return this.#isPassedBy(known) ? 'passesBy' : 'notYet';
  }

  /** Whether a pod that came after the policy has been there for so long that a scheduler should have asked about it. */
  #isPassedBy({ metadata: { namespace, name, creationTimestamp = '' } }: KnownPolicy): boolean {
    const { view, clock } = this.#o;
    const since = Date.parse(creationTimestamp);
    const kind = namespace === undefined ? 'ClusterPlacementPolicy' : 'PlacementPolicy';
    for (const pod of view.pods.values()) {
      const { metadata, spec } = pod;
      if (namespace !== undefined && metadata.namespace !== namespace) continue;
      if ((spec.schedulingGates?.length ?? 0) > 0 || isFinished(pod)) continue;
      const created = Date.parse(metadata.creationTimestamp ?? '');
      if (Number.isNaN(created) || created < since || clock() - created < PATIENCE_MS) continue;
      const chain = view.owners.chainOf(pod);
      if (isMadeForItsNode(pod, chain)) continue;
      const source = view.selectionOf(pod, chain).chosen?.source;
      if (source?.kind === kind && source.name === name) return true;
    }
    return false;
  }

  #record({ metadata }: KnownPolicy, { reason, message }: { reason: string; message: string }): void {
    const { namespace, name, uid } = metadata;
    const { kind, group, version } = namespace === undefined ? CLUSTER_PLACEMENT_POLICIES : PLACEMENT_POLICIES;
    const object = { apiVersion: `${group}/${version}`, kind, namespace, name, uid };
    this.#o.events.record(object, 'Warning', reason, message);
  }

  #warnings(policy: PlacementPolicy): string[] {
    const { nodes, owners, policies } = this.#o.view;
    const whyUnread = (apiVersion: string, kind: string): string | undefined => owners.whyUnread(apiVersion, kind);
    const holds = (apiVersion: string, kind: string): boolean => owners.holds(apiVersion, kind);
    const isAbsent = (apiVersion: string, kind: string): boolean => owners.isAbsent(apiVersion, kind);
    const inSight = policies.inSight(policy.metadata.namespace ?? '').map((one) => one.policy);
    const overshadowed = whyOvershadowed(policy, inSight);
    return [
      ...(overshadowed === undefined ? [] : [`spec.resourceSelectors: ${overshadowed}`]),
      ...selectorWarnings(policy, { whyUnread, holds, isAbsent }),
      ...policyWarnings(policy, nodes.clusters()),
    ];
  }
}

function isSame(a: PlacementPolicyStatus | undefined, b: PlacementPolicyStatus): boolean {
  return jsonEqual(a, b);
}
