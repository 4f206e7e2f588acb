/** For how long what a look found wrong stayed so, by the object that it is about, which is the first word of it, or two. */
export class Lasting {
  readonly #clock: () => number;
  readonly #found = new Map<string, { readonly since: number; until: number; words: string }>();

  constructor(clock: () => number = Date.now) {
    this.#clock = clock;
  }

  /** All that one look found. */
  saw(wrong: readonly string[]): void {
    const now = this.#clock();
    for (const words of wrong) {
      const key = aboutWhat(words);
      const known = this.#found.get(key);
      this.#found.set(key, { since: known?.since ?? now, until: now, words });
    }
  }

  /** The longest first, each with its time from the first to the last look that found it, and what was said of it last. */
  longest(most: number): string[] {
    return [...this.#found.values()]
      .toSorted((a, b) => b.until - b.since - (a.until - a.since))
      .slice(0, most)
      .map(({ since, until, words }) => `${((until - since) / 1000).toFixed(0)} s: ${words}`);
  }
}

/** `namespace/pod`, or `Deployment namespace/name`. */
function aboutWhat(words: string): string {
  const [first = '', second = ''] = words.split(/[ ,:]/);
  return first.includes('/') ? first : `${first} ${second}`;
}
