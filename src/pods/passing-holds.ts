import { MIRRORED_CONDITION } from '../api/marks.ts';
import { conditionOf } from '../kube/conditions.ts';
import type { Pod } from '../kube/core-v1.ts';

/** Why a pod is held back that will be in the member all the same, by itself: its creation may even be under way. */
const PASSING: ReadonlySet<string> = new Set([
  'MemberUnavailable',
  'CreationUnanswered',
  'FormerPodLeaving',
  'DependentsPending',
  'ClaimPending',
]);
/** Its room is kept for so long, in ms: what has not passed by then may last for ever, and others wait for that room. */
const KEPT_MS = 300_000;

/**
 * Until when, in ms since 1970, the room in the member is kept of a bound pod that is not there yet. It is not, where somebody has to
 * do something first, nor for a pod of a DaemonSet that is not to run there. In a member that does not answer nobody else gets it.
 */
export function roomIsKeptUntil(pod: Pod): number {
  const mirrored = conditionOf(pod, MIRRORED_CONDITION);
  if (mirrored?.status !== 'False' || mirrored.reason === 'MemberUnreachable') return Number.POSITIVE_INFINITY;
  if (!PASSING.has(mirrored.reason ?? '')) return Number.NEGATIVE_INFINITY;
  const since = Date.parse(mirrored.lastTransitionTime ?? '');
  return Number.isNaN(since) ? Number.NEGATIVE_INFINITY : since + KEPT_MS;
}

/** Its creation may be carried out still, also when it is being deleted meanwhile. */
export function mayBeMadeStill(pod: Pod): boolean {
  const { status, reason = '' } = conditionOf(pod, MIRRORED_CONDITION) ?? {};
  return status === 'Unknown' || (status === 'False' && ['CreationUnanswered', 'MemberUnavailable'].includes(reason));
}
