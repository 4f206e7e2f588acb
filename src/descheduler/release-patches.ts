import { RELEASED_ANNOTATION } from '../api/marks.ts';
import { type Released, releasedText, TEMPLATE_HASH } from '../api/released.ts';
import type { Pod } from '../kube/core-v1.ts';
import { controllerOf } from '../kube/owner-references.ts';
import { timestamp } from '../kube/timestamps.ts';

/**
 * The merge patch that takes a pod out of its ReplicaSet, which makes another one, while Services go on to choose it: the label
 * that only the ReplicaSet asks for goes, and the pod remembers it. For that version of the pod alone.
 */
export function releasePatch(live: Pod, { ready, at }: { ready: number; at: number }): object | undefined {
  const { uid, resourceVersion, labels } = live.metadata;
  const controller = controllerOf(live);
  const hash = labels?.[TEMPLATE_HASH];
  if (controller === undefined || hash === undefined) return undefined;
  const mark: Released = { hash, replicaSet: controller.name, uid: controller.uid, at: timestamp(at), ready };
  return {
    metadata: {
      uid,
      resourceVersion,
      labels: { [TEMPLATE_HASH]: null },
      annotations: { [RELEASED_ANNOTATION]: releasedText(mark) },
    },
  };
}

/** The merge patch that lets its ReplicaSet adopt it again. */
export function giveBackPatch(live: Pod, { hash }: Released): object {
  const { uid, resourceVersion } = live.metadata;
  return {
    metadata: {
      uid,
      resourceVersion,
      labels: { [TEMPLATE_HASH]: hash },
      annotations: { [RELEASED_ANNOTATION]: null },
    },
  };
}
