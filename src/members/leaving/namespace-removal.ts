import { InvariantError, type Invariants } from '../../api/invariants.ts';
import { HOST_LABEL } from '../../api/marks.ts';
import type { KubeClient } from '../../kube/client.ts';
import { monotonic } from '../../kube/clock.ts';
import type { Namespace } from '../../kube/core-v1.ts';
import { ApiError, describeError, isForbidden, isNotFound, isTransient } from '../../kube/errors.ts';
import { readListPage } from '../../kube/list-page.ts';
import { NAMESPACES, type Resource, resourcePath } from '../../kube/resource.ts';
import { get, remove } from '../../kube/verbs.ts';
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

/** So long what may pass by itself is tried again before a namespace stays for it, in ms. */
const PATIENCE_MS = 120_000;
/** A failure that was longer ago has nothing to do with this one: a look at many namespaces takes a while, too. In ms. */
const RECENT_MS = 600_000;
/** What API servers answer, too, when nothing is wrong with the kind: credentials that are renewed, a CRD that goes. */
const MAY_PASS = new Set([401, 404, 409, 410]);

export interface NamespaceRemovalOptions {
  client: KubeClient;
  hostId: string;
  invariants: Invariants;
  /** Default: {@link monotonic}. */
  clock?: () => number;
}

/**
 * Removes namespaces that we made in a member, each if it is empty: nobody knows what its owner has put there besides, so every kind
 * of object that the cluster knows is asked for.
 */
export class NamespaceRemoval {
  readonly #o: NamespaceRemovalOptions;
  readonly #clock: () => number;
  /** When what may pass by itself failed first and last, in whichever namespace: else each of many would take its time. */
  #failing: { since: number; last: number } | undefined;

  constructor(options: NamespaceRemovalOptions) {
    this.#o = options;
    this.#clock = options.clock ?? monotonic;
  }

  /**
   * @returns why it stays, in words; undefined: it is gone, or going
   * @throws what may pass by itself, for two minutes; and that the namespace is not ours
   */
  async removeIfEmpty(name: string, signal: AbortSignal): Promise<string | undefined> {
    const { client, hostId, invariants } = this.#o;
    try {
      const before = await get<Namespace>(client, NAMESPACES, { name }, { signal });
      const { uid, resourceVersion, labels, deletionTimestamp } = before.metadata;
      if (deletionTimestamp !== undefined) return undefined;
      if (labels?.[HOST_LABEL] !== hostId)
        throw invariants.violated('I15', 'deletion of a namespace that is not ours', { name });
      const { kinds, unknown } = await namespacedKinds(client, signal);
      if (unknown.length > 0) return `may hold objects of ${unknown.join(', ')}, whose server does not answer`;
      for (const kind of kinds) {
        const held = await this.#whyNotWithout(kind, name, signal);
        if (held !== undefined) return held;
      }
      await remove(client, NAMESPACES, { name }, { uid, resourceVersion }, { signal });
      return undefined;
    } catch (error) {
      signal.throwIfAborted();
      if (isNotFound(error)) return undefined;
      if (isForbidden(error)) return `may not be removed: ${describeError(error)}`;
      if (error instanceof InvariantError || !this.#hasFailedForLong()) throw error;
      return `could not be looked through or removed: ${describeError(error)}`;
    }
  }

  async #whyNotWithout(kind: Resource, namespace: string, signal: AbortSignal): Promise<string | undefined> {
    const { client } = this.#o;
    try {
      const path = resourcePath(kind, namespace);
      const answer = await client.request({ path, query: { limit: LOOK_AT }, signal });
      const { items, next } = readListPage({ cluster: client.cluster, method: 'GET', path }, kind, answer);
      const held = items.find(({ metadata }) => !OF_THE_CLUSTER.has(`${kind.plural}/${metadata.name}`));
      if (held !== undefined) return `holds ${kind.kind} ${held.metadata.name}`;
      return next === '' ? undefined : `holds ${kind.plural}`;
    } catch (error) {
      signal.throwIfAborted();
      const full = kind.group === '' ? kind.plural : `${kind.plural}.${kind.group}`;
      if (isForbidden(error)) return `may hold ${full}, which we may not list there`;
      if (isNotFound(error)) return undefined;
      if (!isFinal(error) && !this.#hasFailedForLong()) throw error;
      return `may hold ${full}, which cannot be listed there: ${describeError(error)}`;
    }
  }

  /** After each failure. Others in between are no success, as another namespace, or kind, may be asked for then. */
  #hasFailedForLong(): boolean {
    const now = this.#clock();
    const known = this.#failing;
    const since = known !== undefined && now - known.last < RECENT_MS ? known.since : now;
    this.#failing = { since, last: now };
    return now - since >= PATIENCE_MS;
  }
}

/** The server will not answer otherwise before somebody changes something. */
function isFinal(error: unknown): boolean {
  return error instanceof ApiError && !isTransient(error) && !MAY_PASS.has(error.code);
}
