import type { Timers } from './timers.ts';

interface Entry {
  readonly key: string;
  at: number;
  index: number;
}

/** Keys that become due at a time, each at most once, driven by a single timer however many there are. */
export class DelayHeap {
  readonly #monotonic: () => number;
  readonly #timers: Timers;
  readonly #onDue: (key: string) => void;
  readonly #entries = new Map<string, Entry>();
  readonly #heap: Entry[] = [];
  #cancelTimer: (() => void) | undefined;
  #timerAt = Infinity;

  constructor(monotonic: () => number, timers: Timers, onDue: (key: string) => void) {
    this.#monotonic = monotonic;
    this.#timers = timers;
    this.#onDue = onDue;
  }

  get size(): number {
    return this.#heap.length;
  }

  /** Makes the key due at `at` (monotonic milliseconds); of two times the earlier one stays. */
  set(key: string, at: number): void {
    const known = this.#entries.get(key);
    if (known !== undefined) {
      if (at >= known.at) return;
      known.at = at;
      this.#rise(known);
    } else {
      const entry: Entry = { key, at, index: this.#heap.length };
      this.#entries.set(key, entry);
      this.#heap.push(entry);
      this.#rise(entry);
    }
    this.#arm();
  }

  delete(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#remove(entry);
    this.#arm();
  }

  /** Forgets every key and stops the timer. */
  clear(): void {
    this.#entries.clear();
    this.#heap.length = 0;
    this.#arm();
  }

  #arm(): void {
    const next = this.#heap[0]?.at ?? Infinity;
    if (next === this.#timerAt) return;
    this.#cancelTimer?.();
    this.#timerAt = next;
    this.#cancelTimer =
      next === Infinity ? undefined : this.#timers.start(() => this.#fire(), next - this.#monotonic());
  }

  #fire(): void {
    this.#timerAt = Infinity;
    this.#cancelTimer = undefined;
    const now = this.#monotonic();
    for (let first = this.#heap[0]; first !== undefined && first.at <= now; first = this.#heap[0]) {
      this.#remove(first);
      this.#onDue(first.key);
    }
    this.#arm();
  }

  #remove(entry: Entry): void {
    this.#entries.delete(entry.key);
    const last = this.#heap.pop();
    if (last === undefined || last === entry) return;
    this.#heap[entry.index] = last;
    last.index = entry.index;
    this.#sink(last);
    this.#rise(last);
  }

  #rise(entry: Entry): void {
    while (entry.index > 0) {
      const parent = this.#heap[(entry.index - 1) >> 1];
      if (parent === undefined || parent.at <= entry.at) return;
      this.#swap(entry, parent);
    }
  }

  #sink(entry: Entry): void {
    for (;;) {
      const left = this.#heap[entry.index * 2 + 1];
      const right = this.#heap[entry.index * 2 + 2];
      const child = left === undefined || (right !== undefined && right.at < left.at) ? right : left;
      if (child === undefined || child.at >= entry.at) return;
      this.#swap(entry, child);
    }
  }

  #swap(a: Entry, b: Entry): void {
    [a.index, b.index] = [b.index, a.index];
    this.#heap[a.index] = a;
    this.#heap[b.index] = b;
  }
}
