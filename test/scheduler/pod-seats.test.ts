import { expect, test } from 'vitest';
import type { Pod } from '../../src/kube/core-v1.ts';
import { PodSeats } from '../../src/scheduler/pod-seats.ts';

let now = 0;
const clusterOf = (node: string): string => (node.startsWith('n') ? 'local' : node);
const seats = (): PodSeats => new PodSeats({ clusterOf, monotonic: () => now });

function pod(
  uid: string,
  o: { node?: string; hash?: string; owner?: string; phase?: string; deleting?: boolean } = {},
): Pod {
  const { node, hash = 'a', owner = 'rs', phase = 'Running', deleting = false } = o;
  return {
    metadata: {
      name: uid,
      uid,
      labels: { 'pod-template-hash': hash },
      ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'x', uid: owner, controller: true }],
      ...(deleting ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}),
    },
    spec: { containers: [], ...(node === undefined ? {} : { nodeName: node }) },
    status: { phase: phase as 'Running' },
  };
}
const plain = (one: PodSeats, ...groups: string[]): object =>
  Object.fromEntries([...one.counts(groups)].map(([revision, counts]) => [revision, Object.fromEntries(counts)]));

test('pods count by controller, revision and cluster, while they hold a place', () => {
  const all = seats();
  all.set(pod('1', { node: 'n1' }));
  all.set(pod('2', { node: 'n2' }));
  all.set(pod('3', { node: 'east', hash: 'b' }));
  all.set(pod('4'));
  all.set(pod('5', { node: 'east', owner: 'other' }));
  expect(plain(all, 'rs')).toEqual({ a: { local: 2 }, b: { east: 1 } });
  expect(plain(all, 'rs', 'other')).toEqual({ a: { local: 2, east: 1 }, b: { east: 1 } });
  expect(all.waiting(['rs'])).toBe(1);
  all.set(pod('1', { node: 'n1', phase: 'Succeeded' }));
  all.set(pod('2', { node: 'n2', deleting: true }));
  all.delete(pod('3', { node: 'east', hash: 'b' }));
  all.set(pod('4', { node: 'east' }));
  expect(plain(all, 'rs')).toEqual({ a: { east: 1 } });
  expect(all.waiting(['rs'])).toBe(0);
});

test('a decided place counts at once, until it is taken back, bound elsewhere, or its time is over', () => {
  const all = seats();
  now = 1_000;
  all.set(pod('1'));
  all.assume(pod('1'), 'east', 500);
  expect(plain(all, 'rs')).toEqual({ a: { east: 1 } });
  expect(all.assumedAt('1')).toBe('east');
  all.set(pod('1'));
  expect(plain(all, 'rs')).toEqual({ a: { east: 1 } });
  all.forget('1');
  expect([plain(all, 'rs'), all.waiting(['rs'])]).toEqual([{}, 1]);
  all.assume(pod('1'), 'east', 500);
  all.set(pod('1', { node: 'west' }));
  expect([plain(all, 'rs'), all.assumedAt('1')]).toEqual([{ a: { west: 1 } }, undefined]);
  // What is bound stays where it is.
  all.assume(pod('1'), 'east', 500);
  all.forget('1');
  expect(plain(all, 'rs')).toEqual({ a: { west: 1 } });
  all.set(pod('2'));
  all.assume(pod('2'), 'east', 500);
  now = 1_500;
  expect([plain(all, 'rs'), all.waiting(['rs'])]).toEqual([{ a: { west: 1 } }, 1]);
});

test('a pod that only a scheduler has spoken of leaves nothing behind', () => {
  const all = seats();
  now = 0;
  all.assume(pod('1'), 'east', 500);
  expect(plain(all, 'rs')).toEqual({ a: { east: 1 } });
  now = 600;
  expect([plain(all, 'rs'), all.waiting(['rs'])]).toEqual([{}, 0]);
});

test('of several decided places each is over at its own time, whichever was decided first', () => {
  const all = seats();
  now = 0;
  all.assume(pod('1'), 'east', 900);
  all.assume(pod('2'), 'east', 300);
  all.assume(pod('3'), 'east', 600);
  const left = [299, 300, 600, 900].map((at) => {
    now = at;
    return [all.counts(['rs']).get('a')?.get('east') ?? 0, all.lapsesInMs(['other', 'rs'])];
  });
  expect(left).toEqual([
    [3, 1],
    [2, 300],
    [1, 300],
    [0, undefined],
  ]);
});

test('a place that is taken back, or taken by the pod, is over no more', () => {
  const all = seats();
  now = 0;
  for (const uid of ['1', '2', '3', '4']) all.assume(pod(uid), 'east', 500);
  all.forget('1');
  all.set(pod('2', { node: 'east' }));
  all.delete(pod('3'));
  expect(all.lapsesInMs(['rs'])).toBe(500);
  all.assume(pod('4'), 'west', 700);
  expect([all.lapsesInMs(['rs']), all.lapsesInMs(['other'])]).toEqual([700, undefined]);
  all.set(pod('4', { node: 'west' }));
  expect(all.lapsesInMs(['rs'])).toBeUndefined();
});
