import { monotonic } from '../kube/clock.ts';
import { splitKey } from '../kube/object.ts';

interface Refusal {
  /** Of the Service that is tried for all of its namespace. */
  key: string;
  readonly until: number;
  readonly words: string;
}

/**
 * Where the right to write Services is missing, by namespace of the host: members may give it in some namespaces only. One Service is
 * tried again for all of its namespace.
 */
export class NamespaceRefusals {
  readonly #all = new Map<string, Refusal>();
  readonly #rest: number;
  readonly #late: number;

  /** After how long the Service that was refused is tried again, and how much later any other one is (ms). */
  constructor({ rest, late }: { rest: number; late: number }) {
    this.#rest = rest;
    this.#late = late;
  }

  has(namespace: string): boolean {
    return this.#all.has(namespace);
  }

  /** In the words of the cluster, by namespace of the host. */
  words(): Map<string, string> {
    return new Map([...this.#all].map(([namespace, { words }]) => [namespace, words]));
  }

  /** Time until a Service may be tried (ms); it counts as the one that is tried for all, if that is none. */
  restMs(key: string): number {
    const known = this.#all.get(namespaceOf(key));
    if (known === undefined) return 0;
    const rest = known.until + (known.key === key ? 0 : this.#late) - monotonic();
    if (rest <= 0) known.key = key;
    return Math.max(0, rest);
  }

  /** Returns whether that is news. */
  note(key: string, words: string): boolean {
    const isNews = !this.has(namespaceOf(key));
    this.#all.set(namespaceOf(key), { key, until: monotonic() + this.#rest, words });
    return isNews;
  }

  /** A Service was brought up to date. Returns whether others of its namespace waited for that. */
  over(key: string): boolean {
    // Another one may have had nothing to write.
    return this.#all.get(namespaceOf(key))?.key === key && this.#all.delete(namespaceOf(key));
  }

  clear(): void {
    this.#all.clear();
  }
}

function namespaceOf(key: string): string {
  return splitKey(key).namespace ?? '';
}
