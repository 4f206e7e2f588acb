import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { NamespaceRefusals } from '../../src/kube/namespace-refusals.ts';

let now = 0;
let refusals: NamespaceRefusals;
beforeEach(() => {
  vi.spyOn(performance, 'now').mockImplementation(() => now);
  refusals = new NamespaceRefusals({ rest: 60_000, late: 5_000 });
});
afterEach(() => {
  vi.restoreAllMocks();
});
const rests = (...keys: string[]): number[] => keys.map((key) => refusals.restMs(key));

it('lets a namespace rest, of which what was never refused is tried first, and one at a time', () => {
  expect(refusals.note('blog/a', 'no')).toBe(true);
  expect(refusals.note('blog/b', 'never')).toBe(false);
  expect([...refusals.words()]).toEqual([['blog', 'never']]);
  expect(refusals.keys()).toEqual(['blog/a', 'blog/b']);
  expect(rests('blog/a', 'blog/b', 'blog/c', 'blog/d', 'shop/a')).toEqual([65_000, 70_000, 60_000, 60_000, 0]);
  now += 60_000;
  expect(rests('blog/a', 'blog/c', 'blog/d')).toEqual([5_000, 0, 60_000]);
  // As after a conflict.
  expect(rests('blog/c')).toEqual([0]);
});

it('is over when one that was refused is well, and not when another one had nothing to write', () => {
  refusals.note('blog/a', 'no');
  expect([refusals.passed('blog/b'), refusals.passed('shop/a'), refusals.has('blog')]).toEqual([false, false, true]);
  now += 65_000;
  expect(rests('blog/a')).toEqual([0]);
  expect([refusals.passed('blog/a'), refusals.has('blog')]).toEqual([true, false]);
  expect(refusals.passed('blog/a')).toBe(false);
});

it('is not stuck when what was refused does not come back', () => {
  for (const key of ['blog/a', 'blog/b']) refusals.note(key, 'no');
  now += 70_000;
  expect(rests('blog/b')).toEqual([0]);
  expect([refusals.passed('blog/b'), refusals.has('blog')]).toEqual([true, false]);
});

it('holds nothing else up for one that is refused for ever, and goes on saying so', () => {
  refusals.note('blog/a', 'no');
  now += 60_000;
  expect(rests('blog/b')).toEqual([0]);
  expect(refusals.passed('blog/b')).toBe(true);
  for (let i = 0; i < 3; i++) {
    expect(rests('blog/b', 'blog/c')).toEqual([0, 0]);
    expect([refusals.passed('blog/b'), refusals.passed('blog/c')]).toEqual([false, false]);
    now += 65_000;
    expect(rests('blog/a')).toEqual([0]);
    expect(refusals.note('blog/a', 'no')).toBe(false);
    expect(rests('blog/a')).toEqual([65_000]);
  }
  expect(refusals.has('blog')).toBe(true);
});

it('lets those that are refused for ever take turns, and all others wait anew for each of them', () => {
  for (const key of ['blog/a', 'blog/b', 'blog/c']) refusals.note(key, 'no');
  const tried: string[] = [];
  for (let i = 0; i < 6; i++) {
    now += 65_000;
    for (const key of ['blog/a', 'blog/b', 'blog/c']) {
      if (refusals.restMs(key) > 0) continue;
      tried.push(key);
      refusals.note(key, 'no');
    }
  }
  expect(tried).toEqual(['a', 'b', 'c', 'a', 'b', 'c'].map((name) => `blog/${name}`));
  now += 60_000;
  expect(rests('blog/d')).toEqual([0]);
  refusals.note('blog/d', 'no');
  expect(rests('blog/e')).toEqual([60_000]);
});
