import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { MOST_MOVES } from '../../src/api/workload-placement.ts';
import { fewEnoughInMs, HOUR_MS, joinedMoves, type Moves, movesWithin, withMove } from '../../src/placement/moves.ts';

const MINUTE_MS = 60_000;
const move = (strategy: string, from: string, pod = 'p') => ({ strategy, from, pod, message: 'why' });

describe('moves of a workload', () => {
  test('of ten minutes, for one reason and out of one place, are told together', () => {
    let moves: readonly Moves[] = [];
    moves = withMove(moves, move('A', 'east', 'a'), 0);
    moves = withMove(moves, move('A', 'east', 'b'), 9 * MINUTE_MS);
    moves = withMove(moves, move('A', 'west', 'c'), 9 * MINUTE_MS);
    moves = withMove(moves, move('B', 'east', 'd'), 9 * MINUTE_MS);
    moves = withMove(moves, move('A', 'east', 'e'), 10 * MINUTE_MS);
    expect(moves.map(({ strategy, from, count, pod }) => `${strategy} ${from} ${String(count)} ${pod}`)).toEqual([
      'A east 1 e',
      'B east 1 d',
      'A west 1 c',
      'A east 2 b',
    ]);
  });

  test('are counted for as long as they are asked for, those that were told together as long as the last of them', () => {
    let moves = withMove([], move('A', 'east'), 0);
    moves = withMove(moves, move('A', 'east'), 5 * MINUTE_MS);
    moves = withMove(moves, move('B', 'east'), 20 * MINUTE_MS);
    expect([64, 65, 80].map((now) => movesWithin(moves, 60 * MINUTE_MS, now * MINUTE_MS))).toEqual([3, 1, 0]);
    // A wall clock that was set back since.
    expect(movesWithin(moves, 60 * MINUTE_MS, -1e9)).toBe(3);
    expect(fewEnoughInMs(moves, 60 * MINUTE_MS, -1e9, 2)).toBe(60 * MINUTE_MS);
  });

  test('are counted all where several reasons move them to and fro between clusters for an hour', () => {
    let moves: readonly Moves[] = [];
    let count = 0;
    for (let minute = 0; minute < 60; minute++) {
      for (const strategy of ['A', 'B', 'C', 'D', 'E']) {
        for (const from of ['east', 'west']) {
          moves = withMove(moves, move(strategy, from), minute * MINUTE_MS);
          count += 1;
        }
      }
    }
    expect(movesWithin(moves, 60 * MINUTE_MS, 59 * MINUTE_MS)).toBe(count);
  });

  test('are few enough for more of them when as many of the oldest are forgotten as that takes', () => {
    let moves = withMove([], move('A', 'east'), 0);
    moves = withMove(moves, move('A', 'east'), 5 * MINUTE_MS);
    moves = withMove(moves, move('B', 'east'), 20 * MINUTE_MS);
    const inMs = (most: number, now = 64): number => fewEnoughInMs(moves, 60 * MINUTE_MS, now * MINUTE_MS, most);
    expect([3, 2, 1, 0].map((most) => inMs(most) / MINUTE_MS)).toEqual([0, 1, 1, 16]);
    expect([inMs(1, 65), inMs(0, 65), inMs(0, 80)].map((ms) => ms / MINUTE_MS)).toEqual([0, 15, 0]);
  });

  test('that two replicas know of are joined, whatever is cut off of their times when they are stored', () => {
    const mine = withMove(withMove([], move('A', 'east', 'a'), 1_234), move('A', 'east', 'b'), 2_345);
    const stored = [{ ...move('A', 'east', 'a'), count: 1, since: 1_000, last: 1_000 }];
    expect(joinedMoves(mine, stored, 9_000)).toEqual(mine);
    const others = withMove([], move('B', 'west'), 9_000);
    expect(joinedMoves(mine, others, 9_000)).toEqual([...others, ...mine]);
  });

  test('are limited within each hour, however many clusters they leave', () => {
    const most = 250;
    const real: number[] = [];
    let moves: readonly Moves[] = [];
    for (let now = 0; now < 3 * HOUR_MS; now += 4_000) {
      if (movesWithin(moves, HOUR_MS, now) >= most) continue;
      moves = withMove(moves, move('MemberLost', `member-${String(real.length % 40)}`), now);
      real.push(now);
    }
    const within = real.map((at) => real.filter((other) => other > at - HOUR_MS && other <= at).length);
    expect(Math.max(...within)).toBe(most);
    // They go on as soon as those do not count any more that were told together.
    expect(real.length).toBe(3 * most);
  });

  test('that one replica has folded and another one has not are counted once, by the one that knows of more', () => {
    let one: readonly Moves[] = [];
    let folded: readonly Moves[] = [];
    for (let index = 0; index <= MOST_MOVES; index += 1) {
      folded = withMove(folded, move('A', `member-${String(index)}`), index);
      if (index < MOST_MOVES) one = folded;
    }
    expect([one.length, folded.length, folded[0]?.from]).toEqual([MOST_MOVES, 1, 'several clusters']);
    for (const both of [joinedMoves(one, folded, 100), joinedMoves(folded, one, 100)]) expect(both).toEqual(folded);
    const next = withMove(folded, move('A', 'member-0'), 100);
    expect(movesWithin(joinedMoves(next, folded, 100), HOUR_MS, 100)).toBe(MOST_MOVES + 2);
    const other = withMove([], move('B', 'east'), 100);
    expect(movesWithin(joinedMoves(other, folded, 100), HOUR_MS, 100)).toBe(MOST_MOVES + 2);
  });

  test('are never counted less than they were within an hour, nor much longer, whatever is written down in between', () => {
    const steps = fc.array(
      fc.record({
        strategy: fc.constantFrom('A', 'A', 'A', 'B', 'C'),
        from: fc.nat(40),
        waitMs: fc.oneof({ weight: 9, arbitrary: fc.nat(20_000) }, { weight: 1, arbitrary: fc.nat(600_000) }),
        next: fc.constantFrom('nothing', 'nothing', 'write', 'restart'),
      }),
      { maxLength: 300, size: 'max' },
    );
    // In seconds, as times are stored.
    const cut = (ms: number): number => Math.floor(ms / 1_000) * 1_000;
    fc.assert(
      fc.property(steps, (all) => {
        let [known, stored, now]: [readonly Moves[], readonly Moves[], number] = [[], [], 0];
        const real: number[] = [];
        for (const { strategy, from, waitMs, next } of all) {
          now += waitMs;
          known = withMove(joinedMoves(known, stored, now), move(strategy, `member-${String(from)}`), now);
          real.push(now);
          if (next !== 'nothing') stored = known.map((one) => ({ ...one, since: cut(one.since), last: cut(one.last) }));
          if (next === 'restart') known = [];
          const found = joinedMoves(known, stored, now);
          expect(found.length).toBeLessThanOrEqual(MOST_MOVES);
          const count = movesWithin(found, HOUR_MS, now);
          const since = (ms: number): number => real.filter((at) => at > now - ms).length;
          expect(count).toBeGreaterThanOrEqual(since(HOUR_MS - 1_000));
          expect(count).toBeLessThanOrEqual(since(HOUR_MS + 2_460_000));
        }
      }),
      { endOnFailure: true, numRuns: 25 },
    );
  });

  test(`are ${MOST_MOVES} lines at most, and the newest are never lost`, () => {
    const steps = fc.array(
      fc.record({ strategy: fc.constantFrom('A', 'B', 'C'), from: fc.constantFrom('e', 'w'), wait: fc.nat(30) }),
      { maxLength: 200, size: 'max' },
    );
    fc.assert(
      fc.property(steps, (all) => {
        let [moves, now]: [readonly Moves[], number] = [[], 0];
        for (const { strategy, from, wait } of all) {
          now += wait * MINUTE_MS;
          moves = withMove(moves, move(strategy, from), now);
          expect(moves[0]).toMatchObject({ strategy, from, last: now });
          expect(moves.length).toBeLessThanOrEqual(MOST_MOVES);
        }
        expect(movesWithin(moves, Infinity, now)).toBeLessThanOrEqual(all.length);
      }),
      // The smallest of so many steps would take minutes to find.
      { endOnFailure: true },
    );
  });
});
