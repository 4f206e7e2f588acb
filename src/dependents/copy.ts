import { createHash } from 'node:crypto';
import {
  GROUP,
  HOST_LABEL,
  HOST_NAME_ANNOTATION,
  HOST_NAMESPACE_ANNOTATION,
  HOST_UID_ANNOTATION,
  MEMBER_LABEL,
} from '../api/marks.ts';
import { canonicalJson } from '../kube/canonical-json.ts';
import type { PersistentVolumeClaim } from '../kube/volumes.ts';
import type { KubeObject } from '../kube/object.ts';
import { CONFIG_MAPS, PERSISTENT_VOLUME_CLAIMS, type Resource, SECRETS } from '../kube/resource.ts';
import { APPLIED_OVERRIDES_ANNOTATION, readSetKeys } from '../overrides/override-record.ts';
import type { DependentKind } from '../pods/references.ts';

/**
 * Annotation of a copy: hash of everything but metadata in the host's object it was made from, and after a dot one of the
 * override rules that changed it, if there were any.
 */
export const CONTENT_HASH_ANNOTATION = `${GROUP}/content-hash`;

/** What of ours there is in members beside pods. */
export type CopyKind = DependentKind | 'PersistentVolumeClaim';

export const RESOURCES: Readonly<Record<CopyKind, Resource>> = {
  ConfigMap: CONFIG_MAPS,
  Secret: SECRETS,
  PersistentVolumeClaim: PERSISTENT_VOLUME_CLAIMS,
};

/** What is remembered of a copy in the member: all but its content, unless it is a claim. */
export interface CopyRecord extends KubeObject {
  kind: CopyKind;
  immutable: boolean;
  type: string | undefined;
  claim?: Pick<PersistentVolumeClaim, 'spec' | 'status'>;
}
export type DependentCopy = CopyRecord & { kind: DependentKind };
export type ClaimCopy = CopyRecord & Required<Pick<CopyRecord, 'claim'>>;

export function isDependent(copy: CopyRecord): copy is DependentCopy {
  return copy.kind !== 'PersistentVolumeClaim';
}

export function isClaimCopy(copy: CopyRecord): copy is ClaimCopy {
  return copy.claim !== undefined;
}

export function recordOfCopy(kind: CopyKind, raw: KubeObject): CopyRecord {
  const { uid, name, namespace, resourceVersion, labels, annotations, deletionTimestamp } = raw.metadata;
  return {
    kind,
    immutable: 'immutable' in raw && raw.immutable === true,
    type: 'type' in raw && typeof raw.type === 'string' ? raw.type : undefined,
    ...(kind === 'PersistentVolumeClaim' ? { claim: claimOf(raw as PersistentVolumeClaim) } : {}),
    metadata: {
      name,
      ...(namespace === undefined ? {} : { namespace }),
      ...(uid === undefined ? {} : { uid }),
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
      ...(labels === undefined ? {} : { labels }),
      ...(annotations === undefined ? {} : { annotations }),
      ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
    },
  };
}

function claimOf({ spec, status }: PersistentVolumeClaim): CopyRecord['claim'] & object {
  return { spec, ...(status === undefined ? {} : { status }) };
}

/** Where a copy is made, and for whom. */
export interface CopyPlace {
  hostId: string;
  /** Name of the MemberCluster. */
  member: string;
  memberNamespace: string;
}

const hashes = new WeakMap<KubeObject, string>();

/** Hash of an object's content: every field beside metadata, known or not. Cached objects are hashed once. */
export function contentHash(object: KubeObject): string {
  let hash = hashes.get(object);
  if (hash === undefined) {
    const { metadata: _, apiVersion: __, kind: ___, ...content } = object;
    hash = createHash('sha256').update(canonicalJson(content)).digest('base64url').slice(0, 22);
    hashes.set(object, hash);
  }
  return hash;
}

/**
 * The object to write into the member for the host's one: its content, and our marks as metadata. The host's labels and
 * annotations stay behind: they speak to controllers of the host, and last-applied-configuration repeats the content.
 * `former` is the copy to be replaced; what others put on its metadata stays, what override policies put there goes.
 */
export function copyOf(kind: DependentKind, hostObject: KubeObject, place: CopyPlace, former?: CopyRecord): KubeObject {
  const { name, namespace = '', uid = '' } = hostObject.metadata;
  const set = readSetKeys(former?.metadata.annotations?.[APPLIED_OVERRIDES_ANNOTATION]);
  return {
    ...hostObject,
    apiVersion: 'v1',
    kind,
    metadata: {
      name,
      namespace: place.memberNamespace,
      ...(former?.metadata.uid === undefined ? {} : { uid: former.metadata.uid }),
      ...(former?.metadata.resourceVersion === undefined ? {} : { resourceVersion: former.metadata.resourceVersion }),
      labels: {
        ...without(former?.metadata.labels, set.labels),
        [HOST_LABEL]: place.hostId,
        [MEMBER_LABEL]: place.member,
      },
      annotations: {
        ...without(former?.metadata.annotations, [...set.annotations, APPLIED_OVERRIDES_ANNOTATION]),
        [HOST_NAMESPACE_ANNOTATION]: namespace,
        [HOST_NAME_ANNOTATION]: name,
        [HOST_UID_ANNOTATION]: uid,
        [CONTENT_HASH_ANNOTATION]: contentHash(hostObject),
      },
    },
  };
}

function without(map: Record<string, string> | undefined, keys: readonly string[]): Record<string, string> {
  return Object.fromEntries(Object.entries(map ?? {}).filter(([key]) => !keys.includes(key)));
}
