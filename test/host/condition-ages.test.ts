import { expect, test } from 'vitest';
import type { MemberCluster } from '../../src/api/member-cluster.ts';
import { ConditionAges } from '../../src/host/condition-ages.ts';

const SINCE = '2026-01-01T00:00:00Z';
const ready = (status: 'True' | 'False', lastTransitionTime = SINCE) => ({
  type: 'Ready',
  status,
  reason: 'Test',
  message: '',
  lastTransitionTime,
});
const member = (...conditions: ReturnType<typeof ready>[]): MemberCluster =>
  ({ metadata: { name: 'east', uid: 'u' }, spec: {}, status: { conditions } }) as unknown as MemberCluster;

test('a condition is as old as it was seen to be so, whatever its time says', () => {
  let now = 0;
  const ages = new ConditionAges(() => now);
  const no = member(ready('False'));
  const age = (one = ready('False')): number => ages.forMs(no, one);
  expect(age()).toBe(0);
  ages.observe([no]);
  now += 5_000;
  ages.observe([no]);
  now += 5_000;
  expect(age()).toBe(10_000);
  // It was otherwise meanwhile: within a second, or before this process looked again.
  ages.observe([member(ready('True'))]);
  ages.observe([no]);
  expect(age()).toBe(0);
  now += 1_000;
  const anew = ready('False', '2026-01-01T00:01:00Z');
  ages.observe([member(anew)]);
  expect([age(anew), age()]).toEqual([0, 0]);
});
