import { CLUSTER_DEFAULTS, type Failover } from '../api/failover.ts';
import { MIRRORED_CONDITION } from '../api/marks.ts';
import { isReady, isTrue } from '../kube/conditions.ts';
import type { Pod } from '../kube/core-v1.ts';
import type { SurgingSet } from '../placement/placed-pods.ts';
import { STRATEGIES, type Strategy } from './strategies.ts';

type Cluster = NonNullable<Failover['cluster']>;

export function purgeRules(failover: Failover | undefined): Cluster {
  return failover?.cluster ?? CLUSTER_DEFAULTS;
}

/** Whether purgeMode is Never. */
export function staysByPolicy(strategy: Strategy, failover: Failover | undefined): boolean {
  return STRATEGIES[strategy].neverRan !== true && purgeRules(failover).purgeMode === 'Never';
}

/** Whether a replacement should be Ready first (purgeMode Gracefully). Pointless for a pod that is not Ready itself. */
export function goesGracefully(pod: Pod, strategy: Strategy, failover: Failover | undefined): boolean {
  return STRATEGIES[strategy].neverRan !== true && purgeRules(failover).purgeMode === 'Gracefully' && isReady(pod);
}

/** Which of the two stays of a pod whose member was lost: `failover.onMemberLost.onHeal`. */
export type OnHeal = NonNullable<NonNullable<Failover['onMemberLost']>['onHeal']>;

/** What the rules say now; KeepReplacement where the others cannot act. With purgeMode Never nothing more is to go, so the original is not to. */
export function onHealOf(failover: Failover | undefined): OnHeal {
  const { purgeMode } = purgeRules(failover);
  if (purgeMode === 'Never') return 'KeepOriginal';
  const asked = failover?.onMemberLost?.onHeal ?? 'KeepReplacement';
  return purgeMode === 'Directly' ? 'KeepReplacement' : asked;
}

/** Whether it is released, and not evicted, so that it can still be chosen when its member answers again. Pointless for one that never ran there. */
export function waitsForHeal(pod: Pod, strategy: Strategy, failover: Failover | undefined): boolean {
  if (strategy !== 'MemberLost' || onHealOf(failover) === 'KeepReplacement') return false;
  return pod.status?.phase === 'Running' && isTrue(pod, MIRRORED_CONDITION);
}

/**
 * Most pods of one ReplicaSet that are released at a time: a tenth, which is within the tolerance of a HorizontalPodAutoscaler, as
 * that counts them with the others.
 */
export function releasedAtOnce({ replicas }: SurgingSet): number {
  return Math.max(1, Math.ceil(replicas / 10));
}
