import { pause } from '../kube/timers.ts';

/** Moves per second. */
export interface MoveRates {
  readonly total: number;
  readonly perMember: number;
}

/** So long after the last move of a member its own clock is of no more use, in ms: it is free anyway. */
const FORGET_MS = 60_000;

/** Spaces moves evenly, out of each member and in total. Nothing is saved up: what was not moved in time comes no faster then. */
export class Pacer {
  readonly #rates: MoveRates;
  readonly #monotonic: () => number;
  /** When the next move may be, by member, in monotonic ms. */
  readonly #free = new Map<string, number>();
  #totalFree = 0;

  constructor(rates: MoveRates, monotonic: () => number) {
    this.#rates = rates;
    this.#monotonic = monotonic;
  }

  /**
   * Takes the next time at which a pod of the member may be moved, and waits for it; a signal that aborts ends the wait.
   * Returns whether it had to wait.
   */
  async turn(member: string, signal: AbortSignal): Promise<boolean> {
    const now = this.#monotonic();
    for (const [name, free] of this.#free) if (free < now - FORGET_MS) this.#free.delete(name);
    const at = Math.max(now, this.#totalFree, this.#free.get(member) ?? 0);
    this.#totalFree = at + 1_000 / this.#rates.total;
    this.#free.set(member, at + 1_000 / this.#rates.perMember);
    if (at === now) return false;
    await pause(at - now, signal);
    return true;
  }
}
