/**
 * For how long a member has not been heard of, as far as this process has asked: from the first probe in a row that was not answered to
 * the last one, by the monotonic clock. Time in which nobody asked, because this process stood still, does not count.
 */
export class Silence {
  #ms = 0;
  #at: number | undefined;

  /** In ms; 0 while the last probe was answered, and before the first. */
  get ms(): number {
    return this.#ms;
  }

  /** After each probe. `atMs`: monotonic; `mostMs`: between two probes no more time than this counts. */
  probed(answered: boolean, atMs: number, mostMs: number): void {
    this.#ms = answered || this.#at === undefined ? 0 : this.#ms + Math.min(atMs - this.#at, mostMs);
    this.#at = answered ? undefined : atMs;
  }
}
