import { pino } from 'pino';
import { Registry } from 'prom-client';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { MIRRORED_CONDITION, NODE_LABEL, UID_LABEL } from '../../src/api/marks.ts';
import type { Pod, PodStatus } from '../../src/kube/core-v1.ts';
import { mirroredMessage } from '../../src/pods/host-status.ts';
import { PodController } from '../../src/pods/pod-controller.ts';
import { podMetrics } from '../../src/pods/pod-metrics.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { LateAnswers, PodCache } from '../fixtures/pod-cache.ts';
import { HOST_ID, hostPod, memberPod } from '../fixtures/pods.ts';
import { CONTEXT } from '../fixtures/translation.ts';
import { Violations } from '../fixtures/violations.ts';

const PODS = '/api/v1/namespaces/shop/pods';
const POD = `${PODS}/web-0`;
const KEY = 'shop/web-0';
type StoredPod = NonNullable<ReturnType<MemoryApi['objects']['get']>>;
const NOW = '2026-01-01T00:02:00Z';

let host: MemoryApi;
let member: MemoryApi;
let hostPods: PodCache;
let memberPods: PodCache;
let hostAnswers: LateAnswers;
let memberAnswers: LateAnswers;
/** How long the member takes to say which cluster it is, in ms. */
let confirmMs: number;
let breakerOpen: boolean;
let events: string[];
let released: string[];
let violations: Violations;
let controller: PodController;
let running: Promise<void>;
let stop: AbortController;

beforeEach(() => {
  vi.useFakeTimers();
  host = new MemoryApi();
  member = new MemoryApi();
  hostPods = new PodCache(host);
  memberPods = new PodCache(member);
  hostAnswers = new LateAnswers();
  memberAnswers = new LateAnswers();
  confirmMs = 0;
  breakerOpen = false;
  events = [];
  released = [];
  violations = new Violations();
  stop = new AbortController();
});

afterEach(async () => {
  stop.abort();
  await vi.advanceTimersByTimeAsync(60_000);
  await running;
  vi.useRealTimers();
  expect(violations.seen).toEqual([]);
});

/** With both caches as the clusters are now. */
async function start(): Promise<void> {
  catchUp();
  controller = new PodController({
    host: hostAnswers.through(host.client('host')),
    hostPods: hostPods.informer,
    member: {
      name: 'east',
      client: memberAnswers.through(member.client('east')),
      pods: memberPods.informer,
      reachable: () => true,
      unreachableBecause: () => undefined,
      unreachableSince: () => undefined,
      confirmIdentity: async () => {
        await new Promise((resolve) => setTimeout(resolve, confirmMs));
        return true;
      },
    },
    hostId: HOST_ID,
    nodeName: 'east',
    network: () => 'Flat',
    daemonSets: () => 'Ignore',
    podsUnreadyAfterMs: () => 60_000,
    outageBegan: () => undefined,
    permits: new Map(),
    frozen: () => undefined,
    breakerOpen,
    namespaces: {
      memberNamespaceOf: (name) => name,
      everUsedFor: (name) => [name],
      ensure: (namespace) => Promise.resolve({ namespace }),
    },
    dependents: {
      track: () => undefined,
      require: () => ({ ready: true }),
      release: (podKey) => void released.push(podKey),
    },
    translateContext: () => ({ ...CONTEXT, memberNamespace: 'shop' }),
    events: { record: (_object, _type, reason) => void events.push(reason) },
    metrics: podMetrics(new Registry()),
    invariants: violations,
    logger: pino({ level: 'silent' }),
  });
  running = controller.run(stop.signal);
  await vi.advanceTimersByTimeAsync(100);
}

function catchUp(): void {
  hostPods.catchUp();
  memberPods.catchUp();
}

/** Both caches follow what happens for so long. */
async function follow(ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 250) {
    catchUp();
    await vi.advanceTimersByTimeAsync(250);
  }
}

