/** Since when things have been so at each look. */
export class SinceWhen {
  readonly #since = new Map<string, number>();

  /** For how long it has been so at each look, in ms; 0: it is not, or was not before. `now`: monotonic ms. */
  lasting(what: string, isSo: boolean, now: number): number {
    if (!isSo) {
      this.#since.delete(what);
      return 0;
    }
    const since = this.#since.get(what) ?? now;
    this.#since.set(what, since);
    return now - since;
  }

  /** What lasts counts from now on. */
  countAnew(what: string, now: number): void {
    if (this.#since.has(what)) this.#since.set(what, now);
  }

  forget(what: string): void {
    this.#since.delete(what);
  }
}
