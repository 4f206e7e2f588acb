import type { CacheShare } from './cache-room.ts';
import type { KubeClient } from './client.ts';
import { LimitError } from './limit-error.ts';
import type { Resource } from './resource.ts';

/** An entry of a cache, beside its object: its key twice, its places in maps and an index. */
const ENTRY = 256;
const KEY_CHARACTER = 4;

/** What an entry takes beside its object, in bytes. */
export function entryBytes(key: string): number {
  return ENTRY + KEY_CHARACTER * key.length;
}

/**
 * What one cache has of its cluster's share, object by object. Of an object that is known in a newer state than the cache shows (`ahead`: as
 * it was answered to a request) the heavier one counts: the cache takes that state in its place.
 */
export class CacheAccount {
  readonly #share: CacheShare;
  readonly #what: string;
  readonly #weights = new Map<string, number>();
  readonly #ahead = new Map<string, number>();
  /** Held beside objects. */
  #beside = 0;
  /** The object that was asked about last, so that it is weighed once. */
  #weighed: { object: unknown; bytes: number } | undefined;

  /** `what` names the collection in words: `pods of cluster east`. */
  constructor(share: CacheShare, what: string) {
    this.#share = share;
    this.#what = what;
  }

  set(key: string, object: unknown): void {
    this.#note(this.#weights, key, this.#weigh(key, object));
    this.#weighed = undefined;
  }

  delete(key: string): void {
    this.#note(this.#weights, key, undefined);
  }

  /** The object counts until {@link forgetAhead}, beside what the cache takes in the meantime. */
  setAhead(key: string, object: unknown): void {
    this.#note(this.#ahead, key, this.#weigh(key, object));
    this.#weighed = undefined;
  }

  forgetAhead(key: string): void {
    this.#note(this.#ahead, key, undefined);
  }

  /** @throws LimitError when there is no room for the object in the cache, in the place of what it shows. */
  check(key: string, object: unknown): void {
    if (!this.#fits(key, Math.max(this.#weigh(key, object), this.#ahead.get(key) ?? 0))) throw this.#full();
  }

  /** @throws LimitError as {@link hasRoomAhead} tells. */
  checkAhead(key: string, object: unknown): void {
    if (!this.hasRoomAhead(key, object)) throw this.#full();
  }

  /** Whether there is room for the object before the cache shows it. */
  hasRoomAhead(key: string, object: unknown): boolean {
    return this.#fits(key, Math.max(this.#weigh(key, object), this.#weights.get(key) ?? 0));
  }

  /**
   * Room for a list that is being read: what comes in beside what is there, and in the place of what is known ahead of the cache. `object`:
   * undefined for what the cache has already. Returns what was taken. @throws LimitError
   */
  reserve(key: string, object: unknown): number {
    const own = object === undefined ? entryBytes(key) : this.#weigh(key, object);
    const bytes = Math.max(0, own - (this.#counted(key) - (this.#weights.get(key) ?? 0)));
    if (!this.#share.take(bytes)) throw this.#full();
    return bytes;
  }

  /** Room for what is kept beside objects until {@link drop} or {@link clear}; false when there is none. */
  hold(bytes: number): boolean {
    const fits = this.#share.take(bytes);
    if (fits) this.#beside += bytes;
    return fits;
  }

  drop(bytes: number): void {
    this.#share.change(-bytes);
    this.#beside -= bytes;
  }

  release(bytes: number): void {
    this.#share.change(-bytes);
  }

  /** Nothing is cached any more. */
  clear(): void {
    for (const key of this.#ahead.keys()) this.forgetAhead(key);
    for (const bytes of this.#weights.values()) this.#share.change(-bytes);
    this.#weights.clear();
    this.drop(this.#beside);
  }

  #fits(key: string, counted: number): boolean {
    const more = counted - this.#counted(key);
    return more <= 0 || this.#share.fits(more);
  }

  #counted(key: string): number {
    return Math.max(this.#weights.get(key) ?? 0, this.#ahead.get(key) ?? 0);
  }

  #note(where: Map<string, number>, key: string, bytes: number | undefined): void {
    const before = this.#counted(key);
    if (bytes === undefined) where.delete(key);
    else where.set(key, bytes);
    this.#share.change(this.#counted(key) - before);
  }

  #weigh(key: string, object: unknown): number {
    const last = this.#weighed;
    if (last !== undefined && last.object === object) return last.bytes;
    const bytes = entryBytes(key) + this.#share.scale.weigh(object);
    this.#weighed = { object, bytes };
    return bytes;
  }

  #full(): LimitError {
    // The same words each time: they stand in a condition.
    return new LimitError(
      `there is no room in memory for more ${this.#what}: its caches have as much of the heap here as they may have; ` +
        'what is known stays as it is',
    );
  }
}

/** The account of one collection in the share of its cluster; undefined where caches are not bounded. */
export function accountOf(
  { caches: ofClient, cluster }: KubeClient,
  resource: Resource,
  caches: CacheShare | undefined = ofClient,
): CacheAccount | undefined {
  return caches === undefined ? undefined : new CacheAccount(caches, `${resource.plural} of cluster ${cluster}`);
}
