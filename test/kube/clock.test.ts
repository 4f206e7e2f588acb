import { afterEach, expect, it, vi } from 'vitest';
import { monotonic, steadyClock } from '../../src/kube/clock.ts';

afterEach(() => void vi.useRealTimers());

it.each([1_800_000, -1_800_000])('neither clock jumps with the wall clock, by %d ms', (ms) => {
  vi.useFakeTimers();
  const [began, since, steady] = [Date.now(), monotonic(), steadyClock()];
  expect(steady()).toBe(began);
  vi.setSystemTime(began + ms);
  expect([monotonic() - since, steady() - began]).toEqual([0, 0]);
  vi.advanceTimersByTime(5_000);
  expect([monotonic() - since, steady() - began]).toEqual([5_000, 5_000]);
  expect(steadyClock()()).toBe(began + ms + 5_000);
});
