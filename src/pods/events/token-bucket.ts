/** A budget that starts full and refills evenly. Times in ms. */
export class TokenBucket {
  readonly #size: number;
  readonly #refillMs: number;
  #left: number;
  #at: number;

  /** `refillMs`: time until one more token is there. */
  constructor(size: number, refillMs: number, now: number) {
    this.#size = size;
    this.#refillMs = refillMs;
    this.#left = size;
    this.#at = now;
  }

  /** Time until a token can be taken; 0 when one is there. */
  waitMs(now: number): number {
    this.#refill(now);
    return this.#left >= 1 ? 0 : Math.ceil((1 - this.#left) * this.#refillMs);
  }

  /** Whether a token was there; then it is used up. */
  take(now: number): boolean {
    this.#refill(now);
    if (this.#left < 1) return false;
    this.#left -= 1;
    return true;
  }

  #refill(now: number): void {
    this.#left = Math.min(this.#size, this.#left + Math.max(0, now - this.#at) / this.#refillMs);
    this.#at = now;
  }
}
