import { describe, expect, it } from 'vitest';
import { measured, median, quantile, thirds, withSpread } from '../../bench/measurement.ts';

describe('measured', () => {
  it('judges by the better direction, the goal itself being good enough', () => {
    expect(measured('a', 0.7, 'ratio', 'higher', 0.7).ok).toBe(true);
    expect(measured('a', 0.69, 'ratio', 'higher', 0.7).ok).toBe(false);
    expect(measured('a', 12, 's', 'lower', 12).ok).toBe(true);
    expect(measured('a', 12.01, 's', 'lower', 12).ok).toBe(false);
  });

  it('judges the value as measured, not as rounded', () => {
    expect(measured('a', 220.04, 'MB', 'lower', 220)).toMatchObject({ value: 220, ok: false });
  });

  it('never takes a missing figure for a met goal', () => {
    expect(measured('a', Number.NaN, 's', 'lower', 1).ok).toBe(false);
    expect(measured('a', Number.NaN, 's', 'lower').ok).toBe(true);
  });
});

describe('median and quantile', () => {
  it('take the middle', () => {
    expect(median([3, 1, 2])).toBe(2);
    expect(median([4, 1, 3, 2])).toBe(2.5);
    expect(median([])).toBeNaN();
  });

  it('take the value at the rank', () => {
    const values = Array.from({ length: 100 }, (_, index) => 100 - index);
    expect(quantile(values, 0.5)).toBe(50);
    expect(quantile(values, 0.99)).toBe(99);
    expect(quantile(values, 1)).toBe(100);
    expect(quantile([7], 0.99)).toBe(7);
  });
});

describe('the spread', () => {
  it.each<[what: string, value: number, parts: number[], spread: number | undefined]>([
    ['half of the range, as a share', 10, [9, 10, 12], 0.15],
    ['also below zero', -2, [-1, -3], 0.5],
    ['of parts that are all the same', 3, [3, 3], 0],
    ['unknown of one part', 3, [3], undefined],
    ['unknown of none', 3, [], undefined],
    ['unknown where the figure is 0', 0, [0, 1], undefined],
    ['unknown where a part is missing', 1, [1, Number.NaN], undefined],
  ])('is %s', (_what, value, parts, spread) => {
    expect(withSpread(measured('a', value, 's', 'lower'), parts).spread).toBe(spread);
  });

  it('is taken between the thirds of many samples, in their order', () => {
    expect(thirds([1, 1, 1, 5, 5, 5, 2, 2], median)).toEqual([1, 5, 2]);
    expect(thirds([1, 2, 3, 4, 5], median)).toEqual([]);
  });
});
