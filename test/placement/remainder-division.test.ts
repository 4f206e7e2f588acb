import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fnv32, fnv32a } from '../../src/kube/fnv.ts';
import { divideRemainder } from '../../src/placement/remainder-division.ts';
import type { RemainderShare } from '../../src/placement/remainder-division.ts';

const share = (name: string, more: Partial<RemainderShare> = {}): RemainderShare => ({
  name,
  weight: 1,
  first: 0,
  min: 0,
  max: undefined,
  current: 0,
  capacity: undefined,
  ...more,
});
const divide = (total: number, shares: readonly RemainderShare[], rebalance = true) => {
  const { counts, unplaced } = divideRemainder(total, shares, { rebalance, key: '' });
  return { ...Object.fromEntries(counts), unplaced };
};

describe('known divisions of KubeFed', () => {
  it.each([
    [
      '10; c1 min2 max6 w2; c2 min4 max8 w3',
      10,
      [share('c1', { min: 2, max: 6, weight: 2 }), share('c2', { min: 4, max: 8, weight: 3 })],
      { c1: 3, c2: 7 },
    ],
    [
      '9; A min4 max6 w1; B min4 max8 w2',
      9,
      [share('A', { min: 4, max: 6, weight: 1 }), share('B', { min: 4, max: 8, weight: 2 })],
      { A: 4, B: 5 },
    ],
    ['50; * w1, C max20, B down', 50, [share('A'), share('C', { max: 20 })], { A: 30, C: 20 }],
    [
      '91; A w10000 max10; B w1; C w1 max21; D w1 max10; E w1',
      91,
      [
        share('A', { weight: 10_000, max: 10 }),
        share('B'),
        share('C', { max: 21 }),
        share('D', { max: 10 }),
        share('E'),
      ],
      { A: 10, B: 25, C: 21, D: 10, E: 25 },
    ],
    [
      '50 over A,B,C w1, C capacity 10',
      50,
      [share('A'), share('B'), share('C', { capacity: 10 })],
      { A: 20, B: 20, C: 10 },
    ],
  ])('%s', (_name, total, shares, expected) => {
    expect(divide(total, shares)).toEqual({ ...expected, unplaced: 0 });
  });

  it('50; A has 10, B has 70, rebalance off -> A0 B50', () => {
    expect(divide(50, [share('A', { current: 10 }), share('B', { current: 70 })], false)).toEqual({
      A: 0,
      B: 50,
      unplaced: 0,
    });
  });

  it('keeps what runs and gives new pods to those that are behind', () => {
    expect(divide(40, [share('A', { current: 5 }), share('B', { current: 25 })], false)).toEqual({
      A: 15,
      B: 25,
      unplaced: 0,
    });
  });
});

it('never asks for more than the total, whatever the limits', () => {
  const some = fc.uniqueArray(
    fc.record({
      name: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'),
      weight: fc.nat(20),
      first: fc.nat(2),
      min: fc.nat(5),
      max: fc.option(fc.integer({ min: 5, max: 40 }), { nil: undefined }),
      current: fc.nat(60),
      capacity: fc.option(fc.nat(60), { nil: undefined }),
    }),
    { selector: ({ name }) => name },
  );
  fc.assert(
    fc.property(some, fc.nat(200), fc.boolean(), (shares, total, rebalance) => {
      const { counts, unplaced } = divideRemainder(total, shares, { rebalance, key: 'k' });
      expect([...counts.values()].reduce((all, one) => all + one, 0) + unplaced).toBe(total);
      for (const { name, max = Infinity, capacity = Infinity } of shares) {
        expect(counts.get(name)).toBeGreaterThanOrEqual(0);
        expect(counts.get(name)).toBeLessThanOrEqual(Math.min(max, capacity));
      }
    }),
  );
});

it('comes to an end at once when much is kept and little is left', () => {
  const many = 2 ** 30;
  const shares = [share('A', { current: many, weight: 3 }), share('B', { current: many, weight: 1 })];
  const started = performance.now();
  expect(divide(2 * many + 1, shares, false)).toEqual({ A: many + 1, B: many, unplaced: 0 });
  expect(performance.now() - started).toBeLessThan(100);
});

it('is the same when rounds that are alike are taken at once', () => {
  const some = fc.uniqueArray(
    fc.record({
      name: fc.constantFrom('a', 'b', 'c', 'd'),
      weight: fc.nat(9),
      current: fc.nat(80),
      max: fc.option(fc.integer({ min: 0, max: 90 }), { nil: undefined }),
    }),
    { selector: ({ name }) => name },
  );
  fc.assert(
    fc.property(some, fc.nat(250), (list, total) => {
      const shares = list.map(({ name, ...more }) => share(name, more));
      const { counts } = divideRemainder(total, shares, { rebalance: false, key: 'k' });
      expect(Object.fromEntries(counts)).toEqual(roundByRound(total, shares));
    }),
  );
});

/** KubeFed's rounds, each of them by itself. */
function roundByRound(total: number, shares: readonly RemainderShare[]): Record<string, number> {
  let left = total;
  const states = shares
    .toSorted((a, b) => b.weight - a.weight || fnv32(`${a.name}k`) - fnv32(`${b.name}k`))
    .map((one) => {
      const kept = Math.min(one.current, one.max ?? Infinity, left);
      left -= kept;
      return { ...one, planned: kept, kept };
    });
  let open = states;
  for (let moved = true; moved && left > 0;) {
    moved = false;
    const weights = open.reduce((all, { weight }) => all + weight, 0);
    if (weights === 0) break;
    const round = left;
    const stillOpen: typeof states = [];
    for (const state of open) {
      const due = Math.min(Math.ceil((round * state.weight) / weights), left);
      const covered = Math.min(due, state.kept);
      state.kept -= covered;
      const wanted = state.planned + due - covered;
      const planned = Math.max(state.planned, Math.min(wanted, state.max ?? Infinity));
      if (wanted <= (state.max ?? Infinity)) stillOpen.push(state);
      if (covered > 0 || planned > state.planned) moved = true;
      left -= planned - state.planned;
      state.planned = planned;
    }
    open = stillOpen;
  }
  return Object.fromEntries(states.map(({ name, planned }) => [name, planned]));
}

it.each([
  ['', 0x811c9dc5, 0x811c9dc5],
  ['a', 0xe40c292c, 0x050c5d7e],
  ['foobar', 0xbf9cf968, 0x31f0b262],
])('hashes %j as FNV does', (text, a, one) => {
  expect(fnv32a(text)).toBe(a);
  expect(fnv32(text)).toBe(one);
});
