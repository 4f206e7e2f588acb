import { z } from 'zod';
import type { Pod } from '../kube/core-v1.ts';
import { controllerOf } from '../kube/owner-references.ts';
import { RELEASED_ANNOTATION } from './marks.ts';
import { parsed } from './parse-object.ts';

/** The label by which the ReplicaSets of one Deployment tell their pods apart: their selectors ask for it. */
export const TEMPLATE_HASH = 'pod-template-hash';

/** Longest mark that is looked at, in characters. */
const LONGEST = 1_024;

const released = z.object({
  /** What the label was. The first of the fields: admission policies compare the beginning. */
  hash: z
    .string()
    .max(63)
    .regex(/^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$/),
  /** Name of the ReplicaSet. */
  replicaSet: z.string().min(1).max(253),
  uid: z.string().min(1).max(128),
  /** When it was released, as Kubernetes writes times. */
  at: z.iso.datetime(),
  /** How many pods of the ReplicaSet were Ready then, this one and others that were released counted in. */
  ready: z.int().min(0),
  /** Its member did not answer: whether it goes is decided when that does again. */
  lost: z.literal(true).exactOptional(),
});

/** From which ReplicaSet a pod was released. */
export type Released = z.output<typeof released>;

/** The mark of a pod, as it is written. */
export function releasedText({ hash, replicaSet, uid, at, ready, lost }: Released): string {
  return JSON.stringify({ hash, replicaSet, uid, at, ready, lost });
}

/** Undefined also for a mark that says nothing: the pod has the label, or another controller. */
export function releasedFrom({ metadata }: Pod): Released | undefined {
  const text = metadata.annotations?.[RELEASED_ANNOTATION];
  if (text === undefined || text.length > LONGEST || metadata.labels?.[TEMPLATE_HASH] !== undefined) return undefined;
  const found = parsed(released, parsedJson(text));
  if (!found.success) return undefined;
  const controller = controllerOf({ metadata });
  return controller === undefined || controller.uid === found.data.uid ? found.data : undefined;
}

/** A released pod as it was before: it belongs to its ReplicaSet as far as rules and its copy are concerned. Others as they are. */
export function asOwned(pod: Pod): Pod {
  const from = releasedFrom(pod);
  if (from === undefined) return pod;
  const { labels, ownerReferences = [] } = pod.metadata;
  const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: from.replicaSet, uid: from.uid, controller: true };
  const others = ownerReferences.filter(({ uid }) => uid !== from.uid);
  return {
    ...pod,
    metadata: {
      ...pod.metadata,
      labels: { ...labels, [TEMPLATE_HASH]: from.hash },
      ownerReferences: [...others, owner],
    },
  };
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
