import { isActive } from '../api/pod-phase.ts';
import { isReady } from '../kube/conditions.ts';
import { replicasOf, type TypedObject } from '../placement/owner-chain.ts';
import type { HostView } from './host-view.ts';

/**
 * Whether a ReplicaSet gets a pod back, and so is about to end another one: one that was released is Ready to be given back, or was given
 * back and is not adopted yet, or the ReplicaSet has one too many. One of these is so in every state that the cache of pods can show between the
 * write that says which pod is to go and the end of that pod, so nobody has to measure time.
 */
export function awaitsEnd(set: TypedObject, view: Pick<HostView, 'podsOf' | 'podsOut'>): boolean {
  if (view.podsOut(set).some((pod) => isActive(pod) && isReady(pod))) return true;
  const owned = view.podsOf(set).filter(isActive).length;
  return owned > (replicasOf(set) ?? Number.POSITIVE_INFINITY);
}
