import { isActive } from '../api/pod-phase.ts';
import { releasedFrom } from '../api/released.ts';
import { isReady } from '../kube/conditions.ts';
import type { Pod } from '../kube/core-v1.ts';
import { groupKindOf } from '../kube/owner-references.ts';
import { type KeptOwner, makesNoMore, replicasOf, type TypedObject } from '../placement/owner-chain.ts';

/** What a controller has yet to make. */
export interface Unmade {
  /** Pods that it could make now, and has not. */
  readonly count: number;
  /** It makes its pods in order, and none after this one, which ends or is not Ready. */
  readonly waitsFor?: Pod;
}

/**
 * What the controller has yet to make. `pods`: those it has, by their references. Undefined where nobody can tell from here: a Job
 * waits ever longer between its tries, and there is work that it does not try again.
 */
export function unmadePods(owner: TypedObject, pods: readonly Pod[]): Unmade | undefined {
  const wanted = makesNoMore(owner) ? 0 : replicasOf(owner);
  if (wanted === undefined) return undefined;
  switch (groupKindOf(owner)) {
    case 'apps/ReplicaSet':
    case '/ReplicationController': {
      const there = pods.filter((pod) => isActive(pod) && releasedFrom(pod) === undefined).length;
      return { count: Math.max(0, wanted - there) };
    }
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
function unmadeOfSet(set: KeptOwner, wanted: number, pods: readonly Pod[]): Unmade {
  const { podManagementPolicy, ordinals } = set.spec ?? {};
  const first = ordinals?.start ?? 0;
  const byOrdinal = new Map(pods.map((pod) => [ordinalOf(pod, set), pod]));
  const isWanted = (ordinal: number): boolean => ordinal >= first && ordinal < first + wanted;
  if (podManagementPolicy === 'Parallel') return { count: wanted - [...byOrdinal.keys()].filter(isWanted).length };
  for (let ordinal = first; isWanted(ordinal); ordinal += 1) {
    const pod = byOrdinal.get(ordinal);
    if (pod === undefined) return { count: 1 };
    if (!isActive(pod) || !isReady(pod)) return { count: 0, waitsFor: pod };
  }
  return { count: 0 };
}

/** Of a pod of a StatefulSet. NaN: it has none. */
export function ordinalOf({ metadata }: Pod, set: TypedObject): number {
  const prefix = `${set.metadata.name}-`;
  return metadata.name.startsWith(prefix) ? Number.parseInt(metadata.name.slice(prefix.length), 10) : Number.NaN;
}
