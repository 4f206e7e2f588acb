import { LRUCache } from 'lru-cache';
import { customKindKey } from '../api/custom-kinds.ts';
import { ownersMayNotBeRead } from '../api/owner-rights.ts';
import type { Pod } from '../kube/core-v1.ts';
import type { KubeClient } from '../kube/client.ts';
import { monotonic } from '../kube/clock.ts';
import { ApiError, describeError, isForbidden, isNotFound, isUnknownPath } from '../kube/errors.ts';
import { atMost } from '../kube/lru-limit.ts';
import type { KubeObject, OwnerReference } from '../kube/object.ts';
import { MAX_OWNERS, ownerKind } from '../kube/owner-kinds.ts';
import { controllerOf } from '../kube/owner-references.ts';
import type { KubeRequest } from '../kube/request.ts';
import { type Resource, resourcePath } from '../kube/resource.ts';
import { identitiesOfPod } from '../overrides/owners.ts';
import type { ObjectIdentity, OverrideSubject } from '../overrides/selection.ts';
import type { OwnerKinds } from './owner-kinds.ts';

type Identities = OverrideSubject['identities'];

/** What is read of an owner: never its spec. */
const METADATA_ONLY = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json';
/** Labels of a workload may change; nobody waits for it to the second. */
const FRESH_MS = 60_000;
/** Whoever grants a right waits for what it brings, in ms; so does who mends what serves a kind. */
const UNREAD_MS = 10_000;
/** What serves a kind that is not Kubernetes' own may hang. Less than what makes a member count as slow, which it is not. */
const CUSTOM_MS = 3_000;

interface Owner {
  identity: ObjectIdentity;
  /** Its own controller. */
  above: OwnerReference | undefined;
}

interface Failure {
  readonly error: Error;
  /** When it was asked last, in ms. */
  at: number;
}

export interface PodOwnersOptions {
  host: Pick<KubeClient, 'request'>;
  kinds: Pick<OwnerKinds, 'find' | 'forget'>;
  /**
   * Whether policies for objects of a namespace choose by kinds that are not Kubernetes' own. Else these are not read: what serves
   * them may not answer.
   */
  wantsCustom: (namespace: string) => boolean;
  /** In ms. */
  monotonic?: () => number;
}

/**
 * Who owns pods of the host: their controllers, and the controllers of those, with their labels. Read when asked for, and
 * kept for a minute. Of kinds that are not Kubernetes' own those that may be read, where a policy chooses by such kinds.
 */
export class PodOwners {
  readonly #o: PodOwnersOptions;
  readonly #owners: LRUCache<string, Promise<Owner> | Owner>;
  /** Of what is not Kubernetes' own: of whole kinds by the kind's key, of one object by its own. */
  readonly #failures: LRUCache<string, Failure>;
  readonly #monotonic: () => number;
  readonly #reading = new Set<Promise<void>>();
  #signal: AbortSignal | undefined;

  constructor(options: PodOwnersOptions) {
    this.#o = options;
    const now = options.monotonic ?? monotonic;
    this.#monotonic = now;
    this.#owners = new LRUCache({ ...atMost(10_000), ttl: FRESH_MS, ttlResolution: 0, perf: { now } });
    this.#failures = new LRUCache({ ...atMost(10_000), ttl: FRESH_MS, ttlResolution: 0, perf: { now } });
  }

  /** Lets {@link want} read until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    this.#signal = signal;
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    await Promise.all(this.#reading);
  }

  /** For whoever cannot wait: reads what {@link known} does not know, so that it does when it is asked again. */
  want(pod: Pod): void {
    const signal = this.#signal;
    if (signal === undefined || signal.aborted) return;
    // What fails is tried again with the next question.
    const reading: Promise<void> = this.read(pod, signal)
      .then(() => undefined)
      .catch(() => undefined)
      .finally(() => this.#reading.delete(reading));
    this.#reading.add(reading);
  }

  /** The pod and its owners as far as they were read; undefined when some have to be read first. */
  known(pod: Pod): Identities | undefined {
    const identities: [ObjectIdentity, ...ObjectIdentity[]] = [identitiesOfPod(pod)[0]];
    let above = controllerOf(pod);
    while (above !== undefined && identities.length <= MAX_OWNERS) {
      const owner = this.#isLeftOut(above, pod) ? unreadOwner(above) : this.#owners.get(cacheKeyOf(above, pod));
      if (owner === undefined || owner instanceof Promise) return undefined;
      identities.push(owner.identity);
      above = owner.above;
    }
    return identities;
  }

  /**
   * The same, reading what is not known. Throws what the host answers, but for owners that are gone, which have no labels,
   * and those that may not be read, whose labels stay unknown. What serves custom kinds and fails is not asked again for a while:
   * it would keep those waiting who ask for others.
   */
  async read(pod: Pod, signal: AbortSignal): Promise<Identities> {
    const identities: [ObjectIdentity, ...ObjectIdentity[]] = [identitiesOfPod(pod)[0]];
    let above = controllerOf(pod);
    while (above !== undefined && identities.length <= MAX_OWNERS) {
      const owner = this.#isLeftOut(above, pod) ? unreadOwner(above) : await this.#owner(above, pod, signal);
      identities.push(owner.identity);
      above = owner.above;
    }
    return identities;
  }

  #isLeftOut(owner: OwnerReference, pod: Pod): boolean {
    if (ownerKind(owner) !== undefined) return false;
    return customKindKey(owner) === undefined || !this.#o.wantsCustom(pod.metadata.namespace ?? '');
  }

