import { isActive } from '../api/pod-phase.ts';
import { releasedFrom } from '../api/released.ts';
import { isReady } from '../kube/conditions.ts';
import type { Pod } from '../kube/core-v1.ts';
import { groupKindOf } from '../kube/owner-references.ts';
import { makesNoMore, replicasOf, type TypedObject } from '../placement/owner-chain.ts';

/**
 * How many pods the controller could make now, and has not. `pods`: those it has, by their references. Undefined where nobody can tell from here: a Job
 * waits ever longer between its tries, and there is work that it does not try again.
 */
export function unmadePods(owner: TypedObject, pods: readonly Pod[]): number | undefined {
  const wanted = makesNoMore(owner) ? 0 : replicasOf(owner);
  if (wanted === undefined) return undefined;
  switch (groupKindOf(owner)) {
    case 'apps/ReplicaSet':
    case '/ReplicationController':
      return Math.max(0, wanted - pods.filter((pod) => isActive(pod) && releasedFrom(pod) === undefined).length);
    case 'apps/StatefulSet':
      return unmadeOfSet(owner, wanted, pods);
    default:
      return undefined;
  }
}

interface StatefulSet {
  readonly spec?: { readonly podManagementPolicy?: string; readonly ordinals?: { readonly start?: number } };
}

/** It makes none of a name that there is, be that pod on its way out for as long as its member does not answer; and in order none after one that is not Ready. */
function unmadeOfSet(set: TypedObject, wanted: number, pods: readonly Pod[]): number {
  const { podManagementPolicy, ordinals } = (set as StatefulSet).spec ?? {};
  const start = ordinals?.start ?? 0;
  const byName = new Map(pods.map((pod) => [pod.metadata.name, pod]));
  let unmade = 0;
  for (let ordinal = start; ordinal < start + wanted; ordinal += 1) {
    const pod = byName.get(`${set.metadata.name}-${String(ordinal)}`);
    if (pod === undefined) unmade += 1;
    else if (podManagementPolicy !== 'Parallel' && !(isActive(pod) && isReady(pod))) break;
  }
  return unmade;
}
