import { expect, it } from 'vitest';
import { differing, exactDivision } from '../../bench/exact-division.ts';

const weights = (...list: number[]): Map<string, number> =>
  new Map(list.map((weight, index) => [String.fromCodePoint(97 + index), weight]));

it.each([
  ['9@1:3', 9, weights(1, 3), { a: 2, b: 7 }],
  ['12@6:12:18', 12, weights(6, 12, 18), { a: 2, b: 4, c: 6 }],
  ['8@1:2:4', 8, weights(1, 2, 4), { a: 1, b: 2, c: 5 }],
  ['2@3:1: of equals the one with fewer', 2, weights(3, 1), { a: 1, b: 1 }],
  ['50@1:100', 50, weights(1, 100), { b: 50 }],
  ['51@1:100', 51, weights(1, 100), { a: 1, b: 50 }],
  ['1000@1:2:3', 1000, weights(1, 2, 3), { a: 167, b: 333, c: 500 }],
  ['nothing without weight', 5, weights(0, 2), { b: 5 }],
])('divides %s', (_name, replicas, list, expected) => {
  expect(Object.fromEntries(exactDivision(replicas, list, false))).toEqual(expected);
});

it('breaks ties by name, either way', () => {
  expect(Object.fromEntries(exactDivision(4, weights(1, 1, 1), false))).toEqual({ a: 2, b: 1, c: 1 });
  expect(Object.fromEntries(exactDivision(4, weights(1, 1, 1), true))).toEqual({ a: 1, b: 1, c: 2 });
});

it('names what differs', () => {
  expect(differing(weights(1, 2, 3), weights(1, 2, 3))).toEqual([]);
  expect(differing(weights(1, 2), weights(1, 3, 1))).toEqual(['b', 'c']);
});
