/**
 * Invariant I2: deletions of member pods whose host pod merely cannot be found are few. More than max(5, 10 % of our
 * pods) of them within five minutes means that something is wrong with what we see, not with the pods: the breaker
 * opens and stays open until an operator looks.
 */
export class DeletionBreaker {
  readonly #windowMs: number;
  readonly #clock: () => number;
  #times: number[] = [];
  #open = false;

  constructor(options: { windowMs?: number; clock?: () => number } = {}) {
    this.#windowMs = options.windowMs ?? 5 * 60_000;
    this.#clock = options.clock ?? Date.now;
  }

  get open(): boolean {
    return this.#open;
  }

  /** Asks for one more deletion among `total` pods of ours; false once the breaker is open. */
  allow(total: number): boolean {
    if (this.#open) return false;
    const now = this.#clock();
    this.#times = this.#times.filter((time) => now - time < this.#windowMs);
    if (this.#times.length >= Math.max(5, Math.floor(total / 10))) {
      this.#open = true;
      return false;
    }
    this.#times.push(now);
    return true;
  }

  /** An operator has looked and says that the deletions are meant. */
  reset(): void {
    this.#open = false;
    this.#times = [];
  }
}