async function stored(api: MemoryApi, pod: Pod): Promise<Pod> {
  const { uid: _, resourceVersion: __, ...metadata } = pod.metadata;
  await api.client().request({ method: 'POST', path: PODS, body: { ...pod, metadata } });
  api.seen.length = 0;
  return podIn(api);
}

function podIn(api: MemoryApi): Pod {
  return structuredClone(api.objects.get(POD)) as unknown as Pod;
}

/** The copy of a stored host pod, stored too. */
async function copied(of: Pod, labels: Record<string, string> = {}): Promise<Pod> {
  const own = { ...memberPod().metadata.labels, [UID_LABEL]: of.metadata.uid ?? '', ...labels };
  return await stored(member, memberPod({ metadata: { labels: own } }));
}

function mirrored(of: Pod): PodStatus {
  const message = mirroredMessage('east', of);
  return { ...of.status, conditions: [{ type: MIRRORED_CONDITION, status: 'True', message }] };
}

it('an answer about a host pod that is late does not bring it back: its copy goes', async () => {
  await copied(await stored(host, hostPod()));
  const release = hostAnswers.keepBack('PATCH');
  await start();
  expect(host.requests('PATCH')).toHaveLength(1);
  host.delete(POD);
  await follow(500);
  release();
  await follow(2_000);
  expect(member.requests('DELETE')).toHaveLength(1);
});

it('an answer about a copy that is late does not bring it back: the pod is lost', async () => {
  const copy = await copied(await stored(host, hostPod()));
  host.edit(POD, { status: mirrored(copy) });
  await start();
  await follow(1_000);
  const release = memberAnswers.keepBack('PATCH');
  host.edit(POD, { metadata: { labels: { tier: 'new' } } });
  await follow(500);
  expect(member.requests('PATCH').length).toBeGreaterThan(0);
  member.delete(POD);
  await follow(500);
  release();
  await follow(60_000);
  expect(podIn(host).status).toMatchObject({ phase: 'Failed', reason: 'MemberPodLost' });
});

it('a copy that only a read past the cache has shown is looked for again: the pod is lost once it is gone', async () => {
  memberPods.blind = true;
  const copy = await copied(await stored(host, hostPod()));
  host.edit(POD, { status: mirrored(copy) });
  await start();
  await follow(5_000);
  expect([podIn(host).status?.phase, member.requests('GET').length]).toEqual(['Running', 1]);
  member.delete(POD);
  await follow(60_000);
  expect(podIn(host).status).toMatchObject({ phase: 'Failed', reason: 'MemberPodLost' });
});

it('a copy on another virtual node of the member is left to that one, and the pod starts when it is gone', async () => {
  await stored(host, hostPod());
  await copied(hostPod({ metadata: { uid: 'former-uid' } }), { [NODE_LABEL]: 'west' });
  await start();
  await follow(5_000);
  expect([member.requests('DELETE'), member.requests('POST')]).toEqual([[], []]);
  member.edit(POD, { metadata: { deletionTimestamp: NOW } });
  await follow(5_000);
  member.delete(POD);
  await follow(1_000);
  expect(member.requests('POST')).toHaveLength(1);
});

it('what a pod needs is let go of when it is gone, also where a pod of somebody else has its name', async () => {
  await stored(host, hostPod());
  await stored(member, memberPod({ metadata: { labels: {} } }));
  await start();
  expect(podIn(host).status?.reason).toBe('NameTaken');
  host.delete(POD);
  await follow(1_000);
  expect(released).toContain(KEY);
});

it('what a pod needs is let go of when the host has it no more, not while it shows it still', async () => {
  await stored(host, hostPod({ metadata: { deletionTimestamp: NOW, deletionGracePeriodSeconds: 30 } }));
  await start();
  expect([host.objects.has(POD), released]).toEqual([false, []]);
  await follow(1_000);
  expect(released).toEqual([KEY]);
});

