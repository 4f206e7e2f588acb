import { releasedFrom, TEMPLATE_HASH } from '../api/released.ts';
import type { Pod } from '../kube/core-v1.ts';
import { keyFor } from '../kube/object.ts';
import { controllerOf, ownerKeyOf } from '../kube/owner-references.ts';
import type { TypedObject } from '../placement/owner-chain.ts';

/**
 * By what a pod is found that is out of its ReplicaSet: one that is released by the UID that it says, and one that nobody has, as one that
 * was given back and is not adopted yet, by its namespace and template.
 */
export function keysOfPodOut(pod: Pod): string[] {
  const released = releasedFrom(pod);
  const { namespace, labels } = pod.metadata;
  if (released !== undefined) return [keyFor(namespace, released.uid)];
  const hash = labels?.[TEMPLATE_HASH];
  return hash === undefined || controllerOf(pod) !== undefined ? [] : [keyFor(namespace, hash)];
}

/** By what those of a ReplicaSet are found. */
export function keysOfPodsOut({ metadata, spec }: TypedObject & { spec?: Spec }): string[] {
  const { namespace } = metadata;
  const own = ownerKeyOf({ metadata });
  const hash = spec?.selector?.matchLabels?.[TEMPLATE_HASH];
  return hash === undefined ? [own] : [own, keyFor(namespace, hash)];
}

interface Spec {
  selector?: { matchLabels?: Readonly<Record<string, string>> };
}
