/** What lasts until some time, by key. Who asks looks first for what has ended, which costs nothing until the first one has. */
export class Expiries<T> {
  readonly #all = new Map<string, { readonly what: T; readonly until: number }>();
  /** None ends earlier. */
  #next = Infinity;

  /** In place of what was said of the key before. */
  set(key: string, what: T, until: number): void {
    this.#all.set(key, { what, until });
    this.#next = Math.min(this.#next, until);
  }

  delete(key: string): void {
    this.#all.delete(key);
  }

  /** Those that have ended by now, in the order in which they were set; they are forgotten. */
  takeEnded(now: number): T[] {
    const ended: T[] = [];
    if (now < this.#next) return ended;
    this.#next = Infinity;
    for (const [key, { what, until }] of this.#all) {
      if (until > now) {
        this.#next = Math.min(this.#next, until);
        continue;
      }
      this.#all.delete(key);
      ended.push(what);
    }
    return ended;
  }
}
