import { LRUCache } from 'lru-cache';
import { atMost } from '../kube/lru-limit.ts';

/** A replacement is Ready by then in most cases; who waits for longer is to know for what (ms). */
const LONG_MS = 60_000;

/** Times are monotonic ms. */
interface Wait {
  readonly since: number;
  readonly askedAt: number;
}

/** For how long no pod of a ReplicaSet has had its turn to be released while others of it wait for that. */
export class WaitsForTurn {
  readonly #monotonic: () => number;
  /** By key of the ReplicaSet. */
  readonly #waits = new LRUCache<string, Wait>(atMost());

  /** @param monotonic in ms. */
  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /** A pod has to wait. Returns whether none has had its turn for long. */
  isLong(setKey: string): boolean {
    const askedAt = this.#monotonic();
    const known = this.#waits.get(setKey);
    // Who has not asked for long did not wait meanwhile.
    const since = known === undefined || askedAt - known.askedAt >= LONG_MS ? askedAt : known.since;
    this.#waits.set(setKey, { since, askedAt });
    return askedAt - since >= LONG_MS;
  }

  /** A pod has its turn. */
  came(setKey: string): void {
    this.#waits.delete(setKey);
  }
}
