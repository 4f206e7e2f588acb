import { describe, expect, test } from 'vitest';
import { releasedText } from '../../src/api/released.ts';
import { goesGracefully, releasedAtOnce, staysByPolicy } from '../../src/descheduler/purge-mode.ts';
import { giveBackPatch, releasePatch } from '../../src/descheduler/release-patches.ts';
import { releaseSteps } from '../../src/descheduler/release-step.ts';
import { Releases } from '../../src/descheduler/releases.ts';
import type { Pod } from '../../src/kube/core-v1.ts';

const NOW = Date.parse('2026-01-01T01:00:00Z');
const RULES = { purgeMode: 'Gracefully', gracePeriodSeconds: 600, onTimeout: 'GiveBack' } as const;
const READY: Pod['status'] = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
const NOT_READY: Pod['status'] = { phase: 'Running', conditions: [{ type: 'Ready', status: 'False' }] };
const OWNER = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-7d', uid: 'set', controller: true };

const pod = (name: string, status: Pod['status'], metadata: object = {}): Pod => ({
  metadata: { name, uid: name, ...metadata },
  spec: { containers: [] },
  ...(status === undefined ? {} : { status }),
});
/** Of ReplicaSet `set`, some of them Ready. */
const owned = (ready: number, others = 0): Pod[] =>
  Array.from({ length: ready + others }, (_, index) => pod(`o${index}`, index < ready ? READY : NOT_READY));
/** Released so many seconds ago, when so many were Ready. */
const out = (
  name: string,
  agoSeconds: number,
  ready: number,
  status: Pod['status'] = READY,
  more: object = {},
): Pod => {
  const at = new Date(NOW - agoSeconds * 1_000).toISOString().replace('.000Z', 'Z');
  const mark = releasedText({ hash: '7d', replicaSet: 'web-7d', uid: 'set', at, ready });
  return pod(name, status, { annotations: { 'spillway.dev/released': mark }, ...more });
};
const set = (replicas: number, available?: number) => ({ replicas, available });

describe('how a pod leaves', () => {
  const says = (purgeMode: 'Gracefully' | 'Directly' | 'Never') => ({ cluster: { ...RULES, purgeMode } });
  test.each([
    ['by default', READY, 'TaintNoExecute', undefined, 'Gracefully'],
    ['not Ready', NOT_READY, 'TaintNoExecute', undefined, 'Directly'],
    ['of a gang that gives up', READY, 'GangTimedOut', undefined, 'Directly'],
    ['as its policy says', READY, 'Drain', says('Directly'), 'Directly'],
    ['whose policy says Never', READY, 'MemberLost', says('Never'), 'Never'],
    ['whose policy says Never, and which never ran', NOT_READY, 'RefusedInMember', says('Never'), 'Directly'],
    ['that waits in vain, whatever its policy says', NOT_READY, 'UnschedulableInMember', says('Never'), 'Directly'],
  ] as const)('%s', (_, status, strategy, failover, mode) => {
    expect(staysByPolicy(strategy, failover)).toBe(mode === 'Never');
    expect(goesGracefully(pod('p', status), strategy, failover)).toBe(mode === 'Gracefully');
  });

  test.each([
    [0, 1],
    [1, 1],
    [10, 1],
    [20, 2],
    [21, 3],
  ])('of %i replicas %i are out at a time', (replicas, count) => {
    expect(releasedAtOnce({ uid: 'set', replicas })).toBe(count);
  });
});

