import { monotonic } from './clock.ts';
import { splitKey } from './object.ts';

interface Refusal {
  /** Keys of those that were refused; what has waited longest comes first. */
  readonly refused: Set<string>;
  words: string;
  /** Until when nothing else is tried (monotonic ms). */
  until: number;
  /** What is tried meanwhile. */
  trying: string | undefined;
  /** One was taken since the last that was refused: the right is missing for some only. */
  isPartial: boolean;
}

/**
 * Where the right to write objects is missing, by the namespace of their keys: it may be given in some namespaces only. One at a time
 * is tried again for all of its namespace, in turns, and first what was never refused. When that is taken, all that were never refused
 * are free, until the next that is.
 */
export class NamespaceRefusals {
  readonly #all = new Map<string, Refusal>();
  readonly #rest: number;
  readonly #late: number;

  /** After how long the next object is tried, and how much later one that was refused (ms). */
  constructor({ rest, late }: { rest: number; late: number }) {
    this.#rest = rest;
    this.#late = late;
  }

  has(namespace: string): boolean {
    return this.#all.has(namespace);
  }

  /** Of all that were refused. */
  keys(): string[] {
    return [...this.#all.values()].flatMap(({ refused }) => [...refused]);
  }

  /** In the words of the cluster, by namespace. */
  words(): Map<string, string> {
    return new Map([...this.#all].map(([namespace, { words }]) => [namespace, words]));
  }

  /** Time until the object may be tried (ms). When that is none, it counts as the one that is tried for all. */
  restMs(key: string): number {
    const known = this.#of(key);
    if (known === undefined || known.trying === key || (known.isPartial && !known.refused.has(key))) return 0;
    const rest = known.until + this.#lateOf(known, key) - monotonic();
    if (rest > 0) return rest;
    known.trying = key;
    known.until = monotonic() + this.#rest;
    return 0;
  }

  /** The right to write it was missing. Returns whether that is the first of its namespace. */
  note(key: string, words: string): boolean {
    const until = monotonic() + this.#rest;
    const known = this.#of(key);
    if (known === undefined) {
      this.#all.set(namespaceOf(key), {
        refused: new Set([key]),
        words,
        until,
        trying: undefined,
        isPartial: false,
      });
      return true;
    }
    known.words = words;
    if (known.trying === key) known.trying = undefined;
    if (!known.refused.delete(key)) Object.assign(known, { until, isPartial: false });
    known.refused.add(key);
    return false;
  }

  /** It was brought up to date. Returns whether others of its namespace waited for that. */
  passed(key: string): boolean {
    const known = this.#of(key);
    // Others that were under way may have had nothing to write.
    if (known?.trying !== key) return false;
    if (known.refused.has(key)) return this.#all.delete(namespaceOf(key));
    known.trying = undefined;
    if (known.isPartial) return false;
    known.isPartial = true;
    return true;
  }

  clear(): void {
    this.#all.clear();
  }

  /** It is not known whether the one whose turn it is comes back: others come after it. */
  #lateOf({ refused }: Refusal, key: string): number {
    if (!refused.has(key)) return 0;
    const [next] = refused;
    return next === key ? this.#late : 2 * this.#late;
  }

  #of(key: string): Refusal | undefined {
    return this.#all.get(namespaceOf(key));
  }
}

function namespaceOf(key: string): string {
  return splitKey(key).namespace ?? '';
}
