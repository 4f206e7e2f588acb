import { pause } from '../kube/timers.ts';

/** Moves per second. */
export interface MoveRates {
  readonly total: number;
  readonly perMember: number;
}

/** Most members that are emptied at the same time, whatever the rates. */
const MOST_MEMBERS = 32;
const LEAST_MEMBERS = 8;

/**
 * Members that have to be emptied at the same time for the pace of all. Whoever moves pods out of one waits for its turn most of the time, so with
 * fewer the others would wait for that, too.
 */
export function membersAtOnce({ total, perMember }: MoveRates): number {
  const needed = Math.ceil(total / perMember);
  return Number.isNaN(needed) ? LEAST_MEMBERS : Math.min(MOST_MEMBERS, Math.max(LEAST_MEMBERS, needed));
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