describe('what becomes of released pods', () => {
  const steps = (of: Partial<Parameters<typeof releaseSteps>[0]>): string[] =>
    releaseSteps({
      set: set(3),
      released: [],
      owned: [],
      rules: RULES,
      now: NOW,
      passedMs: () => 3_600_000,
      ...of,
    }).map((step) =>
      [step.pod.metadata.name, step.kind, 'why' in step ? step.why : 'forMs' in step ? step.forMs : '']
        .join(' ')
        .trim(),
    );

  test.each<[string, Partial<Parameters<typeof releaseSteps>[0]>, string[]]>([
    ['the other one is not there', { owned: owned(2), released: [out('a', 10, 3)] }, ['a wait 590000']],
    ['the other one is not Ready', { owned: owned(2, 1), released: [out('a', 10, 3)] }, ['a wait 590000']],
    ['the other one is Ready', { owned: owned(3), released: [out('a', 10, 3)] }, ['a evict Replaced']],
    [
      'one of two others is Ready: the older one',
      { owned: owned(2), released: [out('b', 5, 3), out('a', 10, 3)] },
      ['a evict Replaced', 'b wait 595000'],
    ],
    [
      'it is not Ready itself any more, nor the other one',
      { owned: owned(2, 1), released: [out('a', 10, 3, NOT_READY)] },
      ['a wait 590000'],
    ],
    [
      'it is not Ready itself any more, but the other one',
      { owned: owned(3), released: [out('a', 10, 3, NOT_READY)] },
      ['a evict Replaced'],
    ],
    [
      'fewer were Ready before: so many are enough',
      { owned: owned(2, 1), released: [out('a', 10, 2)] },
      ['a evict Replaced'],
    ],
    ['fewer were Ready before, and fewer are', { owned: owned(1, 2), released: [out('a', 10, 2)] }, ['a wait 590000']],
    ['it was scaled down', { set: set(2), owned: owned(2), released: [out('a', 10, 3)] }, ['a evict Replaced']],
    ['it was scaled to nothing', { set: set(0), released: [out('a', 10, 3)] }, ['a giveBack NoReplicas']],
    [
      'it was scaled to nothing, and the pod is not Ready',
      { set: set(0), released: [out('a', 10, 3, NOT_READY)] },
      ['a giveBack NoReplicas'],
    ],
    [
      'it was scaled to nothing, and the pod has ended',
      { set: set(0), released: [out('a', 10, 3, { phase: 'Succeeded' })] },
      ['a evict Finished'],
    ],
    ['it was scaled up', { set: set(5), owned: owned(3, 2), released: [out('a', 10, 3)] }, ['a evict Replaced']],
    ['it is gone', { set: undefined, owned: owned(0), released: [out('a', 10, 3)] }, ['a evict Gone']],
    ['the pod has ended', { owned: owned(2), released: [out('a', 10, 3, { phase: 'Failed' })] }, ['a evict Finished']],
    ['the pod is going', { owned: owned(3), released: [out('a', 10, 3, READY, { deletionTimestamp: 'x' })] }, []],
    ['the time is over', { owned: owned(2, 1), released: [out('a', 600, 3)] }, ['a giveBack TimedOut']],
    [
      'the time is over for one that serves nobody',
      { owned: owned(2, 1), released: [out('a', 600, 3, NOT_READY)] },
      ['a evict TimedOut'],
    ],
    [
      'the time is over, and the policy says so',
      { owned: owned(2, 1), released: [out('a', 600, 3)], rules: { ...RULES, onTimeout: 'Evict' } },
      ['a evict TimedOut'],
    ],
    [
      'the time is over by the wall clock alone, which may be ahead',
      { owned: owned(2, 1), released: [out('a', 600, 3, NOT_READY)], passedMs: () => 590_000 },
      ['a wait 10000'],
    ],
    [
      'the time is over, but the other one is Ready',
      { owned: owned(3), released: [out('a', 900, 3)] },
      ['a evict Replaced'],
    ],
    [
      'the other one was not Ready for minReadySeconds',
      { set: set(3, 2), owned: owned(3), released: [out('a', 10, 3)] },
      ['a wait 590000'],
    ],
    [
      'the other one was Ready for minReadySeconds',
      { set: set(3, 3), owned: owned(3), released: [out('a', 10, 3)] },
      ['a evict Replaced'],
    ],
    [
      'pods that are going are not Ready',
      { owned: [...owned(2), pod('g', READY, { deletionTimestamp: 'x' })], released: [out('a', 10, 3)] },
      ['a wait 590000'],
    ],
  ])('%s', (_, of, wanted) => {
    expect(steps(of)).toEqual(wanted);
  });
});

