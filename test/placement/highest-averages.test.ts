import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { HighestAverages, sum } from '../../src/placement/highest-averages.ts';
import type { Share } from '../../src/placement/share.ts';

const shares = (weights: readonly number[]): Share[] =>
  weights.map((weight, index) => ({ name: String.fromCodePoint(97 + index), weight }));
const divide = (total: number, weights: readonly number[], descending = false): number[] => {
  const list = shares(weights);
  const { counts } = new HighestAverages(list, descending).divide(total);
  return list.map(({ name }) => counts.get(name) ?? 0);
};

describe('known divisions', () => {
  it.each([
    ['9@1:2 -> 3,6', 9, [1, 2], [3, 6]],
    ['9@1:3 -> 2,7', 9, [1, 3], [2, 7]],
    ['12@6:12:18 -> 2,4,6', 12, [6, 12, 18], [2, 4, 6]],
    ['4@1:1:1 -> 2,1,1 (even)', 4, [1, 1, 1], [2, 1, 1]],
    ['7@1:2:4 -> 1,2,4', 7, [1, 2, 4], [1, 2, 4]],
    ['then 8 -> 1,2,5', 8, [1, 2, 4], [1, 2, 5]],
    ['2@3:1 -> 1,1 (tie: fewer first)', 2, [3, 1], [1, 1]],
    ['50@1:100 -> 0,50', 50, [1, 100], [0, 50]],
    ['51 -> 1,50', 51, [1, 100], [1, 50]],
    ['present 2,4,6 down to 5 -> 1,2,2', 5, [2, 4, 6], [1, 2, 2]],
    ['delta 8 with free 4:8:6 -> 2,3,3', 8, [4, 8, 6], [2, 3, 3]],
    ['20 over free 18,12 -> 12,8', 20, [18, 12], [12, 8]],
  ])('%s', (_name, total, weights, expected) => {
    expect(divide(total, weights)).toEqual(expected);
  });

  it('4@1:1:1 -> 1,1,2 (odd): the alphabet backwards', () => {
    expect(divide(4, [1, 1, 1], true)).toEqual([1, 1, 2]);
  });

  it('12@1:2:3 goes to weights of any size alike', () => {
    expect(divide(1_000, [100_000, 200_000, 300_000])).toEqual([167, 333, 500]);
    expect(divide(1_000, [1, 2, 3])).toEqual([167, 333, 500]);
  });
});

describe('limits', () => {
  const divided = (total: number, list: readonly Share[], start?: ReadonlyMap<string, number>) => {
    const { counts, unplaced } = new HighestAverages(list, false).divide(total, start);
    return { ...Object.fromEntries(counts), unplaced };
  };

  it.each([
    [
      'limits on both sides',
      10,
      [
        { name: 'c1', weight: 2, min: 2, max: 6 },
        { name: 'c2', weight: 3, min: 4, max: 8 },
      ],
      { c1: 4, c2: 6, unplaced: 0 },
    ],
    [
      'a minimum above the share',
      9,
      [
        { name: 'A', weight: 1, min: 4, max: 6 },
        { name: 'B', weight: 2, min: 4, max: 8 },
      ],
      { A: 4, B: 5, unplaced: 0 },
    ],
    [
      'maximums that push the rest to the others',
      91,
      [
        { name: 'A', weight: 10_000, max: 10 },
        { name: 'B', weight: 1 },
        { name: 'C', weight: 1, max: 21 },
        { name: 'D', weight: 1, max: 10 },
        { name: 'E', weight: 1 },
      ],
      { A: 10, B: 25, C: 21, D: 10, E: 25, unplaced: 0 },
    ],
    ['more than all may take', 9, [{ name: 'a', weight: 1, max: 2 }], { a: 2, unplaced: 7 }],
    ['nothing beyond the minimum without weight', 5, [{ name: 'a', weight: 0, min: 2 }], { a: 2, unplaced: 3 }],
    [
      'fewer than the minimums: by weight among them',
      3,
      [
        { name: 'a', weight: 1, min: 5 },
        { name: 'b', weight: 2, min: 5 },
      ],
      { a: 1, b: 2, unplaced: 0 },
    ],
    ['nobody', 3, [], { unplaced: 3 }],
  ])('%s', (_name, total, list, expected) => {
    expect(divided(total, list)).toEqual(expected);
  });

  it('shrinks the most over-served first', () => {
    const equal = [
      { name: 'A', weight: 1 },
      { name: 'B', weight: 1 },
    ];
    const start = new Map([
      ['A', 10],
      ['B', 70],
    ]);
    expect(divided(50, equal, start)).toEqual({ A: 10, B: 40, unplaced: 0 });
  });

  it('takes what is above a maximum away before anything else', () => {
    const list = [
      { name: 'A', weight: 1 },
      { name: 'B', weight: 100, max: 3 },
    ];
    const start = new Map([
      ['A', 5],
      ['B', 5],
    ]);
    expect(divided(8, list, start)).toEqual({ A: 5, B: 3, unplaced: 0 });
  });
});

const someShares = fc
  .uniqueArray(
    fc.record({
      name: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'),
      weight: fc.integer({ min: 0, max: 1_000 }),
      min: fc.integer({ min: 0, max: 5 }),
      more: fc.integer({ min: 0, max: 60 }),
    }),
    { selector: ({ name }) => name, minLength: 1 },
  )
  .map((list) => list.map(({ name, weight, min, more }): Share => ({ name, weight, min, max: min + more })));
const total = fc.integer({ min: 0, max: 300 });

