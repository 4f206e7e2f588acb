import type { Failover } from '../api/failover.ts';
import { isReady } from '../kube/conditions.ts';
import type { Pod } from '../kube/core-v1.ts';
import type { SurgingSet } from '../placement/placed-pods.ts';
import type { Strategy } from './wanted-move.ts';

type Cluster = NonNullable<Failover['cluster']>;

/** What counts without a policy, and for what a policy leaves out. */
const DEFAULTS: Cluster = { purgeMode: 'Gracefully', gracePeriodSeconds: 600, onTimeout: 'GiveBack' };

export function purgeRules(failover: Failover | undefined): Cluster {
  return failover?.cluster ?? DEFAULTS;
}

/** What goes is of no use where it is, and has rules of its own (`onRefusal`, `onUnschedulable`, the time-out of a gang). */
const GIVING_UP: ReadonlySet<Strategy> = new Set(['RefusedInMember', 'UnschedulableInMember', 'GangTimedOut']);

/** Its policy says that nothing is moved. */
export function staysByPolicy(strategy: Strategy, failover: Failover | undefined): boolean {
  return !GIVING_UP.has(strategy) && purgeRules(failover).purgeMode === 'Never';
}

/** Whether another pod is to be Ready before it goes, where that can be. Nothing is gained by that for one that serves nobody itself. */
export function goesGracefully(pod: Pod, strategy: Strategy, failover: Failover | undefined): boolean {
  return !GIVING_UP.has(strategy) && purgeRules(failover).purgeMode === 'Gracefully' && isReady(pod);
}

/**
 * So many pods of one ReplicaSet are out of it at a time, at most: a tenth, which is what a HorizontalPodAutoscaler, which counts
 * them with the others, overlooks.
 */
export function releasedAtOnce({ replicas }: SurgingSet): number {
  return Math.max(1, Math.ceil(replicas / 10));
}