test('patches hold for that version of the pod, take one label away and bring it back', () => {
  const live = pod('p', READY, {
    resourceVersion: '7',
    labels: { app: 'web', 'pod-template-hash': '7d' },
    ownerReferences: [OWNER],
  });
  const mark = '{"hash":"7d","replicaSet":"web-7d","uid":"set","at":"2026-01-01T01:00:00Z","ready":3}';
  expect(releasePatch(live, { ready: 3, at: NOW })).toEqual({
    metadata: {
      uid: 'p',
      resourceVersion: '7',
      labels: { 'pod-template-hash': null },
      annotations: { 'spillway.dev/released': mark },
    },
  });
  expect(giveBackPatch(live, { hash: '7d', replicaSet: 'web-7d', uid: 'set', at: '', ready: 3 })).toEqual({
    metadata: {
      uid: 'p',
      resourceVersion: '7',
      labels: { 'pod-template-hash': '7d' },
      annotations: { 'spillway.dev/released': null },
    },
  });
  expect(releasePatch(pod('p', READY, { ownerReferences: [OWNER] }), { ready: 3, at: NOW })).toBeUndefined();
  expect(releasePatch(pod('p', READY, { labels: live.metadata.labels }), { ready: 3, at: NOW })).toBeUndefined();
});

test('releases are known from when they are sent, and from what stands on pods', () => {
  let now = 0;
  const releases = new Releases(() => now);
  const before = pod('a', READY, { ownerReferences: [OWNER] });
  releases.sent(before, 'set');
  expect([releases.count('set'), releases.of('set')]).toEqual([1, []]);
  // An older state, from the caches.
  expect(releases.seen(before)).toBeUndefined();
  expect(releases.has('set')).toBe(true);
  const after = out('a', 0, 3);
  expect(releases.seen(after)).toBe('set');
  expect(releases.of('set')).toEqual([after]);
  // Given back.
  expect(releases.seen(before)).toBe('set');
  expect([releases.has('set'), releases.total]).toEqual([false, 0]);
  releases.sent(pod('b', READY), 'set');
  now = 30_000;
  // It never was.
  expect(releases.seen(pod('b', READY))).toBe('set');
  releases.seen(out('c', 0, 3));
  expect(releases.forget(out('c', 0, 3))).toBe('set');
  expect(releases.total).toBe(0);
});

test("a pod that is given back is its ReplicaSet's, and none is released meanwhile, until it is adopted", () => {
  let now = 0;
  const releases = new Releases(() => now);
  releases.seen(out('a', 0, 3));
  const waiting = pod('a', READY, { labels: { 'pod-template-hash': '7d' } });
  expect(releases.seen(waiting)).toBe('set');
  expect([releases.of('set'), releases.givenBack('set'), releases.count('set')]).toEqual([[], [waiting], 1]);
  const adopted = { ...waiting, metadata: { ...waiting.metadata, ownerReferences: [OWNER] } };
  expect(releases.seen(adopted)).toBe('set');
  expect([releases.givenBack('set'), releases.count('set')]).toEqual([[], 0]);
  // Only the mark is gone: its ReplicaSet does not choose it.
  releases.seen(out('a', 0, 3));
  expect(releases.seen(pod('a', READY))).toBe('set');
  expect([releases.givenBack('set'), releases.count('set')]).toEqual([[], 0]);
  // Never adopted: the ReplicaSet is gone, or does not choose it.
  releases.seen(out('a', 0, 3));
  releases.seen(waiting);
  now = 29_999;
  releases.seen(waiting);
  expect(releases.count('set')).toBe(1);
  now = 30_000;
  expect([releases.count('set'), releases.total]).toEqual([0, 0]);
});

test('a release whose request got lost stands in the way of others for half a minute, though nothing is heard of the pod', () => {
  let now = 0;
  const releases = new Releases(() => now);
  releases.sent(pod('a', READY), 'set');
  now = 29_999;
  expect([releases.count('set'), releases.has('set')]).toEqual([1, true]);
  now = 30_000;
  expect([releases.count('set'), releases.has('set'), releases.total]).toEqual([0, false, 0]);
  // It was done after all, and is seen late.
  expect(releases.seen(out('a', 30, 3))).toBe('set');
  now = 90_000;
  expect(releases.count('set')).toBe(1);
});
