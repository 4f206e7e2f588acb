import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { NamespaceRefusals } from '../../src/services/namespace-refusals.ts';

let now = 0;
const waits = { rest: 60_000, late: 5_000 };
beforeEach(() => {
  vi.spyOn(performance, 'now').mockImplementation(() => now);
});
afterEach(() => {
  vi.restoreAllMocks();
});

it('lets a namespace rest, of which the Service that was refused is tried first', () => {
  const refusals = new NamespaceRefusals(waits);
  expect(refusals.note('blog/a', 'no')).toBe(true);
  expect(refusals.note('blog/b', 'never')).toBe(false);
  expect([...refusals.words()]).toEqual([['blog', 'never']]);
  expect(['blog/a', 'blog/b', 'shop/a'].map((key) => refusals.restMs(key))).toEqual([65_000, 60_000, 0]);
  now += 60_000;
  expect(['blog/a', 'blog/b'].map((key) => refusals.restMs(key))).toEqual([5_000, 0]);
});

it('is over when the Service that is tried for all is well, and not when another one had nothing to write', () => {
  const refusals = new NamespaceRefusals(waits);
  refusals.note('blog/a', 'no');
  expect([refusals.over('blog/b'), refusals.over('shop/a'), refusals.has('blog')]).toEqual([false, false, true]);
  expect([refusals.over('blog/a'), refusals.has('blog')]).toEqual([true, false]);
  expect(refusals.over('blog/a')).toBe(false);
});

it('is not stuck when the Service that was refused does not come back', () => {
  const refusals = new NamespaceRefusals(waits);
  refusals.note('blog/a', 'no');
  now += 65_000;
  expect(refusals.restMs('blog/b')).toBe(0);
  expect(refusals.over('blog/b')).toBe(true);
});