it('clusters that are slow, but not too slow for any request, are evidence all the same', async () => {
  const finalizers = ['batch.kubernetes.io/job-tracking'];
  await stored(host, hostPod({ metadata: { deletionTimestamp: NOW, deletionGracePeriodSeconds: 30, finalizers } }));
  confirmMs = 29_000;
  const [read, written] = [memberAnswers.keepBack('GET'), hostAnswers.keepBack('PATCH')];
  await start();
  await follow(58_000);
  read();
  await follow(5_000);
  written();
  await follow(1_000);
  expect(host.objects.get(POD)?.metadata).toMatchObject({ deletionGracePeriodSeconds: 0, finalizers });
});

it('an answer that is not an API server’s does not say that a copy is gone', async () => {
  const copy = await copied(await stored(host, hostPod()));
  host.edit(POD, { status: mirrored(copy) });
  memberPods.blind = true;
  // A proxy that has no way to the member at the moment.
  member.fault = () => ({ code: 404, message: '404 page not found' });
  await start();
  await follow(10_000);
  expect(podIn(host).status?.phase).toBe('Running');
  member.fault = undefined;
  await follow(60_000);
  expect(podIn(host).status?.phase).toBe('Running');
});

it('a member that knows no resize is told of, and asked ever more rarely', async () => {
  const copy = await copied(await stored(host, hostPod()));
  host.edit(POD, { status: mirrored(copy) });
  await start();
  await follow(1_000);
  member.seen.length = 0;
  const message = 'the server could not find the requested resource';
  member.fault = ({ path }) => (path.endsWith('/resize') ? { code: 404, reason: 'NotFound', message } : undefined);
  const resources = { requests: { cpu: '2' } };
  host.edit(POD, {
    spec: { ...podIn(host).spec, containers: [{ name: 'app', image: 'busybox', resources }] },
  });
  await follow(60_000);
  expect(events).toContain('MemberUpdateRefused');
  expect(member.requests('PATCH', '/resize').length).toBeLessThan(15);
});

describe('a host pod that was out of sight', () => {
  /** Its copy is there, and the host says nothing of it for a while; nobody saw it being deleted. */
  async function outOfSight(): Promise<StoredPod> {
    const bound = await stored(host, hostPod());
    host.edit(POD, { status: mirrored(await copied(bound)) });
    await start();
    await follow(1_000);
    const unseen = host.objects.get(POD);
    if (unseen === undefined) throw new Error('no host pod');
    host.objects.delete(POD);
    hostPods.relist();
    return unseen;
  }
  async function inSight(pod: StoredPod): Promise<void> {
    host.objects.set(POD, pod);
    hostPods.relist();
    await follow(1_000);
  }

  it('begins the doubt anew when it is out of sight again', async () => {
    const pod = await outOfSight();
    await follow(30_000);
    await inSight(pod);
    await follow(60_000);
    host.objects.delete(POD);
    hostPods.relist();
    await follow(50_000);
    expect(member.requests('DELETE')).toEqual([]);
    await follow(15_000);
    expect(member.requests('DELETE')).toHaveLength(1);
  });

  it('is not among those that wait for a confirmation once it is back', async () => {
    breakerOpen = true;
    const pod = await outOfSight();
    await follow(90_000);
    expect(controller.orphanedPods).toMatchObject({ uids: [podIn(member).metadata.uid], open: true });
    await inSight(pod);
    expect(controller.orphanedPods.uids).toEqual([]);
  });
});

