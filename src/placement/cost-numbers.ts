import type { CostPlace } from './cost-places.ts';

/** Between two bands, so that others fit in later without a change of those that are there. */
const GAP = 10_000;
const LIMIT = 2 ** 31 - 1;
/** Of the room between two numbers new ones take the last eighth: a run of pods mostly grows at its front. */
const SHARE = 8;
/** Where there was no room at all, this much is made. */
const ROOMY = 64;

/**
 * The cost of every place: what is kept, and numbers between for the others. Where there is no number left between two that
 * are kept, as few as possible of their neighbours get new ones too, so that there is room again for many.
 */
export function costNumbers(places: readonly CostPlace[], kept: ReadonlySet<number>): number[] {
  const costs = places.map(({ pod }) => pod.cost ?? 0);
  for (let start = 0; start < places.length; start += 1) {
    if (kept.has(start)) continue;
    let end = start;
    while (end < places.length && !kept.has(end)) end += 1;
    const run = fill(places, costs, [start, end], SHARE) ?? widen(places, kept, costs, [start, end]);
    for (const [index, cost] of run.costs.entries()) costs[run.from + index] = cost;
    start = run.from + run.costs.length;
  }
  return costs;
}

type Range = readonly [number, number];

interface Run {
  readonly from: number;
  readonly costs: readonly number[];
  /** Between two numbers at least. */
  readonly step: number;
}

/** Numbers for a range of places, between those of its neighbours; undefined when there are not enough. */
function fill(
  places: readonly CostPlace[],
  costs: readonly number[],
  [from, to]: Range,
  share: number,
): Run | undefined {
  const [left, right] = [places[from - 1], places[to]];
  const bands = new Set(places.slice(from, to).map(({ band }) => band));
  if (left !== undefined) bands.delete(left.band);
  if (right !== undefined) bands.delete(right.band);
  const [low, high] = [costs[from - 1], costs[to]];
  const found = between([low, high], bands.size, share);
  if (found === undefined) return undefined;
  const byBand = new Map([...bands].map((band, index) => [band, found.first + index * found.step]));
  const own = places.slice(from, to).map(({ band }) => byBand.get(band) ?? (band === left?.band ? low : high) ?? 0);
  return { from, costs: own, step: found.step };
}

/** Takes in more and more neighbours, of whichever side is enough first. In the end these are all. */
function widen(
  places: readonly CostPlace[],
  kept: ReadonlySet<number>,
  costs: readonly number[],
  [start, end]: Range,
): Run {
  const upTo = (index: number): number => {
    let to = Math.min(index, places.length);
    while (to < places.length && !kept.has(to)) to += 1;
    return to;
  };
  for (let more = 1; more < places.length; more *= 2) {
    const from = Math.max(0, start - more);
    const ranges: Range[] = [
      [from, end],
      [start, upTo(end + more)],
      [from, upTo(end + more)],
    ];
    for (const range of ranges) {
      const run = fill(places, costs, range, 1);
      if (run !== undefined && run.step >= ROOMY) return run;
    }
  }
  return fill(places, costs, [0, places.length], 1) ?? { from: 0, costs: [...costs], step: 0 };
}

/** So many rising numbers strictly between two; outside of one where the other is missing. */
function between(
  [low, high]: readonly [number | undefined, number | undefined],
  count: number,
  share: number,
): { first: number; step: number } | undefined {
  if (count === 0) return { first: 0, step: GAP };
  if (low !== undefined && high !== undefined) {
    const step = Math.max(1, Math.floor((high - low) / (count * share + 1)));
    return count * step < high - low ? { first: high - count * step, step } : undefined;
  }
  // Those that go last need not be written while they have 0.
  const first = low === undefined ? (high ?? GAP) - count * GAP : low + GAP;
  const last = first + (count - 1) * GAP;
  return first >= -LIMIT && last <= LIMIT ? { first, step: GAP } : undefined;
}
