import { mostSeats, rangeOf } from './seat-ranges.ts';
import type { Counts, Share } from './share.ts';

/**
 * The method of highest averages with odd divisors (Webster, Sainte-Laguë): the next seat goes to the share with the largest
 * weight / (2 * seats + 1). Minimums come before everything else. Of equals the one with fewer seats is first, then the
 * alphabet decides, backwards if `descending`. Seats are given one at a time and none is ever taken back, so a larger total
 * gives nobody less.
 */
export class HighestAverages {
  readonly #shares: readonly Share[];
  readonly #sign: 1 | -1;

  constructor(shares: readonly Share[], descending: boolean) {
    this.#sign = descending ? -1 : 1;
    this.#shares = shares.toSorted((a, b) => this.#compareNames(a, b));
  }

  /** Who gets the next seat; undefined when all have their maximum, or no weight beyond their minimum. */
  next(counts: Counts): Share | undefined {
    let best: Share | undefined;
    for (const share of this.#shares) {
      const count = seats(counts, share);
      if (!isOpen(share, count)) continue;
      if (best === undefined || compareSeats(share, count, best, seats(counts, best)) < 0) best = share;
    }
    return best;
  }

  /** Negative when the next seat of `a` comes before the next seat of `b`. */
  compare(a: Share, b: Share, counts: Counts): number {
    return compareSeats(a, seats(counts, a), b, seats(counts, b)) || this.#compareNames(a, b);
  }

  /** Who gives up a seat first: one above its maximum, else the exact reverse of {@link next}. Undefined without seats. */
  last(counts: Counts): Share | undefined {
    let worst: Share | undefined;
    for (const share of this.#shares) {
      if (seats(counts, share) === 0) continue;
      // Not below zero for equals: they give up in the reverse order of the list, so the later one wins.
      if (worst === undefined || compareGivingUp(share, worst, counts) >= 0) worst = share;
    }
    return worst;
  }

  /**
   * Seats for everyone, `total` in all or fewer when there is nobody left to take them. With `start` seats are added to
   * those, or given up from them in the reverse order. Takes no longer for two thousand million seats than for a few hundred.
   */
  divide(total: number, start: Counts = new Map()): { counts: Map<string, number>; unplaced: number } {
    const counts = new Map<string, number>();
    for (const share of this.#shares) counts.set(share.name, seats(start, share));
    let left = total - sum(counts);
    if (Math.abs(left) > FEW) left = this.#leap(counts, total);
    for (; left > 0; left -= 1) {
      const share = this.next(counts);
      if (share === undefined) break;
      counts.set(share.name, seats(counts, share) + 1);
    }
    for (; left < 0; left += 1) {
      const share = this.last(counts);
      if (share === undefined) break;
      counts.set(share.name, seats(counts, share) - 1);
    }
    return { counts, unplaced: Math.max(0, left) };
  }

  /**
   * Brings counts to the total but for a few seats, which can go one by one, and returns how many these are. Numbers that have
   * no exact product may be in the wrong order by one seat each, so the first left out and the last one given change places
   * until they are right.
   */
  #leap(counts: Map<string, number>, total: number): number {
    const downwards = total < sum(counts);
    const ranges = this.#shares.map((share) => rangeOf(share, seats(counts, share), downwards));
    for (const [name, count] of mostSeats(ranges, total, downwards)) counts.set(name, count);
    for (let exchanged = 0; exchanged < 2 * ranges.length; exchanged += 1) {
      const open = ranges.filter(({ share, to }) => seats(counts, share) < to).map(({ share }) => share);
      const given = ranges.filter(({ share, from }) => seats(counts, share) > from).map(({ share }) => share);
      const next = open.toSorted((a, b) => this.#compareNumbered(a, seats(counts, a), b, seats(counts, b)))[0];
      const last = given.toSorted((a, b) => this.#compareNumbered(b, seats(counts, b) - 1, a, seats(counts, a) - 1))[0];
      if (next === undefined || last === undefined) break;
      if (this.#compareNumbered(next, seats(counts, next), last, seats(counts, last) - 1) >= 0) break;
      counts.set(next.name, seats(counts, next) + 1);
      counts.set(last.name, seats(counts, last) - 1);
    }
    return total - sum(counts);
  }

  #compareNumbered(a: Share, m: number, b: Share, n: number): number {
    const [aOver, bOver] = [isOver(a, m + 1), isOver(b, n + 1)];
    if (aOver !== bOver) return aOver ? 1 : -1;
    return compareSeats(a, m, b, n) || this.#compareNames(a, b);
  }

  #compareNames({ name: a }: Share, { name: b }: Share): number {
    if (a === b) return 0;
    return a < b ? -this.#sign : this.#sign;
  }
}

/** So many seats are given or taken one by one. */
const FEW = 64;

export function sum(counts: Counts): number {
  let all = 0;
  for (const count of counts.values()) all += count;
  return all;
}

function seats(counts: Counts, share: Share): number {
  return counts.get(share.name) ?? 0;
}

function isOver({ max }: Share, count: number): boolean {
  return max !== undefined && count > max;
}

function isOpen(share: Share, count: number): boolean {
  if (count >= (share.max ?? Number.POSITIVE_INFINITY)) return false;
  return count < (share.min ?? 0) || share.weight > 0;
}

/** Negative when seat number `m` (from 0) of `a` comes before seat number `n` of `b`; 0 when only names can tell. */
function compareSeats(a: Share, m: number, b: Share, n: number): number {
  const [aFirst, bFirst] = [m < (a.min ?? 0), n < (b.min ?? 0)];
  if (aFirst !== bFirst) return aFirst ? -1 : 1;
  return b.weight * (2 * m + 1) - a.weight * (2 * n + 1) || m - n;
}

/** Positive when `a` gives up its last seat before `b` does. */
function compareGivingUp(a: Share, b: Share, counts: Counts): number {
  const [m, n] = [seats(counts, a), seats(counts, b)];
  const [aOver, bOver] = [isOver(a, m), isOver(b, n)];
  if (aOver !== bOver) return aOver ? 1 : -1;
  return compareSeats(a, m - 1, b, n - 1);
}
