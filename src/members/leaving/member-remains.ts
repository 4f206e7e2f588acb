import { HOST_LABEL, MEMBER_LABEL, NODE_LABEL } from '../../api/marks.ts';
import { isSystemNamespace } from '../../api/namespace-mapping.ts';
import type { KubeClient } from '../../kube/client.ts';
import { ApiError, isForbidden, isNotFound } from '../../kube/errors.ts';
import type { KubeObject } from '../../kube/object.ts';
import {
  CONFIG_MAPS,
  ENDPOINT_SLICES,
  PERSISTENT_VOLUME_CLAIMS,
  POD_DISRUPTION_BUDGETS,
  PODS,
  type Resource,
  SECRETS,
  SERVICES,
} from '../../kube/resource.ts';
import { SERVICE_IMPORTS } from '../../kube/multicluster-v1.ts';
import { list } from '../../kube/verbs.ts';
import { nameIn, type Remains } from './remains.ts';

export interface MemberRemainsOptions {
  client: KubeClient;
  hostId: string;
  /** Namespaces of the member in which anything of ours can be. */
  namespaces: () => readonly string[];
  /** Whether pods with that virtual node are another MemberCluster's. */
  isOthersNode: (nodeName: string) => boolean;
  /** Whether what that MemberCluster wrote last is another's than this one's. */
  isOthersWork: (member: string) => boolean;
  /** Other MemberClusters stand for the same cluster, or may: they may need the same Services. */
  isShared: () => boolean;
  /** Others are known to: what is theirs is no news. */
  isKnownToBeShared: () => boolean;
  /** Kinds of which something was made there, as far as is known, though the right to look may be gone by now. */
  mayHold: () => { budgets: boolean; services: boolean; imports: boolean; claims: boolean };
  /** Whether a pod of ours there refers to it still. */
  isInUse: (kind: 'ConfigMap' | 'Secret', namespace: string, name: string) => boolean;
}

/**
 * Reads, past all caches, what in a member has our marks, and says where we may not look for copies.
 * @throws whatever else the member answers, and that we may not list pods: the right is there from the start, and pods may run
 */
export async function readMemberRemains(options: MemberRemainsOptions, signal: AbortSignal): Promise<Remains> {
  const { client, hostId, namespaces, isOthersNode, isOthersWork, isShared, isInUse, isKnownToBeShared } = options;
  const pods: string[] = [];
  const copies: string[] = [];
  const data: string[] = [];
  const others: string[] = [];
  const unseen: string[] = [];
  const mayHold = options.mayHold();
  const readAll = async (resource: Resource, namespace?: string): Promise<KubeObject[]> =>
    await readOurs(client, resource, { hostId, namespace, signal });
  /** `may`: there may be some also where we may not look. */
  const read = async (resource: Resource, may: boolean, namespace?: string): Promise<KubeObject[]> => {
    try {
      return await readAll(resource, namespace);
    } catch (error) {
      if (!isForbidden(error)) throw error;
      const where = namespace === undefined ? '' : ` of namespace ${namespace}`;
      // Nothing is ever made in namespaces of the cluster itself.
      const isPossible = may && (namespace === undefined || !isSystemNamespace(namespace));
      if (isPossible) unseen.push(`${resource.kind}s${where} (which may not be listed)`);
      return [];
    }
  };
  for (const { metadata } of await readAll(PODS)) {
    const place = isOthersNode(metadata.labels?.[NODE_LABEL] ?? '') ? others : pods;
    place.push(nameIn('Pod', metadata));
  }
  for (const { metadata } of await read(POD_DISRUPTION_BUDGETS, mayHold.budgets)) {
    const place = isOthersWork(metadata.labels?.[MEMBER_LABEL] ?? '') ? others : copies;
    place.push(nameIn('PodDisruptionBudget', metadata));
  }
  // Another MemberCluster may need the same, which it sees to then.
  const placeOf = ({ metadata }: KubeObject): string[] =>
    isShared() || isOthersWork(metadata.labels?.[MEMBER_LABEL] ?? '') ? others : copies;
  if (mayHold.imports)
    for (const one of await read(SERVICE_IMPORTS, true)) placeOf(one).push(nameIn('ServiceImport', one.metadata));
  for (const namespace of namespaces()) {
    for (const resource of [SERVICES, ENDPOINT_SLICES]) {
      for (const one of await read(resource, mayHold.services || mayHold.imports, namespace))
        placeOf(one).push(nameIn(resource.kind, one.metadata));
    }
    for (const resource of [CONFIG_MAPS, SECRETS]) {
      const kind = resource === SECRETS ? 'Secret' : 'ConfigMap';
      for (const { metadata } of await read(resource, true, namespace)) {
        const isOthers = isOthersWork(metadata.labels?.[MEMBER_LABEL] ?? '') || isInUse(kind, namespace, metadata.name);
        (isOthers ? others : copies).push(nameIn(kind, metadata));
      }
    }
    for (const { metadata } of await read(PERSISTENT_VOLUME_CLAIMS, mayHold.claims, namespace))
      data.push(nameIn('PersistentVolumeClaim', metadata));
  }
  return { pods, copies, others: [...data, ...(isKnownToBeShared() ? [] : others)], unseen };
}

async function readOurs(
  client: KubeClient,
  resource: Resource,
  { hostId, namespace, signal }: { hostId: string; namespace: string | undefined; signal: AbortSignal },
): Promise<KubeObject[]> {
  try {
    const labelSelector = `${HOST_LABEL}=${hostId}`;
    const { items } = await list(client, resource, {
      labelSelector,
      signal,
      ...(namespace === undefined ? {} : { namespace }),
    });
    return items;
  } catch (error) {
    if (isNotFound(error)) return [];
    // The member's owner may take the kind away.
    if (resource === SERVICE_IMPORTS && error instanceof ApiError && error.code === 404) return [];
    throw error;
  }
}
