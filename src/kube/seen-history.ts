import { isOlder } from './resource-version.ts';

/** What a list says about the history of its collection. */
export type Verdict = 'onward' | 'backward' | 'turned';

export interface HistoryTimings {
  /** A cluster that shows an older state for so long, in ms, and goes on from there, is believed. */
  turnedBackMs: number;
  /** How long, in ms, after a list a place that nothing confirms is checked; then doubling up to `checkMaxMs`. */
  checkMs: number;
  checkMaxMs: number;
}

interface Doubt {
  since: number;
  first: string;
  last: string;
}

/**
 * How far the history of a collection has come, as far as was seen. A list older than that is a server that is behind, or
 * somebody who repeats old answers: it is refused. But what was seen before may have been the lie, or etcd was restored
 * from a backup: then the older state is the truth from now on. The difference is that a living cluster goes on. So an
 * older state is believed once it was shown by every list of a minute, never went back itself, and moved on meanwhile; what
 * is merely behind would have caught up, and what is repeated stands still.
 */
export class SeenHistory {
  readonly #timings: HistoryTimings;
  readonly #monotonic: () => number;
  #newest: string | undefined;
  #doubt: Doubt | undefined;
  #checkAt: number;
  #checkMs: number;

  /** `monotonic` in ms. */
  constructor(timings: HistoryTimings, monotonic: () => number) {
    this.#timings = timings;
    this.#monotonic = monotonic;
    this.#checkMs = timings.checkMs;
    this.#checkAt = monotonic() + this.#checkMs;
  }

  /** The newest resourceVersion that was believed; undefined before the first. */
  get newest(): string | undefined {
    return this.#newest;
  }

  /** The server shows an older state at present. */
  get inDoubt(): boolean {
    return this.#doubt !== undefined;
  }

  isBehind(version: string | undefined): boolean {
    return isOlder(version, this.#newest);
  }

  /** Judges the version of a consistent read. After `turned` what was seen before counts no more. */
  judge(version: string): Verdict {
    if (!this.isBehind(version)) {
      this.#doubt = undefined;
      return 'onward';
    }
    const now = this.#monotonic();
    if (this.#doubt === undefined || isOlder(version, this.#doubt.last)) {
      this.#doubt = { since: now, first: version, last: version };
      return 'backward';
    }
    this.#doubt.last = version;
    const { since, first } = this.#doubt;
    if (now - since < this.#timings.turnedBackMs || !isOlder(first, version)) {
      return 'backward';
    }
    this.#doubt = undefined;
    this.#newest = undefined;
    return 'turned';
  }

  /** A list was believed: soon after, its version is checked when nothing else confirms it. */
  listed(): void {
    this.#checkMs = this.#timings.checkMs;
    this.#checkAt = this.#monotonic() + this.#checkMs;
  }

  /** False when the version is behind, or none. */
  advance(version: string): boolean {
    if (version === '' || this.isBehind(version)) {
      return false;
    }
    this.#newest = version;
    return true;
  }

  /** Whether to ask how far the server is, because watches say nothing. Counts as asked. */
  takeCheck(): boolean {
    const now = this.#monotonic();
    if (now < this.#checkAt) {
      return false;
    }
    this.#checkMs = Math.min(this.#checkMs * 2, this.#timings.checkMaxMs);
    this.#checkAt = now + this.#checkMs;
    return true;
  }
}