describe('a copy that the host pod does not know of yet, because the host takes no status', () => {
  /** As the watch has it that broke, and lists anew when the copy has gone. */
  async function goesUnseen(): Promise<void> {
    member.edit(POD, { status: { phase: 'Succeeded' } });
    await follow(30_000);
    member.delete(POD);
    memberPods.relist();
    await follow(5_000);
  }

  it('is not made again when it comes and goes meanwhile', async () => {
    await stored(host, hostPod());
    host.fault = ({ method }) => (method === 'PATCH' ? { code: 503, reason: 'ServiceUnavailable' } : undefined);
    await start();
    await follow(1_000);
    await goesUnseen();
    expect(member.requests('POST')).toHaveLength(1);
    host.fault = undefined;
    await follow(90_000);
    expect(member.requests('POST')).toHaveLength(1);
    expect(podIn(host).status).toMatchObject({ phase: 'Failed', reason: 'MemberPodLost' });
  });

  it('is not made again when a former process made it, and this one has seen it', async () => {
    await copied(await stored(host, hostPod()));
    host.fault = ({ method }) => (method === 'PATCH' ? { code: 503, reason: 'ServiceUnavailable' } : undefined);
    await start();
    await goesUnseen();
    expect(member.requests('POST')).toEqual([]);
  });

  it('is none of the next pod of that name', async () => {
    await stored(host, hostPod());
    memberPods.blind = true;
    await start();
    await follow(1_000);
    expect(member.requests('POST')).toHaveLength(1);
    member.delete(POD);
    host.delete(POD);
    await host.client().request({
      method: 'POST',
      path: PODS,
      body: { ...hostPod(), metadata: { name: 'web-0', namespace: 'shop' } },
    });
    await follow(30_000);
    expect([podIn(host).status?.phase, member.requests('POST').length]).toEqual(['Pending', 2]);
  });
});

describe('a deletion that the cache never shows', () => {
  beforeEach(async () => {
    const grace = { deletionTimestamp: NOW, deletionGracePeriodSeconds: 30 };
    await copied(await stored(host, hostPod({ metadata: grace })));
    member.edit(POD, { metadata: { finalizers: ['example.com/hold'] } });
    await start();
    memberPods.blind = true;
  });

  /** News of the host pod come all the time. */
  async function withNews(seconds: number): Promise<void> {
    for (let passed = 0; passed < seconds; passed += 5) {
      host.edit(POD, { metadata: { labels: { news: `at-${passed}` } } });
      hostPods.catchUp();
      await vi.advanceTimersByTimeAsync(5_000);
    }
  }
  const deletions = (): number => member.requests('DELETE').length;

  it('is repeated ever more seldom where the member accepts it, whatever news there is', async () => {
    await withNews(1_800);
    expect(deletions()).toBe(7);
  });

  it('is followed also where there is no news, and is none that fell out of sight', async () => {
    await vi.advanceTimersByTimeAsync(1_800_000);
    expect(deletions()).toBe(7);
  });

  it('is repeated at most every minute in the end where the member has no such copy', async () => {
    member.delete(POD);
    await withNews(300);
    expect(deletions()).toBeLessThan(15);
  });

  it('is sent at once where the host pod is to end at once', async () => {
    await withNews(400);
    const before = deletions();
    host.edit(POD, { metadata: { deletionGracePeriodSeconds: 0 } });
    await follow(500);
    expect(deletions() - before).toBe(1);
    expect(member.requests('DELETE').at(-1)?.body).toMatchObject({ gracePeriodSeconds: 0 });
  });
});

it('a copy that a finalizer of the member keeps is told of on its host pod, which stays', async () => {
  const grace = { deletionTimestamp: NOW, deletionGracePeriodSeconds: 30 };
  await copied(await stored(host, hostPod({ metadata: grace })));
  member.edit(POD, { metadata: { finalizers: ['example.com/hold'] } });
  await start();
  await follow(80_000);
  expect([events, controller.undeleted.count]).toEqual([[], 0]);
  await follow(20_000);
  expect([events, controller.undeleted.count]).toEqual([['MemberPodNotDeleted'], 1]);
  expect([host.objects.has(POD), member.requests('DELETE').length]).toEqual([true, 1]);
  member.delete(POD);
  await follow(2_000);
  expect([host.objects.has(POD), controller.undeleted.count]).toEqual([false, 0]);
});
