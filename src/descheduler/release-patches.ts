import { RELEASED_ANNOTATION } from '../api/marks.ts';
import { type Released, releasedText, TEMPLATE_HASH } from '../api/released.ts';
import { costAnnotations } from '../placement/deletion-cost.ts';
import type { Pod } from '../kube/core-v1.ts';
import { controllerOf } from '../kube/owner-references.ts';
import { timestamp } from '../kube/timestamps.ts';

/**
 * Merge patch that releases a pod from its ReplicaSet, which then makes a replacement, while Services keep selecting the pod: it
 * removes `pod-template-hash`, which only the ReplicaSet selects by, and stores it in an annotation. Valid for that resourceVersion only.
 */
export function releasePatch(
  live: Pod,
  { ready, at, lost = false }: { ready: number; at: number; lost?: boolean },
): object | undefined {
  const { uid, resourceVersion, labels } = live.metadata;
  const controller = controllerOf(live);
  const hash = labels?.[TEMPLATE_HASH];
  if (controller === undefined || hash === undefined) return undefined;
  const mark: Released = { hash, replicaSet: controller.name, uid: controller.uid, at: timestamp(at), ready };
  if (lost) mark.lost = true;
  return {
    metadata: {
      uid,
      resourceVersion,
      labels: { [TEMPLATE_HASH]: null },
      annotations: { [RELEASED_ANNOTATION]: releasedText(mark) },
    },
  };
}

/** The merge patch that lets its ReplicaSet adopt it again. `cost`: its deletion cost from then on, if that is to change. */
export function giveBackPatch(live: Pod, { hash }: Released, cost?: number): object {
  const { uid, resourceVersion } = live.metadata;
  return {
    metadata: {
      uid,
      resourceVersion,
      labels: { [TEMPLATE_HASH]: hash },
      annotations: { [RELEASED_ANNOTATION]: null, ...(cost === undefined ? {} : costAnnotations(cost)) },
    },
  };
}

/** The merge patch that gives a pod that deletion cost. Valid for that resourceVersion only. */
export function costPatch(live: Pod, cost: number): object {
  const { uid, resourceVersion } = live.metadata;
  return { metadata: { uid, resourceVersion, annotations: costAnnotations(cost) } };
}
