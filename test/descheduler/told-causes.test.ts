import { expect, test } from 'vitest';
import { ToldCauses } from '../../src/descheduler/told-causes.ts';

const MINUTE = 60_000;

test('a cause is told once, another one at once, and the same again after twenty minutes', () => {
  let now = 0;
  const told = new ToldCauses(() => now);
  expect(told.isToBeTold('web', 'no room')).toBe(true);
  now = 20 * MINUTE - 1;
  expect(told.isToBeTold('web', 'no room')).toBe(false);
  expect(told.isToBeTold('db', 'no room')).toBe(true);
  now += 1;
  expect(told.isToBeTold('web', 'no room')).toBe(true);
  expect(told.isToBeTold('web', 'a budget')).toBe(true);
  expect(told.isToBeTold('web', 'no room')).toBe(true);
});

test('what is forgotten is told anew', () => {
  const told = new ToldCauses(() => 0);
  for (const about of ['a', 'b', 'c']) told.isToBeTold(about, 'why');
  told.forget('a');
  told.keepOnly((about) => about !== 'b');
  expect(['a', 'b', 'c'].map((about) => told.isToBeTold(about, 'why'))).toEqual([true, true, false]);
});
