/** What is waited in vain at once, at the most, in ms. */
const MOST_MS = 1_000;
/** Of the time that goes by, so much may be waited in vain. */
const SHARE = 1 / 20;

/**
 * Time for waits that all share. Whoever waits for a thing that never comes takes of it, so that many such waits one after the
 * other do not add up: then they are short, and in the end none at all.
 */
export class WaitBudget {
  readonly #monotonic: () => number;
  #left = MOST_MS;
  #at: number;

  /** Monotonic clock in ms. */
  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
    this.#at = monotonic();
  }

  /** As much of so many ms as may be waited now; they are gone until {@link giveBack}. */
  take(ms: number): number {
    const now = this.#monotonic();
    this.#left = Math.min(MOST_MS, this.#left + Math.max(0, now - this.#at) * SHARE);
    this.#at = now;
    const taken = Math.min(ms, this.#left);
    this.#left -= taken;
    return taken;
  }

  /** What was waited for came. */
  giveBack(ms: number): void {
    this.#left = Math.min(MOST_MS, this.#left + ms);
  }
}
