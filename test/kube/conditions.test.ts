import { expect, test } from 'vitest';
import { conditionOf, isReady, isTrue } from '../../src/kube/conditions.ts';

const object = {
  status: {
    conditions: [
      { type: 'Scheduled', status: 'False' },
      { type: 'Ready', status: 'True' },
    ],
  },
};

test('conditions are found by their type, and missing ones are not true', () => {
  expect(conditionOf(object, 'Scheduled')).toEqual({ type: 'Scheduled', status: 'False' });
  expect([isReady(object), isTrue(object, 'Scheduled'), isTrue(object, 'Other')]).toEqual([true, false, false]);
  expect([isReady({}), isReady({ status: {} })]).toEqual([false, false]);
});
