import { expect, test } from 'vitest';
import { TokenBucket } from '../../../src/pods/events/token-bucket.ts';

test('gives its size at once, then one per refill time, and never more than its size', () => {
  const bucket = new TokenBucket(3, 100, 0);
  expect([0, 0, 0, 0].map((now) => bucket.take(now))).toEqual([true, true, true, false]);
  expect(bucket.waitMs(0)).toBe(100);
  expect(bucket.waitMs(40)).toBe(60);
  expect(bucket.take(99)).toBe(false);
  expect(bucket.take(100)).toBe(true);
  expect([9000, 9000, 9000, 9000].map((now) => bucket.take(now))).toEqual([true, true, true, false]);
});

test('a clock that goes back gives nothing away', () => {
  const bucket = new TokenBucket(1, 100, 1000);
  expect(bucket.take(1000)).toBe(true);
  expect(bucket.take(500)).toBe(false);
  expect(bucket.waitMs(500)).toBe(100);
});
