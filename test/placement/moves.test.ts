import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { MOST_MOVES } from '../../src/api/workload-placement.ts';
import { fewEnoughInMs, joinedMoves, type Moves, movesWithin, withMove } from '../../src/placement/moves.ts';

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
    expect(joinedMoves(mine, stored)).toEqual(mine);
    const others = withMove([], move('B', 'west'), 9_000);
    expect(joinedMoves(mine, others)).toEqual([...others, ...mine]);
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
