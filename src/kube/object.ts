/** The parts of every Kubernetes API object that the client runtime itself looks at; all else passes through untouched. */
export interface ObjectMeta {
  name: string;
  namespace?: string;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  deletionGracePeriodSeconds?: number;
  ownerReferences?: OwnerReference[];
  finalizers?: string[];
}

export interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
}

export interface KubeObject {
  apiVersion?: string;
  kind?: string;
  metadata: ObjectMeta;
}

/** What tells an object and its version from others, for caches that need no more of the metadata. */
export function identifying({ name, namespace, uid, resourceVersion, generation }: ObjectMeta): ObjectMeta {
  return {
    name,
    ...(namespace === undefined ? {} : { namespace }),
    ...(uid === undefined ? {} : { uid }),
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
    ...(generation === undefined ? {} : { generation }),
  };
}

/** Managed fields are most of the bytes of many objects, and nothing here looks at them. */
export function withoutManagedFields<T extends KubeObject>(object: T): T {
  if (!('managedFields' in object.metadata)) return object;
  const { managedFields: _, ...metadata } = object.metadata;
  return { ...object, metadata };
}

/** `namespace/name`, or `name` for cluster-scoped objects: the key that caches and queues use. */
export function keyOf(object: { metadata: { namespace?: string; name: string } }): string {
  return keyFor(object.metadata.namespace, object.metadata.name);
}

export function keyFor(namespace: string | undefined, name: string): string {
  return namespace === undefined ? name : `${namespace}/${name}`;
}

/** The reverse of {@link keyFor}. */
export function splitKey(key: string): { namespace?: string; name: string } {
  const slash = key.indexOf('/');
  return slash < 0 ? { name: key } : { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}

/** '' where it has none yet. */
export function uidOf({ metadata: { uid = '' } }: KubeObject): string {
  return uid;
}

/** Some order that is the same each time, for those that are equal otherwise. */
export function byUid(a: KubeObject, b: KubeObject): number {
  return uidOf(a) < uidOf(b) ? -1 : 1;
}
