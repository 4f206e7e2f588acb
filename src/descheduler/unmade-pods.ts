import { isActive } from '../api/pod-phase.ts';
import { releasedFrom } from '../api/released.ts';
import { isReady } from '../kube/conditions.ts';
import type { Pod } from '../kube/core-v1.ts';
import { groupKindOf } from '../kube/owner-references.ts';
import { type KeptOwner, makesNoMore, replicasOf, type TypedObject } from '../placement/owner-chain.ts';

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

/**
 * It makes none of a name that there is, be that pod on its way out for as long as its member does not answer; and in order one after the other, none
 * after one that is not Ready. It takes as long as it has pods, however many it asks for.
 */
function unmadeOfSet(set: KeptOwner, wanted: number, pods: readonly Pod[]): number {
  const { podManagementPolicy, ordinals } = set.spec ?? {};
  const first = ordinals?.start ?? 0;
  const byOrdinal = new Map(pods.map((pod) => [ordinalOf(pod, set), pod]));
  const isWanted = (ordinal: number): boolean => ordinal >= first && ordinal < first + wanted;
  if (podManagementPolicy === 'Parallel') return wanted - [...byOrdinal.keys()].filter(isWanted).length;
  for (let ordinal = first; isWanted(ordinal); ordinal += 1) {
    const pod = byOrdinal.get(ordinal);
    if (pod === undefined) return 1;
    if (!isActive(pod) || !isReady(pod)) return 0;
  }
  return 0;
}

/** NaN: it has none. */
function ordinalOf({ metadata }: Pod, set: TypedObject): number {
  const prefix = `${set.metadata.name}-`;
  return metadata.name.startsWith(prefix) ? Number.parseInt(metadata.name.slice(prefix.length), 10) : Number.NaN;
}