  /** Pods of one owner come in crowds; the first of them reads it for all. */
  async #owner(reference: OwnerReference, pod: Pod, signal: AbortSignal): Promise<Owner> {
    const key = cacheKeyOf(reference, pod);
    const known = this.#owners.get(key);
    if (known !== undefined && !(known instanceof Promise)) return known;
    this.#throwWhatFailed(reference, key);
    const owner = known ?? this.#fetch(reference, pod, signal);
    if (known === undefined) this.#owners.set(key, owner);
    try {
      const found = await owner;
      const ttl = found.identity.labels === undefined ? UNREAD_MS : FRESH_MS;
      if (this.#owners.peek(key) === owner) this.#owners.set(key, found, { ttl });
      return found;
    } catch (error) {
      if (this.#owners.peek(key) === owner) this.#owners.delete(key);
      throw error;
    }
  }

  /** Once in a while one asks again; the others need not wait for what that one hears. */
  #throwWhatFailed(reference: OwnerReference, key: string): void {
    const now = this.#monotonic();
    const failed = failureKeysOf(reference, key).flatMap((what) => this.#failures.get(what) ?? []);
    const fresh = failed.find(({ at }) => now - at < UNREAD_MS);
    if (fresh !== undefined) throw fresh.error;
    for (const failure of failed) failure.at = now;
  }

  async #fetch(reference: OwnerReference, pod: Pod, signal: AbortSignal): Promise<Owner> {
    const own = ownerKind(reference);
    if (own !== undefined) return await this.#get(reference, own, pod, signal);
    const key = cacheKeyOf(reference, pod);
    const [ofKind = key] = failureKeysOf(reference, key);
    let isFound = false;
    try {
      const found = await this.#o.kinds.find(reference, signal);
      isFound = true;
      const owner =
        'why' in found
          ? unreadOwner(reference, found.why)
          : await this.#get(reference, found.resource, pod, signal, { deadlineMs: CUSTOM_MS, retry: false });
      for (const what of [ofKind, key]) this.#failures.delete(what);
      return owner;
    } catch (error) {
      if (signal.aborted) throw error;
      const { apiVersion, kind } = reference;
      if (isUnknownPath(error)) this.#o.kinds.forget(apiVersion);
      const failure = new Error(`${kind} (${apiVersion}): ${describeError(error)}`, { cause: error });
      // What was answered may be about this one object.
      const what = isFound && error instanceof ApiError ? key : ofKind;
      this.#failures.set(what, { error: failure, at: this.#monotonic() });
      throw failure;
    }
  }

  async #get(
    reference: OwnerReference,
    resource: Resource,
    pod: Pod,
    signal: AbortSignal,
    patience: Pick<KubeRequest, 'deadlineMs' | 'retry'> = {},
  ): Promise<Owner> {
    const { apiVersion, kind, name, uid } = reference;
    const gone: Owner = { identity: { apiVersion, kind, name, labels: {} }, above: undefined };
    try {
      const path = resourcePath(resource, pod.metadata.namespace, name);
      const request = { path, accept: METADATA_ONLY, signal, ...patience };
      const { metadata } = await this.#o.host.request<KubeObject>(request);
      // Another object may have the name by now.
      if (uid !== '' && metadata.uid !== uid) return gone;
      return { identity: { ...gone.identity, labels: metadata.labels ?? {} }, above: controllerOf({ metadata }) };
    } catch (error) {
      if (isNotFound(error)) return gone;
      if (!isForbidden(error)) throw error;
      if (ownerKind(reference) === undefined) return unreadOwner(reference, ownersMayNotBeRead(resource));
      return { ...unreadOwner(reference), above: aboveByName(reference, pod) };
    }
  }
}

function unreadOwner({ apiVersion, kind, name }: OwnerReference, unread?: string): Owner {
  return { identity: { apiVersion, kind, name, labels: undefined, unread }, above: undefined };
}

/** Above a ReplicaSet that may not be read: the Deployment that its pod tells of. */
function aboveByName({ kind }: OwnerReference, pod: Pod): OwnerReference | undefined {
  const [, , above] = identitiesOfPod(pod);
  if (above === undefined || kind !== 'ReplicaSet') return undefined;
  return { apiVersion: above.apiVersion, kind: above.kind, name: above.name, uid: '', controller: true };
}

function cacheKeyOf({ uid, kind, name }: OwnerReference, pod: Pod): string {
  return uid === '' ? `${pod.metadata.namespace}/${kind}/${name}` : uid;
}

/** What may fail of an owner, by kind and as itself; nothing of kinds of Kubernetes. */
function failureKeysOf(reference: OwnerReference, key: string): readonly string[] {
  const kind = ownerKind(reference) === undefined ? customKindKey(reference) : undefined;
  return kind === undefined ? [] : [kind, key];
}
