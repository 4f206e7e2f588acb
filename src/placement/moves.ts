import type { WorkloadPlacementStatus } from '../api/workload-placement.ts';
import { folded, type Known, withoutFolded } from './folded-moves.ts';

/** For so long moves of a workload count against the next ones, in ms. */
export const HOUR_MS = 3_600_000;

/** Pods of one workload that were moved for the same reason out of the same place, within a few minutes. Times are wall clock in ms. */
export interface Moves {
  readonly strategy: string;
  /** The cluster they were in; SEVERAL_CLUSTERS (folded-moves.ts) where there were more than can be told apart. */
  readonly from: string;
  readonly count: number;
  readonly since: number;
  /** When the last of them was moved. */
  readonly last: number;
  /** The last of them. */
  readonly pod: string;
  /** Why. */
  readonly message: string;
}

export type Move = Pick<Moves, 'strategy' | 'from' | 'pod' | 'message'>;

/** Moves that come within so long after the first of them are told together, in ms. */
const TOGETHER_MS = 600_000;

/** When the last of them was moved, in ms: the time that was written down may be wrong. */
type LastOf = (moves: Moves) => number;
const asWritten: LastOf = ({ last }) => last;

/** Those that a WorkloadPlacement has. */
export function storedMoves({ moves = [] }: Pick<WorkloadPlacementStatus, 'moves'> = {}): readonly Moves[] {
  return moves.map(({ since, last, ...rest }) => ({ ...rest, since: Date.parse(since), last: Date.parse(last) }));
}

/** With one more move. The newest are the first. */
export function withMove(moves: readonly Moves[], move: Move, now: number, lastOf = asWritten): readonly Moves[] {
  const same = moves.find(
    (one) =>
      one.strategy === move.strategy &&
      one.from === move.from &&
      one.since <= now &&
      now - Math.min(one.since, lastOf(one)) < TOGETHER_MS,
  );
  const next = { ...move, count: (same?.count ?? 0) + 1, since: same?.since ?? now, last: now };
  return folded([next, ...moves.filter((one) => one !== same)], knownAt(now, lastOf));
}

/** What two replicas know of the moves of one workload. */
export function joinedMoves(
  a: readonly Moves[],
  b: readonly Moves[],
  now: number,
  lastOf = asWritten,
): readonly Moves[] {
  const known = knownAt(now, lastOf);
  const all = new Map<string, Moves>();
  for (const one of withoutFolded(a, b, known).flat()) {
    const key = `${one.strategy} ${one.from} ${String(Math.floor(one.since / 1_000))}`;
    const found = all.get(key);
    if (found === undefined || found.count < one.count) all.set(key, one);
  }
  const joined = [...all.values()].toSorted((x, y) => lastOf(y) - lastOf(x));
  return folded(joined, known);
}

function knownAt(now: number, lastOf: LastOf): Known<Moves> {
  return { lastOf, counts: (one) => now - lastOf(one) < HOUR_MS };
}

/** How many pods were moved within the last so many ms, at most. */
export function movesWithin(moves: readonly Moves[], ms: number, now: number): number {
  return recentOf(moves, ms, now).reduce((sum, { count }) => sum + count, 0);
}

/** In how many ms there will be at most `most` of them; 0: there are no more than that now. */
export function fewEnoughInMs(moves: readonly Moves[], ms: number, now: number, most: number): number {
  let [count, forMs] = [movesWithin(moves, ms, now), 0];
  for (const one of recentOf(moves, ms, now).toSorted((a, b) => b.ageMs - a.ageMs)) {
    if (count <= most) break;
    count -= one.count;
    forMs = ms - one.ageMs;
  }
  return forMs;
}

/** A clock that was ahead when they were written must not hold the others up for longer than that. */
function recentOf(moves: readonly Moves[], ms: number, now: number): { count: number; ageMs: number }[] {
  return moves.map(({ count, last }) => ({ count, ageMs: Math.max(0, now - last) })).filter(({ ageMs }) => ageMs < ms);
}
