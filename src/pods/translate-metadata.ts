import {
  GROUP,
  HOST_LABEL,
  HOST_NAME_ANNOTATION,
  HOST_NAMESPACE_ANNOTATION,
  HOST_UID_ANNOTATION,
  NODE_LABEL,
  UID_LABEL,
} from '../api/marks.ts';
import type { Pod } from '../kube/core-v1.ts';
import { type JsonRecord, recordOf, without } from '../kube/json-fields.ts';

/** Annotation of a member pod: which of its label and annotation keys came from the host pod. */
export const COPIED_KEYS_ANNOTATION = `${GROUP}/copied-keys`;

/** Fields that belong to the host's API server and controllers, or that the member's will set. */
const HOST_METADATA = [
  'creationTimestamp',
  'deletionGracePeriodSeconds',
  'deletionTimestamp',
  'finalizers',
  'generateName',
  'generation',
  'managedFields',
  'ownerReferences',
  'resourceVersion',
  'selfLink',
  'uid',
] as const;

/** Annotations that only speak to the host: kubectl's record of itself, and what its ReplicaSets look at. */
const HOST_ANNOTATIONS = new Set([
  'kubectl.kubernetes.io/last-applied-configuration',
  'controller.kubernetes.io/pod-deletion-cost',
]);

/** Keys of our own group are ours alone in a member: a user's are left out, so that no mark can be forged. */
export function isCopiedLabel(key: string): boolean {
  return !key.startsWith(`${GROUP}/`);
}

export function isCopiedAnnotation(key: string): boolean {
  return isCopiedLabel(key) && !HOST_ANNOTATIONS.has(key);
}

export function copiedLabels(hostPod: Pod): JsonRecord {
  return only(recordOf(hostPod.metadata.labels), isCopiedLabel);
}

export function copiedAnnotations(hostPod: Pod): JsonRecord {
  return only(recordOf(hostPod.metadata.annotations), isCopiedAnnotation);
}

function only(map: JsonRecord | undefined, wanted: (key: string) => boolean): JsonRecord {
  if (map === undefined) return {};
  return without(
    map,
    Object.keys(map).filter((key) => !wanted(key)),
  );
}

/** Metadata of the member pod, but for the annotation that applied.ts describes. */
export function memberMetadata(
  hostPod: Pod,
  context: { hostId: string; nodeName: string; memberNamespace: string },
  applied: Readonly<Record<string, string>>,
): JsonRecord {
  return {
    ...without(recordOf(hostPod.metadata) ?? {}, HOST_METADATA),
    namespace: context.memberNamespace,
    labels: {
      ...copiedLabels(hostPod),
      [HOST_LABEL]: context.hostId,
      [NODE_LABEL]: context.nodeName,
      [UID_LABEL]: hostPod.metadata.uid,
    },
    annotations: {
      ...copiedAnnotations(hostPod),
      [HOST_NAMESPACE_ANNOTATION]: hostPod.metadata.namespace,
      [HOST_NAME_ANNOTATION]: hostPod.metadata.name,
      [HOST_UID_ANNOTATION]: hostPod.metadata.uid,
      [COPIED_KEYS_ANNOTATION]: copiedKeys(hostPod),
      ...applied,
    },
  };
}

/** Label keys, a semicolon, annotation keys; neither kind of key can hold a comma or a semicolon. */
export function copiedKeys(hostPod: Pod): string {
  return [copiedLabels(hostPod), copiedAnnotations(hostPod)].map((map) => Object.keys(map).join(',')).join(';');
}

/** The keys that {@link copiedKeys} wrote on a member pod. */
export function readCopiedKeys(memberPod: Pod): { labels: string[]; annotations: string[] } {
  const [labels = '', annotations = ''] = (memberPod.metadata.annotations?.[COPIED_KEYS_ANNOTATION] ?? '').split(';');
  const keys = (text: string): string[] => text.split(',').filter((key) => key !== '' && isCopiedLabel(key));
  return { labels: keys(labels), annotations: keys(annotations) };
}
