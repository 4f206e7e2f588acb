/** A cluster's claim in a division. Weights are whole numbers, so that comparisons are exact. */
export interface Share {
  readonly name: string;
  readonly weight: number;
  /** Seats it gets before anything goes by weight; default 0. */
  readonly min?: number;
  /** Seats it gets at most; default without limit. */
  readonly max?: number;
}

export type Counts = ReadonlyMap<string, number>;

/**
 * The method of highest averages with odd divisors (Webster, Sainte-Laguë): the next seat goes to the share with the largest
 * weight / (2 * seats + 1). Minimums come before everything else. Of equals the one with fewer seats is first, then the
 * alphabet decides, backwards if `descending`. Seats are given one at a time and none is ever taken back, so a larger total
 * gives nobody less.
 */
export class HighestAverages {
  readonly #shares: readonly Share[];
  readonly #order: ReadonlyMap<Share, number>;

  constructor(shares: readonly Share[], descending: boolean) {
    const sign = descending ? -1 : 1;
    this.#shares = shares.toSorted((a, b) => (a.name < b.name ? -sign : sign));
    this.#order = new Map(this.#shares.map((share, index) => [share, index]));
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

  /** Negative when the next seat of `a` comes before the next seat of `b`; both are of these shares. */
  compare(a: Share, b: Share, counts: Counts): number {
    const bySeats = compareSeats(a, seats(counts, a), b, seats(counts, b));
    return bySeats === 0 ? (this.#order.get(a) ?? 0) - (this.#order.get(b) ?? 0) : bySeats;
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
   * those, or given up from them in the reverse order.
   */
  divide(total: number, start: Counts = new Map()): { counts: Map<string, number>; unplaced: number } {
    const counts = new Map(this.#shares.map((share) => [share.name, seats(start, share)]));
    let left = total - sum(counts);
    if (left > 0) left -= this.#leap(counts, left);
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
   * Gives most of many seats at once: all whose average is above a bound, where these are no more than there are. They are
   * the first ones anyway, so the rest can go on one by one. Returns how many were given.
   */
  #leap(counts: Map<string, number>, left: number): number {
    const weights = this.#shares.reduce((all, { weight }) => all + weight, 0);
    if (left < 4 * this.#shares.length || weights === 0) return 0;
    const floors = this.#shares.map((share) => Math.max(seats(counts, share), share.min ?? 0));
    // The bound is 1 / (step * unit). Whole weights times whole steps are exact, so that equals are always on one side.
    const unit = 2 ** (Math.ceil(Math.log2((2 * left) / weights)) - 20);
    const reached = (share: Share, index: number, step: number): number => {
      const odd = share.weight * step * unit;
      return Math.max(
        floors[index] ?? 0,
        Math.min(odd > 1 ? Math.ceil((odd - 1) / 2) : 0, share.max ?? Number.MAX_SAFE_INTEGER),
      );
    };
    const given = (step: number): number => {
      let all = 0;
      for (const [index, share] of this.#shares.entries()) all += reached(share, index, step) - seats(counts, share);
      return all;
    };
    if (given(0) > left) return 0;
    let [low, high] = [0, 2 ** 32];
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (given(middle) > left) high = middle;
      else low = middle;
    }
    const all = given(low);
    const seated = this.#shares.map((share, index) => [share.name, reached(share, index, low)] as const);
    for (const [name, count] of seated) counts.set(name, count);
    return all;
  }
}

export function sum(counts: Counts): number {
  let all = 0;
  for (const count of counts.values()) all += count;
  return all;
}

function seats(counts: Counts, share: Share): number {
  return counts.get(share.name) ?? 0;
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
  const [aOver, bOver] = [m > (a.max ?? Number.POSITIVE_INFINITY), n > (b.max ?? Number.POSITIVE_INFINITY)];
  if (aOver !== bOver) return aOver ? 1 : -1;
  return compareSeats(a, m - 1, b, n - 1);
}
