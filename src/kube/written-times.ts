import { LRUCache } from 'lru-cache';
import { atMost } from './lru-limit.ts';

/** Clocks of machines differ by less (ms): what was written later than that has a time that says nothing. */
const AHEAD_MS = 60_000;

export interface WrittenTimesOptions {
  /** Wall clock in ms. */
  clock: () => number;
  /** In ms. */
  monotonic: () => number;
}

/** When things were that others wrote down with a time, by clocks that may have been ahead. */
export class WrittenTimes {
  readonly #o: WrittenTimesOptions;
  /** When those that a clock wrote that was ahead were first seen here (monotonic ms). */
  readonly #ahead = new LRUCache<string, number>(atMost());

  constructor(options: WrittenTimesOptions) {
    this.#o = options;
  }

  /**
   * In ms, by the wall clock of now: as written, or when it was first seen here, if that time was still to come then, and no other one when it has
   * come. `key`: what it is, together with that time.
   */
  at(key: string, written: number): number {
    const { clock, monotonic } = this.#o;
    const known = this.#ahead.get(key);
    if (known === undefined && !(written > clock() + AHEAD_MS)) return written;
    const since = known ?? monotonic();
    this.#ahead.set(key, since);
    return clock() - (monotonic() - since);
  }
}
