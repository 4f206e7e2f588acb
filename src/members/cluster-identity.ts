import type { KubeClient } from '../kube/client.ts';
import type { Namespace } from '../kube/core-v1.ts';
import { NAMESPACES, resourcePath } from '../kube/resource.ts';
import { malformed } from '../kube/response-body.ts';
import { get } from '../kube/verbs.ts';

/** Whose UID is the identity of a cluster. */
export const IDENTITY_NAMESPACE = 'kube-system';

/**
 * Which clusters one connection to a member has led to, by the UIDs of their kube-system namespaces. Caches that were filled over a
 * connection may hold what any of these said, and no watch takes that back. So one that has led to two clusters, or to another one
 * than the pinned one, is never trusted again, whichever cluster is pinned later: a new one has to take its place.
 */
export class ClusterIdentity {
  readonly #pinned: () => string | undefined;
  /** The pinned one when the connection was made, or else the first that answered. */
  #first: string | undefined;
  #observed: string | undefined;
  #misled = false;

  constructor(pinned: () => string | undefined) {
    this.#pinned = pinned;
    this.#first = pinned();
  }

  /** As seen last; undefined before the first contact. */
  get observed(): string | undefined {
    return this.#observed;
  }

  /** The one that has to answer: the pinned one, or else the first that answered. */
  get expected(): string | undefined {
    return this.#pinned() ?? this.#first;
  }

  /** Not to be trusted any more. */
  get isMisled(): boolean {
    return this.#misled;
  }

  /** Whether the pinned cluster answered, and never another one. False before the first contact: nothing may be written yet. */
  get isPinned(): boolean {
    return !this.#misled && this.#observed !== undefined && this.#observed === this.#pinned();
  }

  /** That cluster answered; returns whether another one did before, or none. */
  saw(uid: string): boolean {
    if (uid === this.#observed) return false;
    this.#first ??= uid;
    if (uid !== this.#first || uid !== (this.#pinned() ?? uid)) this.#misled = true;
    this.#observed = uid;
    return true;
  }
}

/** Whether another cluster answers over the connection, or once did: nothing counts then of what it says of the member. */
export function isAnotherCluster(connection: {
  readonly observedIdentity: string | undefined;
  identityOk(): boolean;
}): boolean {
  return connection.observedIdentity !== undefined && !connection.identityOk();
}

export async function readIdentity(
  client: KubeClient,
  options: { signal: AbortSignal; deadlineMs?: number },
): Promise<string> {
  const namespace = await get<Namespace>(client, NAMESPACES, { name: IDENTITY_NAMESPACE }, options);
  const { uid = '' } = namespace.metadata;
  // It is shown, and is part of a command that administrators may repeat.
  if (/^[-.\w]{1,64}$/.test(uid)) return uid;
  const { cluster } = client;
  const path = resourcePath(NAMESPACES, undefined, IDENTITY_NAMESPACE);
  throw malformed({ cluster, method: 'GET', path }, 'the UID of the namespace is none');
}
