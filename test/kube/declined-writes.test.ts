import { expect, it } from 'vitest';
import { DeclinedWrites } from '../../src/kube/declined-writes.ts';

it('knows what a cluster stored differently, as long as neither what is sent nor what is there changes', () => {
  const declined = new DeclinedWrites();
  expect(declined.has('a', { x: 1 }, { x: 2 })).toBe(false);
  declined.note('a', { x: 1, y: 1 }, { x: 2 }, false);
  expect(declined.has('a', { y: 1, x: 1 }, { x: 2 })).toBe(true);
  expect(declined.has('b', { y: 1, x: 1 }, { x: 2 })).toBe(false);
  expect(declined.has('a', { x: 1, y: 2 }, { x: 2 })).toBe(false);
  expect(declined.has('a', { x: 1, y: 1 }, { x: 3 })).toBe(false);
});

it('forgets what is stored as it was sent, and what is gone', () => {
  const declined = new DeclinedWrites();
  for (const key of ['a', 'b']) declined.note(key, 1, 2, false);
  declined.note('a', 1, 1, true);
  declined.forget('b');
  expect(['a', 'b'].map((key) => declined.has(key, 1, 2))).toEqual([false, false]);
});
