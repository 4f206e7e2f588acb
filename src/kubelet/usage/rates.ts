interface Point {
  value: number;
  at: number;
  rate: number | undefined;
}

/** Rates of counters, each from the two newest of its points in time (ms). */
export class Rates {
  readonly #points = new Map<string, Point>();

  observe(key: string, value: number, at: number): void {
    const last = this.#points.get(key);
    if (last !== undefined && at <= last.at) return;
    const rate = last === undefined || value < last.value ? undefined : ((value - last.value) * 1000) / (at - last.at);
    this.#points.set(key, { value, at, rate });
  }

  /** Per second; undefined until there are two points. */
  of(key: string): number | undefined {
    return this.#points.get(key)?.rate;
  }

  /** Forgets all others. */
  keep(isPresent: (key: string) => boolean): void {
    for (const key of this.#points.keys()) if (!isPresent(key)) this.#points.delete(key);
  }
}
