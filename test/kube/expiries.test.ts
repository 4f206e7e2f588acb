import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { Expiries } from '../../src/kube/expiries.ts';

test('gives each away once when its time is over, and forgets what was taken out or said anew', () => {
  const expiries = new Expiries<string>();
  expiries.set('a', 'first', 10);
  expiries.set('b', 'second', 20);
  expiries.set('c', 'third', 10);
  expiries.delete('c');
  expect(expiries.takeEnded(9)).toEqual([]);
  expiries.set('a', 'first, for longer', 15);
  expect(expiries.takeEnded(10)).toEqual([]);
  expect(expiries.takeEnded(15)).toEqual(['first, for longer']);
  expect(expiries.takeEnded(15)).toEqual([]);
  expiries.set('d', 'over already', 3);
  expect(expiries.takeEnded(20)).toEqual(['second', 'over already']);
  expect(expiries.takeEnded(1_000)).toEqual([]);
});

test('misses none, whatever is set and taken out meanwhile', () => {
  const key = fc.constantFrom('a', 'b', 'c', 'd');
  const steps = fc.array(fc.record({ key, until: fc.option(fc.nat(50), { nil: undefined }), passes: fc.nat(10) }), {
    maxLength: 40,
  });
  fc.assert(
    fc.property(steps, (all) => {
      const expiries = new Expiries<string>();
      const plain = new Map<string, number>();
      let now = 0;
      for (const { key, until, passes } of all) {
        if (until === undefined) {
          expiries.delete(key);
          plain.delete(key);
        } else {
          expiries.set(key, key, until);
          plain.set(key, until);
        }
        now += passes;
        const ended = [...plain].filter(([, at]) => at <= now).map(([one]) => one);
        for (const one of ended) plain.delete(one);
        expect(expiries.takeEnded(now).toSorted()).toEqual(ended.toSorted());
      }
    }),
  );
});
