import type { MemberCluster } from '../../api/member-cluster.ts';
import type { WorkloadPlacement } from '../../api/workload-placement.ts';
import type { Event, Node, Pod } from '../../kube/core-v1.ts';
import type { CompiledPolicy } from '../../placement/policy-selection.ts';
import type { OwnerChain } from '../../placement/owner-chain.ts';

/** All that is known of a pod and what decides about it. Undefined: the viewer may not know. */
export interface PodFacts {
  pod: Pod;
  /** The pod, its controller, the controller of that, as far as the viewer may know them. */
  chain: OwnerChain;
  /** Wall clock in ms. */
  now: number;
  /** Of the pod, in any order. */
  events: readonly Event[] | undefined;
  namespaceLabels: Readonly<Record<string, string>> | undefined;
  members: readonly MemberCluster[] | undefined;
  /** All virtual nodes. */
  nodes: readonly Node[] | undefined;
  policies: readonly CompiledPolicy[] | undefined;
  /** What the scheduler component last found for the workload of the pod; null: there is no such object. */
  placement: WorkloadPlacement | null | undefined;
  /** Whether some manager answers schedulers. */
  schedulerAnswers: boolean | undefined;
  /** Whether some manager works for the member that the pod is bound to; undefined as well: to none. */
  memberServed: boolean | undefined;
  /** Of a pod in a member: what people said when they stopped all moves; undefined as well: they did not. */
  movesStopped?: string | undefined;
  /** Pods of its gang, itself included. */
  gang: readonly Pod[] | undefined;
}

/** The newest Event of a reason. */
export function eventOf(events: readonly Event[] | undefined, ...reasons: string[]): Event | undefined {
  return (events ?? [])
    .filter(({ reason = '' }) => reasons.includes(reason))
    .toSorted((a, b) => (eventTime(a) < eventTime(b) ? 1 : -1))[0];
}

/** RFC 3339; '' when it has none. */
export function eventTime({ lastTimestamp, eventTime: at, firstTimestamp, metadata }: Event): string {
  return lastTimestamp ?? at ?? firstTimestamp ?? metadata.creationTimestamp ?? '';
}
