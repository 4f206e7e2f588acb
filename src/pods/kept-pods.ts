/** Why member pods are kept although their host pods are gone. */
export type KeptReason = 'BreakerOpen' | 'HostWentBack';

/** Member pods, by UID, that are kept because the evidence does not suffice to delete them. */
export class KeptPods {
  readonly #kept = new Map<string, { key: string; reason: KeptReason }>();
  readonly #changed: () => void;
  #emptySince: number;
  readonly #clock: () => number;

  constructor(options: { changed: () => void; clock: () => number }) {
    this.#changed = options.changed;
    this.#clock = options.clock;
    this.#emptySince = options.clock();
  }

  get size(): number {
    return this.#kept.size;
  }

  reasonOf(uid: string): KeptReason | undefined {
    return this.#kept.get(uid)?.reason;
  }

  /** How long none has been kept, in ms; 0 while there are some. */
  emptyMs(): number {
    return this.#kept.size > 0 ? 0 : this.#clock() - this.#emptySince;
  }

  entries(): IterableIterator<[string, { key: string; reason: KeptReason }]> {
    return this.#kept.entries();
  }

  /** `key` is the host pod's. */
  keep(uid: string, key: string, reason: KeptReason): void {
    if (this.#kept.get(uid)?.reason === reason) return;
    this.#kept.set(uid, { key, reason });
    this.#changed();
  }

  release(uid: string): void {
    if (!this.#kept.delete(uid)) return;
    this.#emptySince = this.#clock();
    this.#changed();
  }
}
