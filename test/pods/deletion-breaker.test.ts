import { expect, it } from 'vitest';
import { DeletionBreaker } from '../../src/pods/deletion-breaker.ts';

it('lets five deletions through in five minutes, then opens and stays open', () => {
  let now = 0;
  const breaker = new DeletionBreaker({ clock: () => now });
  for (let i = 0; i < 5; i += 1) expect(breaker.allow(10)).toBe(true);
  expect(breaker.allow(10)).toBe(false);
  now = 3_600_000;
  expect(breaker.allow(10)).toBe(false);
  breaker.reset();
  expect(breaker.allow(10)).toBe(true);
});

it('lets ten percent of many pods through', () => {
  const breaker = new DeletionBreaker({ clock: () => 0 });
  for (let i = 0; i < 100; i += 1) expect(breaker.allow(1000)).toBe(true);
  expect(breaker.allow(1000)).toBe(false);
});

it('forgets deletions that are longer ago than its window', () => {
  let now = 0;
  const breaker = new DeletionBreaker({ clock: () => now, windowMs: 1000 });
  for (let i = 0; i < 50; i += 1) {
    expect(breaker.allow(0)).toBe(true);
    now += 500;
  }
});
