import { expect, it } from 'vitest';
import { coveredPods } from '../../src/budgets/covered-pods.ts';
import type { Pod } from '../../src/kube/core-v1.ts';

function pod(uid: string, metadata: Partial<Pod['metadata']> = {}): Pod {
  return { metadata: { name: uid, namespace: 'shop', uid, ...metadata }, spec: { containers: [] } };
}

/** What is seen of host pods of which only some have a copy, by the namespace of that copy. */
function seen(hostPods: Pod[], copies: Record<string, string>): Record<string, string[]> {
  const copyOf = (uid: string): Pod | undefined =>
    copies[uid] === undefined ? undefined : pod(uid, { namespace: copies[uid] });
  const { namespaces } = coveredPods({ hostPods, mirrors: [], copyOf, isDrained: () => false });
  return Object.fromEntries([...namespaces].map(([namespace, { uids }]) => [namespace, [...uids]]));
}

it('counts pods whose copies are still to come: one may be ready before the budget is written', () => {
  expect(seen([pod('a'), pod('b')], { a: 'shop' })).toEqual({ shop: ['a', 'b'] });
});

it('counts no pod that will have no copy, or nobody knows in which namespace', () => {
  const going = pod('b', { deletionTimestamp: '2026-01-01T00:00:00Z' });
  expect(seen([pod('a'), going], { a: 'shop' })).toEqual({ shop: ['a'] });
  expect(seen([pod('a'), pod('b'), pod('c')], { a: 'shop', b: 'mapped' })).toEqual({ shop: ['a'], mapped: ['b'] });
  expect(seen([pod('a')], {})).toEqual({});
});
