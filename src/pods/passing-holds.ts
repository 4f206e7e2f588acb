import { MIRRORED_CONDITION } from '../api/marks.ts';
import { conditionOf } from '../kube/conditions.ts';
import type { Pod } from '../kube/core-v1.ts';

/** Why a pod is held back that will be in the member all the same, by itself: its creation may even be under way. */
const PASSING: ReadonlySet<string> = new Set([
  'MemberUnreachable',
  'MemberUnavailable',
  'CreationUnanswered',
  'FormerPodLeaving',
  'DependentsPending',
  'ClaimPending',
]);

/** The pod was not made in the member, for a reason that does not pass by itself: somebody has to do something first. */
export function isHeldForGood(pod: Pod): boolean {
  const mirrored = conditionOf(pod, MIRRORED_CONDITION);
  return mirrored?.status === 'False' && !PASSING.has(mirrored.reason ?? '');
}
