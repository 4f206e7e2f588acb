import { UID_LABEL } from '../api/marks.ts';
import type { Pod } from '../kube/core-v1.ts';
import { mirroredUid } from './host-status.ts';

/** Which of our member pods for one key counts, and one that must not be beside it. */
export interface Copies {
  memberPod: Pod | undefined;
  /** One more copy of the same host pod, in another namespace: of a creation that came to something late. */
  second: Pod | undefined;
}

/**
 * Chooses among our member pods `own` that run for one host namespace and name: a former one first, which has to go before
 * all else; of several copies of this very host pod the one that it remembers, else the oldest that is not being deleted.
 */
export function chooseCopy(own: readonly Pod[], hostPod: Pod | undefined): Copies {
  const uid = hostPod?.metadata.uid;
  const former = own.find(({ metadata }) => metadata.labels?.[UID_LABEL] !== uid);
  if (hostPod === undefined || former !== undefined || own.length < 2) {
    return { memberPod: former ?? own[0], second: undefined };
  }
  const remembered = mirroredUid(hostPod);
  const [memberPod, ...others] = own.toSorted(
    (one, other) =>
      Number(other.metadata.uid === remembered) - Number(one.metadata.uid === remembered) ||
      Number(isLeaving(one)) - Number(isLeaving(other)) ||
      bornOf(one) - bornOf(other) ||
      ((one.metadata.uid ?? '') < (other.metadata.uid ?? '') ? -1 : 1),
  );
  // What has another name was not made by us, whatever labels somebody gave it.
  const second = others.find((pod) => pod.metadata.name === hostPod.metadata.name && !isLeaving(pod));
  return { memberPod, second };
}

function isLeaving({ metadata }: Pod): boolean {
  return metadata.deletionTimestamp !== undefined;
}

function bornOf({ metadata: { creationTimestamp } }: Pod): number {
  return creationTimestamp === undefined ? 0 : Date.parse(creationTimestamp);
}
