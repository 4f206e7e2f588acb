/** Why member pods are kept although their host pods are gone. */
export type OrphanReason = 'BreakerOpen' | 'HostWentBack';

/** Member pods, by UID, that are kept because the evidence does not suffice to delete them. */
export class OrphanedPods {
  readonly #kept = new Map<string, { key: string; reason: OrphanReason }>();
  readonly #changed: () => void;
  #emptySince: number;
  readonly #monotonic: () => number;

  constructor(options: { changed: () => void; monotonic: () => number }) {
    this.#changed = options.changed;
    this.#monotonic = options.monotonic;
    this.#emptySince = options.monotonic();
  }

  get size(): number {
    return this.#kept.size;
  }

  reasonOf(uid: string): OrphanReason | undefined {
    return this.#kept.get(uid)?.reason;
  }

  /** How long it has been known that none had to be kept, in ms; 0 while there are some. */
  emptyMs(): number {
    return this.#kept.size > 0 ? 0 : this.#monotonic() - this.#emptySince;
  }

  /** Nobody can say at the moment whether some would have to be kept: what was known of that begins anew. */
  doubt(): void {
    this.#emptySince = this.#monotonic();
  }

  entries(): IterableIterator<[string, { key: string; reason: OrphanReason }]> {
    return this.#kept.entries();
  }

  /** `key` is the host pod's. Returns whether it was not kept for that reason before. */
  keep(uid: string, key: string, reason: OrphanReason): boolean {
    if (this.#kept.get(uid)?.reason === reason) return false;
    this.#kept.set(uid, { key, reason });
    this.#changed();
    return true;
  }

  release(uid: string): void {
    if (!this.#kept.delete(uid)) return;
    this.#emptySince = this.#monotonic();
    this.#changed();
  }
}
