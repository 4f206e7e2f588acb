import { monotonic } from '../kube/clock.ts';

/** What all others are told of one cluster lastingly, in bytes a second: their storage keeps all versions of some minutes. */
const BYTES_A_SECOND = 512 * 1024;
/** Much may change at once: a cluster is ahead of that by as much as takes this time, in ms. */
const AHEAD_MS = 60_000;
/** A write takes as much beside its text, in bytes. */
const WRITE = 1_024;
/** A Service that leads to many changes all the time: so long for each EndpointSlice it rests, and at most so long (ms). */
const REST_MS = 200;
const LONGEST_REST_MS = 2_000;

/**
 * How fast the host, and so all clusters, are told of what one cluster exports. Who has changed much waits until the cluster's turn is over;
 * names that change little are told at once meanwhile, and all that wait come in turn.
 */
export class ExportPace {
  readonly #now: () => number;
  /** Until when what was told is enough, by the lasting rate. */
  #paid = 0;
  readonly #rests = new Map<string, number>();

  /** `now`: monotonic, in ms. */
  constructor(now: () => number = monotonic) {
    this.#now = now;
  }

  /** Something is told under a key; `bytes`: how much text. */
  wrote(key: string, bytes: number): void {
    this.#paid = Math.max(this.#now(), this.#paid) + ((bytes + WRITE) / BYTES_A_SECOND) * 1000;
    this.#restUntil(key, this.#paid - AHEAD_MS);
  }

  /** A key was told of that has so many EndpointSlices, or had. */
  gather(key: string, slices: number): void {
    if (slices > 1) this.#restUntil(key, this.#now() + Math.min(slices * REST_MS, LONGEST_REST_MS));
  }

  /** How long to tell nothing under a key, in ms. `isNew`: others do not know of it, so it waits behind all that was told already. */
  restMs(key: string, isNew: boolean): number {
    const now = this.#now();
    if (isNew && !this.#rests.has(key)) this.#rests.set(key, this.#paid - AHEAD_MS);
    const rest = (this.#rests.get(key) ?? 0) - now;
    // A new one keeps its turn.
    if (rest <= 0 && !isNew) this.#rests.delete(key);
    return Math.max(0, rest);
  }

  #restUntil(key: string, until: number): void {
    this.#rests.set(key, Math.max(until, this.#rests.get(key) ?? 0));
  }
}
