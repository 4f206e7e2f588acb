import { expect, it } from 'vitest';
import { DeletionBreaker } from '../../src/pods/deletion-breaker.ts';

it('lets five deletions through in five minutes, then opens and stays open until those held back are confirmed', () => {
  let now = 0;
  const breaker = new DeletionBreaker({ monotonic: () => now });
  for (let i = 0; i < 5; i += 1) expect(breaker.permit(`pod-${i}`, 10)).toBe(true);
  expect(breaker.permit('pod-5', 10)).toBe(false);
  expect(breaker.redeem('pod-0')).toBe(false);
  now = 3_600_000;
  expect(breaker.permit('pod-5', 10)).toBe(false);
  expect(breaker.open).toBe(true);
  breaker.confirm(['pod-5']);
  expect(breaker.open).toBe(false);
  expect(breaker.permit('pod-5', 10)).toBe(true);
  expect(breaker.redeem('pod-5')).toBe(true);
  expect(breaker.redeem('pod-6')).toBe(false);
});

it('lets ten percent of many pods through, and counts each pod once', () => {
  const breaker = new DeletionBreaker({ monotonic: () => 0 });
  for (let i = 0; i < 100; i += 1) {
    expect(breaker.permit(`pod-${i}`, 1000)).toBe(true);
    expect(breaker.permit(`pod-${i}`, 1000)).toBe(true);
  }
  expect(breaker.permit('pod-100', 1000)).toBe(false);
});

it('forgets deletions that are longer ago than its window', () => {
  let now = 0;
  const breaker = new DeletionBreaker({ monotonic: () => now, windowMs: 1000 });
  for (let i = 0; i < 50; i += 1) {
    expect(breaker.permit(`pod-${i}`, 0)).toBe(true);
    now += 500;
  }
});

it('is as open as a former process left it', () => {
  const breaker = new DeletionBreaker({ open: true });
  expect(breaker.permit('pod-0', 10)).toBe(false);
  expect(breaker.redeem('pod-0')).toBe(false);
});
