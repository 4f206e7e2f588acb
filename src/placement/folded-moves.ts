import { MOST_MOVES } from '../api/workload-placement.ts';

/** In the place of a cluster: none has a space in its name. */
export const SEVERAL_CLUSTERS = 'several clusters';

/**
 * Moves of one reason that began within the same so long (ms) are folded together, all of them. What counts within an hour began within 70 minutes,
 * so in four of these at most: with up to 16 reasons all of it has room.
 */
const FOLDED_MS = 1_800_000;

/** Moves as far as they are folded. Times are wall clock in ms. */
export interface Foldable {
  readonly strategy: string;
  readonly from: string;
  readonly count: number;
  readonly since: number;
  readonly last: number;
}

/** What is known of them at a moment. */
export interface Known<T> {
  /** When the last of them was moved, in ms. */
  readonly lastOf: (moves: T) => number;
  /** Whether they count against the next ones. */
  readonly counts: (moves: T) => boolean;
}

/** At most {@link MOST_MOVES}, the newest first: without the oldest that do not count any more, and if they must, with those that do folded. */
export function folded<T extends Foldable>(moves: readonly T[], { lastOf, counts }: Known<T>): readonly T[] {
  if (moves.length <= MOST_MOVES) return moves;
  let counted = moves.filter(counts);
  for (const group of foldable(counted)) {
    if (counted.length <= MOST_MOVES) break;
    const all = new Set(group);
    counted = [...counted.filter((one) => !all.has(one)), asOne(group, lastOf)];
  }
  const others = moves.filter((one) => !counts(one));
  return [...newestFirst(counted, lastOf), ...newestFirst(others, lastOf)].slice(0, MOST_MOVES);
}

/**
 * What two replicas know, of which one may have folded what the other one has one by one: of such a reason and time all is from the one that knows
 * of more. Both together would be counted twice, and once more at each look. (One replica at a time moves pods for a reason.)
 */
export function withoutFolded<T extends Foldable>(
  a: readonly T[],
  b: readonly T[],
  { counts }: Known<T>,
): readonly [readonly T[], readonly T[]] {
  const [ofA, ofB] = [groupsOf(a), groupsOf(b)];
  const better = (own: typeof ofA, others: typeof ofA, isFirst: boolean): T[] =>
    [...own].flatMap(([key, group]) => {
      const other = others.get(key) ?? [];
      if (![...group, ...other].some(({ from }) => from === SEVERAL_CLUSTERS)) return group;
      const more = sumOf(group.filter(counts)) - sumOf(other.filter(counts));
      return more > 0 || (more === 0 && isFirst) ? group : [];
    });
  return [better(ofA, ofB, true), better(ofB, ofA, false)];
}

/** The oldest first, and of those the ones that leave most room. */
function foldable<T extends Foldable>(moves: readonly T[]): T[][] {
  return [...groupsOf(moves).values()]
    .filter((group) => group.length > 1)
    .toSorted((x, y) => timeOf(x) - timeOf(y) || y.length - x.length);
}

function groupsOf<T extends Foldable>(moves: readonly T[]): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const one of moves) {
    const key = `${one.strategy} ${String(timeOf([one]))}`;
    groups.set(key, [...(groups.get(key) ?? []), one]);
  }
  return groups;
}

function timeOf([first]: readonly Foldable[]): number {
  return Math.floor((first?.since ?? 0) / FOLDED_MS);
}

function sumOf(moves: readonly Foldable[]): number {
  return moves.reduce((sum, { count }) => sum + count, 0);
}

/** All count for as long as the last of them. */
function asOne<T extends Foldable>(group: readonly T[], lastOf: (moves: T) => number): T {
  const newest = group.reduce((x, y) => (lastOf(y) > lastOf(x) ? y : x));
  const since = Math.min(...group.map((one) => one.since));
  return { ...newest, from: SEVERAL_CLUSTERS, count: sumOf(group), since, last: lastOf(newest) };
}

function newestFirst<T>(moves: readonly T[], lastOf: (moves: T) => number): T[] {
  return moves.toSorted((x, y) => lastOf(y) - lastOf(x));
}
