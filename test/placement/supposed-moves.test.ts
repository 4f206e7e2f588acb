import { describe, expect, test } from 'vitest';
import { podsAfter, roomsAfter, type SupposedMove } from '../../src/placement/supposed-moves.ts';

const move = (uid: string, from: string, to: string): SupposedMove => ({ uid, from, to });
const MOVES = [move('p1', 'east', 'west'), move('p2', 'east', 'west')];

test('pods are counted where they would be, each with its revision', () => {
  const pods = new Map([
    ['r1', new Map([['east', 2]])],
    ['r2', new Map([['west', 1]])],
  ]);
  const after = podsAfter(pods, MOVES, (uid) => (uid === 'p1' ? 'r1' : 'r2'));
  expect([after.get('r1'), after.get('r2')]).toEqual([
    new Map([
      ['east', 1],
      ['west', 1],
    ]),
    new Map([
      ['east', 0],
      ['west', 2],
    ]),
  ]);
  expect(podsAfter(pods, [], () => undefined)).toBe(pods);
});

describe('room', () => {
  const after = (fits: number | undefined, cluster = 'west', more: object = {}): unknown =>
    roomsAfter(new Map([[cluster, { fits, why: 'full', ...more }]]), MOVES).get(cluster);

  test('is taken where they would go, and free where they are', () => {
    expect(after(3)).toMatchObject({ fits: 1 });
    expect(after(2)).toEqual({ fits: 0, why: 'what is free there is for pods that go before it' });
    expect(after(1)).toMatchObject({ fits: 0 });
    expect(after(0, 'east')).toMatchObject({ fits: 2 });
  });

  test('that nobody knows, or where such a pod can never run, stays so', () => {
    expect(after(undefined)).toEqual({ fits: undefined, why: 'full' });
    expect(after(0, 'east', { impossible: 'no such node' })).toMatchObject({ fits: 0, impossible: 'no such node' });
    expect(after(4, 'other')).toMatchObject({ fits: 4, why: 'full' });
  });
});
