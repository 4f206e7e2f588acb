import type { CacheShare } from './cache-room.ts';
import { LimitError } from './limit-error.ts';

/** An entry of a cache, beside its object: its key twice, its places in maps and an index. */
const ENTRY = 256;
const KEY_CHARACTER = 4;

/** What one cache has of its cluster's share, object by object. */
export class CacheAccount {
  readonly #share: CacheShare;
  readonly #what: string;
  readonly #weights = new Map<string, number>();
  /** Held beside objects. */
  #beside = 0;
  /** The object that was asked about last, so that it is weighed once. */
  #weighed: { object: unknown; bytes: number } | undefined;

  /** `what` names the collection in words: `pods of cluster east`. */
  constructor(share: CacheShare, what: string) {
    this.#share = share;
    this.#what = what;
  }

  /** `elsewhere`: a former state of it that another cache holds until that has this one; what it weighs is not counted twice. */
  set(key: string, object: unknown, elsewhere?: object): void {
    const bytes = this.#more(key, object, elsewhere);
    this.#share.change(bytes - (this.#weights.get(key) ?? 0));
    this.#weights.set(key, bytes);
    this.#weighed = undefined;
  }

  delete(key: string): void {
    this.#share.change(-(this.#weights.get(key) ?? 0));
    this.#weights.delete(key);
  }

  /** @throws LimitError when there is no room for the object in the place of what is there. */
  check(key: string, object: unknown): void {
    if (!this.hasRoom(key, object)) throw this.#full();
  }

  /** Whether there is room for the object in the place of what is there, and `elsewhere` as for {@link set}. */
  hasRoom(key: string, object: unknown, elsewhere?: object): boolean {
    const more = this.#more(key, object, elsewhere) - (this.#weights.get(key) ?? 0);
    return more <= 0 || this.#share.fits(more);
  }

  #more(key: string, object: unknown, elsewhere: object | undefined): number {
    const bytes = this.#weigh(key, object);
    return elsewhere === undefined ? bytes : Math.max(0, bytes - ENTRY - this.#share.scale.weigh(elsewhere));
  }

  /** Room for a list that is being read: what comes in beside what is there. Returns what was taken. @throws LimitError */
  reserve(key: string, object: unknown): number {
    const bytes = object === undefined ? ENTRY + KEY_CHARACTER * key.length : this.#weigh(key, object);
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
    for (const bytes of this.#weights.values()) this.#share.change(-bytes);
    this.#weights.clear();
    this.drop(this.#beside);
  }

  #weigh(key: string, object: unknown): number {
    const last = this.#weighed;
    if (last !== undefined && last.object === object) return last.bytes;
    const bytes = ENTRY + KEY_CHARACTER * key.length + this.#share.scale.weigh(object);
    this.#weighed = { object, bytes };
    return bytes;
  }

  #full(): LimitError {
    // The same words each time: they stand in a condition.
    return new LimitError(
      `there is no room in memory for more ${this.#what}: its caches have as much as they may have here; ` +
        'what is known stays as it is',
    );
  }
}
