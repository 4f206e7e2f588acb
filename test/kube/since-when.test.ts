import { expect, test } from 'vitest';
import { SinceWhen } from '../../src/kube/since-when.ts';

test('what is so counts from the first look that finds it so, each by itself, and anew once one finds it otherwise', () => {
  const since = new SinceWhen();
  expect([since.lasting('a', true, 5), since.lasting('a', true, 7), since.lasting('b', true, 7)]).toEqual([0, 2, 0]);
  expect([since.lasting('a', false, 8), since.lasting('a', true, 9), since.lasting('b', true, 9)]).toEqual([0, 0, 2]);
  since.forget('b');
  expect(since.lasting('b', true, 12)).toBe(0);
});

test('what lasts may count anew, and what does not begins by no such word', () => {
  const since = new SinceWhen();
  since.lasting('a', true, 0);
  since.countAnew('a', 4);
  since.countAnew('b', 4);
  expect([since.lasting('a', true, 5), since.lasting('b', true, 5)]).toEqual([1, 0]);
});
