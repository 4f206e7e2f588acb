import type { Share } from './share.ts';

/** The seats of a share that are to be given, or may be taken away: their numbers from `from` to before `to`. */
export interface SeatRange {
  readonly share: Share;
  readonly from: number;
  readonly to: number;
}

/** Downwards all seats that a share has; upwards those that it may still get. */
export function rangeOf(share: Share, count: number, downwards: boolean): SeatRange {
  if (downwards) return { share, from: 0, to: count };
  const most = Math.min(share.max ?? MOST, share.weight > 0 ? MOST : (share.min ?? 0));
  return { share, from: count, to: Math.max(count, most) };
}

/** More seats than any total. */
const MOST = 2 ** 40;
/** From the largest bound down to the last bit of the least one. */
const HALVINGS = 128;
const LARGEST_BOUND = 2 ** 42;

/**
 * How many seats each share has when the first `total` of them are given in the order of averages: all below `from`, and of
 * the others those that come first. Of seats whose averages are too much alike for a bound between them none is given,
 * downwards all, so there may be as many too few, or too many, as there are shares.
 */
export function mostSeats(ranges: readonly SeatRange[], total: number, downwards: boolean): Map<string, number> {
  const counts = new Map(ranges.map(({ share, from }) => [share.name, from]));
  let left = total - ranges.reduce((all, { from }) => all + from, 0);
  for (const part of PARTS) {
    const parts = ranges.map((range): SeatRange => ({ share: range.share, ...part(range) }));
    const room = parts.reduce((all, { from, to }) => all + Math.max(0, to - from), 0);
    const bound = room <= left ? Number.POSITIVE_INFINITY : boundFor(parts, left, downwards);
    for (const one of parts) {
      const count = reached(one, bound);
      if (count > one.from) counts.set(one.share.name, count);
    }
    if (room >= left) break;
    left -= room;
  }
  return counts;
}

type Part = (range: SeatRange) => { from: number; to: number };

const NONE = { from: 0, to: 0 };
const heavy =
  (part: Part): Part =>
  (range) =>
    range.share.weight > 0 ? part(range) : NONE;
const weightless =
  (part: Part): Part =>
  (range) =>
    range.share.weight > 0 ? NONE : part(range);
const minimum: Part = ({ share: { min = 0, max = MOST }, from, to }) => ({ from, to: Math.min(to, min, max) });
const usual: Part = ({ share: { min = 0, max = MOST }, from, to }) => ({
  from: Math.max(from, Math.min(min, max)),
  to: Math.min(to, max),
});
const surplus: Part = ({ share: { max = MOST }, from, to }) => ({ from: Math.max(from, max), to });

/** Minimums come before all others, and what is beyond a maximum comes last; of each, what has weight comes first. */
const PARTS = [minimum, usual, surplus].flatMap((part) => [heavy(part), weightless(part)]);

/** The bound that most seats reach but no more than `wanted`; or the next one, which more reach. */
function boundFor(ranges: readonly SeatRange[], wanted: number, more: boolean): number {
  let [low, high] = [0, LARGEST_BOUND];
  for (let halving = 0; halving < HALVINGS; halving += 1) {
    const middle = (low + high) / 2;
    let all = 0;
    for (const range of ranges) all += reached(range, middle) - range.from;
    if (all > wanted) high = middle;
    else low = middle;
  }
  return more ? high : low;
}

/** The number of the first seat of a range whose average is 1 / `bound` or less. Without weights fewer seats come first. */
function reached({ share: { weight }, from, to }: SeatRange, bound: number): number {
  if (to <= from) return from;
  const odd = (weight > 0 ? weight : 1) * bound;
  return Math.max(from, Math.min(to, odd > 1 ? Math.ceil((odd - 1) / 2) : 0));
}
