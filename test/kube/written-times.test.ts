import { beforeEach, expect, test } from 'vitest';
import { WrittenTimes } from '../../src/kube/written-times.ts';

const MINUTE_MS = 60_000;
let [wall, elapsed] = [0, 0];
let times: WrittenTimes;

beforeEach(() => {
  [wall, elapsed] = [1e12, 0];
  times = new WrittenTimes({ clock: () => wall, monotonic: () => elapsed });
});

function pass(ms: number): void {
  wall += ms;
  elapsed += ms;
}

test('what has been counts as written, and so does what is ahead by as much as clocks differ', () => {
  for (const written of [0, wall, wall + MINUTE_MS]) expect(times.at(`a ${String(written)}`, written)).toBe(written);
  expect(times.at('a', Number.NaN)).toBeNaN();
});

test('what is ahead was when it was first seen, also when its time has come', () => {
  const [written, seen] = [wall + 60 * MINUTE_MS, wall];
  expect(times.at('a', written)).toBe(seen);
  for (let hours = 0; hours < 3; hours += 1) {
    pass(60 * MINUTE_MS);
    expect(times.at('a', written)).toBe(seen);
  }
  expect(times.at('b', written)).toBe(written);
});

test('how long ago that was is measured, whatever the wall clock says', () => {
  const written = wall + 60 * MINUTE_MS;
  times.at('a', written);
  pass(MINUTE_MS);
  wall += 1e9;
  expect(wall - times.at('a', written)).toBe(MINUTE_MS);
  wall -= 2e9;
  expect(wall - times.at('a', written)).toBe(MINUTE_MS);
});
