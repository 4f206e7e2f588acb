import { isActive } from '../api/pod-phase.ts';
import { releasedFrom } from '../api/released.ts';
import { isReady } from '../kube/conditions.ts';
import type { Pod } from '../kube/core-v1.ts';
import { madeAt } from './pod-age.ts';

/**
 * How many of the released pods have one in their places that is Ready. Where fewer were Ready at the release than the ReplicaSet wants, that so many
 * are Ready now may be the others that got well.
 *
 * `owned`: pods that the ReplicaSet has; those that came are the ones made since that release, and the youngest of as many as it wants, as the clock that
 * wrote the former may be ahead of the one that wrote the latter. `count`: of the released pods that are still there, but those that wait for a lost member.
 */
export function readySuccessors(released: Pod, count: number, owned: readonly Pod[], replicas: number): number {
  const at = releasedFrom(released)?.at ?? '';
  // Of two of the same second the one that is not Ready may be the one that came.
  const byAge = owned
    .filter(isActive)
    .toSorted((a, b) => madeAt(a).localeCompare(madeAt(b)) || Number(isReady(b)) - Number(isReady(a)));
  const came = byAge.filter((pod, index) => index >= replicas - count || (at !== '' && madeAt(pod) >= at));
  // Some may be in the places of those that are gone.
  return Math.min(count, came.length) - came.filter((pod) => !isReady(pod)).length;
}