describe('properties', () => {
  it('places exactly the total, within the limits', () => {
    fc.assert(
      fc.property(someShares, total, fc.boolean(), (list, all, descending) => {
        const { counts, unplaced } = new HighestAverages(list, descending).divide(all);
        expect(sum(counts) + unplaced).toBe(all);
        const possible = list.reduce((sum, { weight, min = 0, max = 0 }) => sum + (weight > 0 ? max : min), 0);
        expect(sum(counts)).toBe(Math.min(all, possible));
        for (const { name, max = 0 } of list) expect(counts.get(name)).toBeLessThanOrEqual(max);
        const minimums = list.reduce((sum, { min = 0 }) => sum + min, 0);
        if (all >= minimums) for (const { name, min = 0 } of list) expect(counts.get(name)).toBeGreaterThanOrEqual(min);
      }),
    );
  });

  it('is the same as giving seats one by one, from any start and in any order of the list', () => {
    const start = fc.dictionary(fc.constantFrom('a', 'b', 'c', 'd'), fc.nat(200), { noNullPrototype: true });
    const unlimited = fc.boolean();
    fc.assert(
      fc.property(someShares, start, total, unlimited, fc.boolean(), (some, had, more, free, descending) => {
        const list = free ? some.map(({ name, weight }): Share => ({ name, weight })) : some;
        const method = new HighestAverages(list, descending);
        const before = new Map(list.map(({ name }) => [name, had[name] ?? 0]));
        const one = new Map(before);
        for (let seat = 0; seat < more; seat += 1) {
          const share = method.next(one);
          if (share !== undefined) one.set(share.name, (one.get(share.name) ?? 0) + 1);
        }
        const all = sum(before) + more;
        expect(Object.fromEntries(method.divide(all, before).counts)).toEqual(Object.fromEntries(one));
        const turned = new HighestAverages(list.toReversed(), descending).divide(all, before).counts;
        expect(Object.fromEntries(turned)).toEqual(Object.fromEntries(one));
      }),
      { numRuns: 500 },
    );
  });

  it('is the same as taking seats one by one, from any start', () => {
    const start = fc.dictionary(fc.constantFrom('a', 'b', 'c', 'd'), fc.nat(300), { noNullPrototype: true });
    fc.assert(
      fc.property(someShares, start, total, fc.boolean(), fc.boolean(), (some, had, less, free, descending) => {
        const list = free ? some.map(({ name, weight }): Share => ({ name, weight })) : some;
        const method = new HighestAverages(list, descending);
        const before = new Map(list.map(({ name }) => [name, had[name] ?? 0]));
        const one = new Map(before);
        const all = Math.max(0, sum(before) - less);
        while (sum(one) > all) {
          const share = method.last(one);
          if (share === undefined) break;
          one.set(share.name, (one.get(share.name) ?? 0) - 1);
        }
        expect(Object.fromEntries(method.divide(all, before).counts)).toEqual(Object.fromEntries(one));
      }),
      { numRuns: 500 },
    );
  });

  it('is the same in one leap and in several, up and down, for totals of any size', () => {
    const huge = fc.integer({ min: 0, max: 2 ** 31 - 1 });
    const heavy = fc.uniqueArray(
      fc.record({
        name: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'),
        weight: fc.oneof(fc.nat(3), fc.nat(1_000_000)),
        min: fc.oneof(fc.constant(0), fc.nat(1_000_000)),
      }),
      { selector: ({ name }) => name, minLength: 1 },
    );
    fc.assert(
      fc.property(heavy, huge, huge, fc.boolean(), (list, one, other, descending) => {
        const method = new HighestAverages(list, descending);
        const [low, high] = [Math.min(one, other), Math.max(one, other)];
        const small = method.divide(low);
        const large = method.divide(high);
        expect(method.divide(high, small.counts)).toEqual(large);
        fc.pre(large.unplaced === 0);
        expect(method.divide(low, large.counts).counts).toEqual(small.counts);
      }),
    );
  });

  it('never takes a seat away when the total grows, and giving up the last seats undoes growth', () => {
    fc.assert(
      fc.property(someShares, total, fc.integer({ min: 0, max: 50 }), fc.boolean(), (list, all, more, descending) => {
        const method = new HighestAverages(list, descending);
        const before = method.divide(all).counts;
        const after = method.divide(all + more);
        for (const [name, count] of before) expect(after.counts.get(name)).toBeGreaterThanOrEqual(count);
        fc.pre(after.unplaced === 0);
        expect(method.divide(all, after.counts).counts).toEqual(before);
      }),
    );
  });

  it('never gives more than the weight while the total is not more than all weights', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 40 }), { minLength: 1, maxLength: 8 }),
        fc.nat(),
        (weights, seed) => {
          const whole = weights.reduce((all, one) => all + one, 0);
          const counts = divide(whole === 0 ? 0 : seed % (whole + 1), weights);
          for (const [index, count] of counts.entries()) expect(count).toBeLessThanOrEqual(weights[index] ?? 0);
        },
      ),
    );
  });
});

it('divides a million seats over a hundred clusters at once', () => {
  const weights = Array.from({ length: 100 }, (_, index) => index + 1);
  const started = performance.now();
  const counts = divide(1_000_000, weights);
  expect(performance.now() - started).toBeLessThan(200);
  expect(counts.reduce((all, one) => all + one, 0)).toBe(1_000_000);
  expect(Math.abs((counts[99] ?? 0) - (1_000_000 * 100) / 5_050)).toBeLessThan(2);
});
