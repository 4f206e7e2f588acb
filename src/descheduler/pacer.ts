import { pause } from '../kube/timers.ts';

/** Moves per second. */
export interface MoveRates {
  readonly total: number;
  readonly perMember: number;
}

/** A member's entry is dropped this long after its last move (ms). */
const FORGET_MS = 60_000;

/** Rate limiter without burst: spaces moves evenly, per member and in total. */
export class Pacer {
  readonly #rates: MoveRates;
  readonly #monotonic: () => number;
  /** By member, the earliest next move (monotonic ms). */
  readonly #free = new Map<string, number>();
  #totalFree = 0;

  constructor(rates: MoveRates, monotonic: () => number) {
    this.#rates = rates;
    this.#monotonic = monotonic;
  }

  /**
   * Reserves the member's next free slot and waits for it, or until the signal aborts.
   * Returns whether it had to wait.
   */
  async turn(member: string, signal: AbortSignal): Promise<boolean> {
    const now = this.#monotonic();
    for (const [name, free] of this.#free) if (free < now - FORGET_MS) this.#free.delete(name);
    const at = Math.max(now, this.#totalFree, this.#free.get(member) ?? 0);
    // A member whose own turn is far away takes no turn of others.
    this.#totalFree = Math.max(now, this.#totalFree) + 1_000 / this.#rates.total;
    this.#free.set(member, at + 1_000 / this.#rates.perMember);
    if (at === now) return false;
    await pause(at - now, signal);
    return true;
  }
}
