import { pino } from 'pino';
import { Registry } from 'prom-client';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { MIRRORED_CONDITION } from '../../src/api/marks.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import type { KubeClient, KubeRequest } from '../../src/kube/client.ts';
import { ApiError } from '../../src/kube/errors.ts';
import type { Informer } from '../../src/kube/informer.ts';
import { PodController } from '../../src/pods/pod-controller.ts';
import { podMetrics } from '../../src/pods/pod-metrics.ts';
import { SLOW_CREATION_MS } from '../../src/pods/slow-creation.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { HOST_ID, hostPod } from '../fixtures/pods.ts';
import { CONTEXT } from '../fixtures/translation.ts';
import { Violations } from '../fixtures/violations.ts';

const HOST_PODS = '/api/v1/namespaces/shop/pods';
const KEY = 'shop/web-0';
/** What an API server says once a webhook has had its 10 s. */
const TIMED_OUT = 'failed calling webhook "silent.example.com": context deadline exceeded';

let host: MemoryApi;
let member: MemoryApi;
/** How the member answers a creation: after so many ms, and with what error. */
let answers: { afterMs: number; error?: string };
let events: string[];
let violations: Violations;
let controller: PodController;
let running: Promise<void>;
let stop: AbortController;

beforeEach(async () => {
  vi.useFakeTimers();
  host = new MemoryApi();
  member = new MemoryApi();
  answers = { afterMs: 0 };
  events = [];
  violations = new Violations();
  const { uid: _, resourceVersion: __, ...metadata } = hostPod().metadata;
  await host.client().request({ method: 'POST', path: HOST_PODS, body: { ...hostPod(), metadata } });
  host.seen.length = 0;
  controller = new PodController({
    host: host.client('host'),
    hostPods: cacheOf(() => hostPodNow()),
    member: {
      name: 'east',
      client: slowly(member.client('east')),
      pods: cacheOf(() => undefined),
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
    frozen: () => undefined,
    namespaces: {
      memberNamespaceOf: () => CONTEXT.memberNamespace,
      everUsedFor: () => [CONTEXT.memberNamespace],
      ensure: () => Promise.resolve({ namespace: CONTEXT.memberNamespace }),
    },
    dependents: { track: () => undefined, require: () => ({ ready: true }), release: () => undefined },
    translateContext: () => CONTEXT,
    events: { record: (_object, _type, reason, message) => void events.push(`${reason}: ${message}`) },
    metrics: podMetrics(new Registry()),
    invariants: violations,
    logger: pino({ level: 'silent' }),
  });
  stop = new AbortController();
});

afterEach(async () => {
  stop.abort();
  await vi.advanceTimersByTimeAsync(60_000);
  await running;
  vi.useRealTimers();
  expect(violations.seen).toEqual([]);
});

function start(): void {
  running = controller.run(stop.signal);
}

function hostPodNow(): Pod {
  return structuredClone(host.objects.get(`${HOST_PODS}/web-0`)) as unknown as Pod;
}

function cacheOf(pod: () => Pod | undefined): Informer<Pod> {
  return {
    hasSynced: true,
    whenSynced: () => Promise.resolve(),
    on: () => () => undefined,
    get: () => pod(),
    values: () => [pod()].filter((one) => one !== undefined).values(),
    byIndex: () => [],
  } as unknown as Informer<Pod>;
}

function slowly(client: KubeClient): KubeClient {
  const request = async (r: KubeRequest): Promise<unknown> => {
    if (r.method !== 'POST') return await client.request(r);
    const { afterMs, error } = answers;
    await new Promise((resolve) => setTimeout(resolve, afterMs));
    if (error === undefined) return await client.request(r);
    member.seen.push({ method: 'POST', path: r.path, query: {}, body: r.body, contentType: '' });
    const status = { kind: 'Status', code: 500, reason: 'InternalError', message: error } as const;
    throw new ApiError({ cluster: 'east', method: 'POST', path: r.path, code: 500, status });
  };
  return { cluster: 'east', server: 'memory://', request } as unknown as KubeClient;
}

const shown = (): (string | undefined)[] => {
  const { status } = hostPodNow();
  const mirrored = status?.conditions?.find(({ type }) => type === MIRRORED_CONDITION);
  return [status?.phase, status?.reason, status?.message, mirrored?.status];
};
const patches = (): number => host.requests('PATCH').length;
const posts = (): number => member.requests('POST').length;

const SLOW = expect.stringMatching(/^Cluster "east" has not answered the creation of the pod for 4 s.*transient/);

it('an answer in good time is no news: one creation, and nothing is written on the host', async () => {
  answers = { afterMs: SLOW_CREATION_MS - 100 };
  start();
  await vi.advanceTimersByTimeAsync(SLOW_CREATION_MS - 50);
  expect([posts(), patches(), events]).toEqual([1, 0, []]);
  await vi.advanceTimersByTimeAsync(10_000);
  expect([posts(), patches(), events]).toEqual([1, 0, []]);
});

it('a creation that is open for 4 s is told of once, goes on, and leaves nothing behind', async () => {
  answers = { afterMs: 9_000 };
  start();
  await vi.advanceTimersByTimeAsync(SLOW_CREATION_MS - 100);
  expect(shown()).toEqual(['Pending', undefined, undefined, undefined]);
  await vi.advanceTimersByTimeAsync(200);
  expect(shown()).toEqual(['Pending', 'MemberUnavailable', SLOW, 'False']);
  expect(events).toEqual([expect.stringContaining('MemberUnavailable: Cluster "east" has not answered')]);
  await vi.advanceTimersByTimeAsync(4_600);
  expect([posts(), patches()]).toEqual([0, 1]);
  await vi.advanceTimersByTimeAsync(500);
  expect(posts()).toBe(1);
  // The watch of the member would wake it.
  controller.requeue(KEY);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(shown()).toEqual(['Pending', undefined, undefined, 'True']);
  expect([posts(), patches(), events.length]).toEqual([1, 2, 1]);
});

it('the error that comes in the end takes its place, and later tries that are slow again say nothing new', async () => {
  answers = { afterMs: 10_000, error: TIMED_OUT };
  start();
  await vi.advanceTimersByTimeAsync(10_100);
  expect(shown()).toEqual(['Pending', 'MemberUnavailable', expect.stringContaining(TIMED_OUT), 'False']);
  await vi.advanceTimersByTimeAsync(120_000);
  expect(posts()).toBeGreaterThanOrEqual(3);
  expect(shown()).toEqual(['Pending', 'MemberUnavailable', expect.stringContaining(TIMED_OUT), 'False']);
  expect([patches(), events.length]).toEqual([2, 2]);
});

it('a pod that is deleted meanwhile is left alone', async () => {
  answers = { afterMs: 9_000 };
  start();
  await vi.advanceTimersByTimeAsync(1_000);
  host.edit(`${HOST_PODS}/web-0`, { metadata: { deletionTimestamp: '2026-01-01T00:02:00Z' } });
  await vi.advanceTimersByTimeAsync(6_000);
  expect([patches(), events]).toEqual([0, []]);
});

it('a host that does not take the word keeps nobody from the creation', async () => {
  answers = { afterMs: 6_000 };
  host.fault = ({ method }) => (method === 'PATCH' ? { code: 500 } : undefined);
  start();
  await vi.advanceTimersByTimeAsync(6_500);
  expect([posts(), patches(), events]).toEqual([1, 1, []]);
  host.fault = undefined;
  controller.requeue(KEY);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(shown()[3]).toBe('True');
  expect(posts()).toBe(1);
});
