import type { Invariants } from '../api/invariants.ts';
import { HOST_LABEL } from '../api/marks.ts';
import type { KubeClient } from '../kube/client.ts';
import type { Namespace } from '../kube/core-v1.ts';
import { describeError, isForbidden, isNotFound } from '../kube/errors.ts';
import { readListPage } from '../kube/list-page.ts';
import { NAMESPACES, type Resource, resourcePath } from '../kube/resource.ts';
import { get, remove } from '../kube/verbs.ts';
import { namespacedKinds } from './namespaced-kinds.ts';

/** What Kubernetes, and what is often installed in clusters, puts into each namespace by itself. */
const OF_THE_CLUSTER = new Set([
  'configmaps/kube-root-ca.crt',
  'configmaps/openshift-service-ca.crt',
  'configmaps/istio-ca-root-cert',
  'serviceaccounts/default',
]);
/** So many are looked at to find one that is not the cluster's own. */
const LOOK_AT = 5;

export interface NamespaceRemovalOptions {
  client: KubeClient;
  hostId: string;
  invariants: Invariants;
}

/**
 * Removes the namespace that we made in a member, if it is empty: nobody knows what its owner has put there besides, so every kind
 * of object that the cluster knows is asked for.
 * @returns why it stays, in words; undefined: it is gone, or going
 */
export async function removeIfEmpty(
  { client, hostId, invariants }: NamespaceRemovalOptions,
  name: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    const before = await get<Namespace>(client, NAMESPACES, { name }, { signal });
    const { uid, resourceVersion, labels, deletionTimestamp } = before.metadata;
    if (deletionTimestamp !== undefined) return undefined;
    if (labels?.[HOST_LABEL] !== hostId)
      throw invariants.violated('I15', 'deletion of a namespace that is not ours', { name });
    const { kinds, unknown } = await namespacedKinds(client, signal);
    if (unknown.length > 0) return `may hold objects of ${unknown.join(', ')}, whose server does not answer`;
    for (const kind of kinds) {
      const held = await whyNotWithout(client, kind, name, signal);
      if (held !== undefined) return held;
    }
    await remove(client, NAMESPACES, { name }, { uid, resourceVersion }, { signal });
    return undefined;
  } catch (error) {
    signal.throwIfAborted();
    if (isNotFound(error)) return undefined;
    if (isForbidden(error)) return `may not be removed: ${describeError(error)}`;
    throw error;
  }
}

async function whyNotWithout(
  client: KubeClient,
  kind: Resource,
  namespace: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    const path = resourcePath(kind, namespace);
    const answer = await client.request({ path, query: { limit: LOOK_AT }, signal });
    const { items, next } = readListPage({ cluster: client.cluster, method: 'GET', path }, kind, answer);
    const held = items.find(({ metadata }) => !OF_THE_CLUSTER.has(`${kind.plural}/${metadata.name}`));
    if (held !== undefined) return `holds ${kind.kind} ${held.metadata.name}`;
    return next === '' ? undefined : `holds ${kind.plural}`;
  } catch (error) {
    if (isForbidden(error)) {
      const full = kind.group === '' ? kind.plural : `${kind.plural}.${kind.group}`;
      return `may hold ${full}, which we may not list there`;
    }
    if (isNotFound(error)) return undefined;
    throw error;
  }
}
