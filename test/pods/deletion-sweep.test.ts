import { pino } from 'pino';
import { Registry } from 'prom-client';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Pod } from '../../src/kube/core-v1.ts';
import type { Informer } from '../../src/kube/informer.ts';
import { DeletionSweep } from '../../src/pods/deletion-sweep.ts';
import { PodController } from '../../src/pods/pod-controller.ts';
import { podMetrics } from '../../src/pods/pod-metrics.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { HOST_ID, hostPod, memberPod } from '../fixtures/pods.ts';
import { CONTEXT } from '../fixtures/translation.ts';
import { Violations } from '../fixtures/violations.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const deletedHost = (): Pod => hostPod({ metadata: { deletionTimestamp: '2026-01-01T00:02:00Z' } });

/** A cache that never changes. */
function cacheOf(pods: readonly Pod[]): Informer<Pod> {
  const byKey = new Map(pods.map((pod) => [`${pod.metadata.namespace}/${pod.metadata.name}`, pod]));
  return {
    hasSynced: true,
    whenSynced: () => Promise.resolve(),
    on: () => () => undefined,
    get: (key: string) => byKey.get(key),
    values: () => byKey.values(),
    byIndex: () => pods,
  } as unknown as Informer<Pod>;
}

it('I14: a deletion that fell out of the queue is found and goes on', async () => {
  const member = new MemoryApi();
  const violations = new Violations();
  let frozen: string | undefined = 'not yet';
  const controller = new PodController({
    host: new MemoryApi().client('host'),
    hostPods: cacheOf([deletedHost()]),
    member: {
      name: 'east',
      client: member.client('east'),
      pods: cacheOf([memberPod()]),
      reachable: () => true,
      unreachableBecause: () => undefined,
      unreachableSince: () => undefined,
      confirmIdentity: () => Promise.resolve(true),
    },
    hostId: HOST_ID,
    nodeName: 'east',
    network: () => 'Flat',
    daemonSets: () => 'Ignore',
    podsUnreadyAfterMs: () => 60_000,
    outageBegan: () => undefined,
    permits: new Map(),
    frozen: () => frozen,
    namespaces: {
      memberNamespaceOf: (name) => name,
      everUsedFor: (name) => [name],
      ensure: (namespace) => Promise.resolve({ namespace }),
    },
    dependents: { track: () => undefined, require: () => ({ ready: true }), release: () => undefined },
    translateContext: () => CONTEXT,
    events: { record: () => undefined },
    metrics: podMetrics(new Registry()),
    invariants: violations,
    logger: pino({ level: 'silent' }),
  });
  const stop = new AbortController();
  const running = controller.run(stop.signal);
  await vi.advanceTimersByTimeAsync(1000);
  // Nobody wakes the key when this ends.
  frozen = undefined;
  await vi.advanceTimersByTimeAsync(4 * 60_000);
  expect([violations.seen, member.requests('DELETE')]).toEqual([[], []]);
  await vi.advanceTimersByTimeAsync(3 * 60_000);
  expect(violations.seen[0]).toBe('I14');
  expect(member.requests('DELETE').length).toBeGreaterThan(0);
  stop.abort();
  await running;
});

it('knows which deletions are forgotten', () => {
  let now = 0;
  const sweep = new DeletionSweep(() => now);
  now = 400_000;
  expect(sweep.begin()).toBe(false);
  expect(sweep.begin()).toBe(true);
  const leaving = memberPod({ metadata: { deletionTimestamp: '2026-01-01T00:02:00Z' } });
  expect(sweep.isForgotten(memberPod(), deletedHost(), { lookedAt: 0 })).toBe(true);
  expect(sweep.isForgotten(memberPod(), undefined, { lookedAt: 0 })).toBe(true);
  expect(sweep.isForgotten(memberPod(), hostPod({ metadata: { uid: 'next' } }), { lookedAt: 0 })).toBe(true);
  expect(sweep.isForgotten(memberPod(), hostPod(), { lookedAt: 0 })).toBe(false);
  expect(sweep.isForgotten(leaving, undefined, { lookedAt: 0 })).toBe(false);
  expect(sweep.isForgotten(memberPod(), undefined, { lookedAt: 390_000 })).toBe(false);
  expect(sweep.isForgotten(memberPod(), undefined, {})).toBe(false);
  const sent = { uid: 'member-uid', says: 'deleting', gracePeriodSeconds: 30, accepted: 5, vain: 0 } as const;
  expect(sweep.isForgotten(memberPod(), undefined, { lookedAt: 0, deleteSent: { ...sent, until: 390_000 } })).toBe(
    false,
  );
  expect(sweep.isForgotten(memberPod(), undefined, { lookedAt: 0, deleteSent: { ...sent, until: 90_000 } })).toBe(true);
  expect(
    sweep.isForgotten(memberPod(), undefined, { lookedAt: 0, deleteSent: { ...sent, uid: 'other', until: 390_000 } }),
  ).toBe(true);
});
