import { LRUCache } from 'lru-cache';
import { customKindKey } from '../api/custom-kinds.ts';
import { ownersMayNotBeRead } from '../api/owner-rights.ts';
import { cleanText } from '../kube/clean-text.ts';
import type { KubeClient } from '../kube/client.ts';
import { describeError } from '../kube/errors.ts';
import { KindDirectory } from '../kube/kind-directory.ts';
import { atMost } from '../kube/lru-limit.ts';
import { mayI } from '../kube/own-rights.ts';
import type { Resource } from '../kube/resource.ts';

interface Kind {
  readonly apiVersion: string;
  readonly kind: string;
}

/** So long an answer about rights is believed, in ms. */
const REVIEW_MS = 10_000;
const LONGEST_WORDS = 300;
const NO_SUCH_KIND = 'the host has no such kind';

/** Kinds of owners that are not Kubernetes' own: how they are addressed, and why their objects cannot be read. */
export class OwnerKinds {
  readonly #host: Pick<KubeClient, 'request'>;
  readonly #directory: KindDirectory;
  /** By kind, whether its objects may be read. */
  readonly #reviews: LRUCache<string, boolean>;

  /** `monotonic` in ms. */
  constructor(host: Pick<KubeClient, 'request'>, monotonic: () => number) {
    this.#host = host;
    this.#directory = new KindDirectory(host, monotonic);
    this.#reviews = new LRUCache({ ...atMost(1_000), ttl: REVIEW_MS, ttlResolution: 0, perf: { now: monotonic } });
  }

  /** How objects of a kind are addressed, or why not, in words. Throws what the host answers. */
  async find({ apiVersion, kind }: Kind, signal: AbortSignal): Promise<{ resource: Resource } | { why: string }> {
    if (this.#directory.known(apiVersion, kind) === undefined) await this.#directory.lookAtGroups(signal);
    const resource = await this.#directory.find(apiVersion, kind, signal);
    return resource === undefined ? { why: NO_SUCH_KIND } : { resource };
  }

  /** What is there of a version is to be read again: it is not served any more as it was. */
  forget(apiVersion: string): void {
    this.#directory.forget(apiVersion);
  }

  /** Why labels of objects of such a kind cannot be read, in words; undefined: they can, or it is one of Kubernetes' own. */
  async whyUnread(kind: Kind, signal: AbortSignal): Promise<string | undefined> {
    const key = customKindKey(kind);
    if (key === undefined) return undefined;
    try {
      const found = await this.find(kind, signal);
      if ('why' in found) return found.why;
      return (await this.#mayRead(key, found.resource, signal)) ? undefined : ownersMayNotBeRead(found.resource);
    } catch (error) {
      signal.throwIfAborted();
      return `it is tried again: ${cleanText(describeError(error), LONGEST_WORDS)}`;
    }
  }

  /** Whether the host does not have a kind that is not Kubernetes' own; false while that cannot be found out. */
  async isAbsent(kind: Kind, signal: AbortSignal): Promise<boolean> {
    if (customKindKey(kind) === undefined) return false;
    try {
      return 'why' in (await this.find(kind, signal));
    } catch {
      signal.throwIfAborted();
      return false;
    }
  }

  async #mayRead(key: string, { group, plural }: Resource, signal: AbortSignal): Promise<boolean> {
    const known = this.#reviews.get(key);
    if (known !== undefined) return known;
    const may = await mayI(this.#host, { verb: 'get', group, resource: plural }, signal);
    this.#reviews.set(key, may);
    return may;
  }
}
