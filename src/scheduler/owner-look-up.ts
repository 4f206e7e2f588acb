import { LRUCache } from 'lru-cache';
import type { KubeClient } from '../kube/client.ts';
import { ApiError } from '../kube/errors.ts';
import { atMost } from '../kube/lru-limit.ts';
import { keyFor, type OwnerReference } from '../kube/object.ts';
import type { Resource } from '../kube/resource.ts';
import { list } from '../kube/verbs.ts';

/** Owners known to be gone, at the most. */
const MAX_GONE = 10_000;
/** Look-ups under way: pods may name owners that do not exist as fast as they are made. */
const AT_ONCE = 4;
const TIMEOUT_MS = 5_000;
/** Between two look-ups of one owner, in ms. */
const AGAIN_MS = 2_000;
const LONGEST_NAME = 253;

/**
 * Whether an owner that pods name is there at all, asked of the host past all caches, in the background. Whoever owns a pod was
 * there before it, and no UID comes back, so one that is not there is gone for good.
 */
export class OwnerLookUp {
  readonly #host: KubeClient;
  readonly #resourceOf: (owner: OwnerReference) => Resource | undefined;
  readonly #monotonic: () => number;
  /** UIDs with the namespaces they were asked for in: one of another namespace may be there all the same. */
  readonly #gone = new LRUCache<string, true>(atMost(MAX_GONE));
  /** By the same, when it was begun, in monotonic ms. */
  readonly #asked = new LRUCache<string, number>(atMost(MAX_GONE));
  #underWay = 0;

  constructor(host: KubeClient, resourceOf: (owner: OwnerReference) => Resource | undefined, monotonic: () => number) {
    this.#host = host;
    this.#resourceOf = resourceOf;
    this.#monotonic = monotonic;
  }

  isGone({ name, uid }: OwnerReference, namespace: string | undefined): boolean {
    return !mayBeName(name) || this.#gone.has(keyFor(namespace, uid));
  }

  /** Begins to ask, if that is not being done and there are not too many questions; tells when the owner is gone. */
  ask(owner: OwnerReference, namespace: string | undefined, whenGone: () => void): void {
    const key = keyFor(namespace, owner.uid);
    const resource = this.#resourceOf(owner);
    const now = this.#monotonic();
    const isTooSoon = now - (this.#asked.get(key) ?? Number.NEGATIVE_INFINITY) < AGAIN_MS;
    if (resource === undefined || isTooSoon || this.#underWay >= AT_ONCE) return;
    this.#asked.set(key, now);
    this.#underWay += 1;
    void this.#isThere(resource, owner, namespace).then((isThere) => {
      this.#underWay -= 1;
      if (isThere !== false) return;
      this.#gone.set(key, true);
      whenGone();
    });
  }

  /** Another cluster that answers in its place has none of its owners. */
  async #isHost(): Promise<boolean> {
    try {
      await this.#host.confirmCluster();
      return true;
    } catch {
      return false;
    }
  }

  /** Undefined: the host does not say. Never rejects. */
  async #isThere(
    resource: Resource,
    { name, uid }: OwnerReference,
    namespace: string | undefined,
  ): Promise<boolean | undefined> {
    try {
      // A list, for which no other right is needed than for the watch.
      const fieldSelector = `metadata.name=${escaped(name)}`;
      const signal = AbortSignal.timeout(TIMEOUT_MS);
      const { items } = await list(this.#host, resource, { namespace, fieldSelector, signal });
      if (items.some(({ metadata }) => metadata.uid === uid)) return true;
      return (await this.#isHost()) ? false : undefined;
    } catch (error) {
      // A question that the host can never answer is about nothing that is there.
      return error instanceof ApiError && error.code === 400 && (await this.#isHost()) ? false : undefined;
    }
  }
}

/** Whether any object may have the name. In references to owners API servers ask only that there is one. */
function mayBeName(name: string): boolean {
  return name.length > 0 && name.length <= LONGEST_NAME && name !== '.' && name !== '..' && !/[/%]/.test(name);
}

/** As a value of a field selector. */
function escaped(name: string): string {
  return name.replaceAll(/[\\,=]/g, String.raw`\$&`);
}
