import { pino } from 'pino';
import { Registry } from 'prom-client';
import { afterEach, expect, test } from 'vitest';
import { createAuthority, issueServing } from '../../hack/pki.ts';
import { until } from '../../hack/until.ts';
import { scoringConfig } from '../../src/api/scoring.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import type { VirtualNodeCapacity } from '../../src/capacity/virtual-node-capacity.ts';
import { Scheduler } from '../../src/scheduler/scheduler.ts';
import { schedulerMetrics } from '../../src/scheduler/scheduler-metrics.ts';
import { countedRoom } from '../fixtures/counted-room.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { serveMemoryApi } from '../fixtures/memory-api-server.ts';

const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

/** A host with member east and one pod, of which its scheduler says that. */
function hostWith(reason: string): MemoryApi {
  const api = new MemoryApi();
  const make = (path: string, body: object): unknown =>
    api.handle({ method: 'POST', path, query: {}, body, contentType: 'application/json' });
  make('/apis/spillway.dev/v1alpha1/memberclusters', {
    apiVersion: 'spillway.dev/v1alpha1',
    kind: 'MemberCluster',
    metadata: { name: 'east' },
    spec: { credentials: { secretRef: { namespace: 'spillway-system', name: 'east' } } },
  });
  const labels = { 'spillway.dev/member': 'east' };
  make('/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name: 'east', labels }, spec: {} });
  make('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
  make('/api/v1/namespaces/shop/pods', {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', namespace: 'shop' },
    spec: { containers: [{ name: 'main' }] },
    status: { phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'False', reason }] },
  });
  return api;
}

/** A process that has just started, and that nobody asks. Returns how often it told schedulers to look again. */
async function start(
  api: MemoryApi,
  capacityOf: (node: string) => VirtualNodeCapacity | undefined = () => undefined,
): Promise<{ scheduler: Scheduler; looks: () => number }> {
  const server = await serveMemoryApi(api);
  const authority = await createAuthority('ours');
  const certificate = await issueServing(authority, 'extender', ['127.0.0.1']);
  const scheduler = new Scheduler({
    host: server.client('host'),
    namespace: 'spillway-system',
    capacityOf,
    budgets: { synced: true, covering: () => [] },
    scoring: scoringConfig.parse({}),
    lease: { run: async () => await Promise.resolve() },
    server: {
      address: '127.0.0.1',
      port: 0,
      certificate: () => certificate,
      clientCa: () => authority.cert,
      clientNames: ['system:kube-scheduler'],
    },
    graceMs: 0,
    events: { record: () => undefined },
    metrics: schedulerMetrics(new Registry()),
    logger: pino({ level: 'silent' }),
  });
  const stop = new AbortController();
  const running = scheduler.run(stop.signal);
  ends.push(async () => {
    stop.abort();
    await running;
    await server.close();
  });
  const looks = (): number =>
    api.requests('PATCH', '/nodes/east').filter(({ body }) => JSON.stringify(body).includes('look-again')).length;
  return { scheduler, looks };
}

test('a process that starts tells schedulers to look again at pods that were refused before', async () => {
  const { looks } = await start(hostWith('Unschedulable'));
  await until('they are told', () => looks() === 1, { intervalMs: 10, timeoutMs: 10_000 });
});

test('of a pod behind a gate it tells them nothing', async () => {
  const { scheduler, looks } = await start(hostWith('SchedulingGated'));
  await until('it can answer', () => scheduler.problem === undefined, { intervalMs: 10, timeoutMs: 10_000 });
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect(looks()).toBe(0);
});

/** Pod `ring`, whose gang has its place in member east. */
function ring(api: MemoryApi): Pod {
  const metadata = {
    name: 'ring',
    namespace: 'shop',
    labels: { 'spillway.dev/gang': 'ring' },
    annotations: { 'spillway.dev/gang-size': '1', 'spillway.dev/gang-placed-at': new Date().toISOString() },
  };
  const tolerations = [{ key: 'spillway.dev/virtual-node', operator: 'Exists' }];
  const spec = { containers: [{ name: 'main' }], tolerations, nodeSelector: { 'spillway.dev/member': 'east' } };
  const body = { apiVersion: 'v1', kind: 'Pod', metadata, spec };
  const path = '/api/v1/namespaces/shop/pods';
  return api.handle({ method: 'POST', path, query: {}, body, contentType: 'application/json' }) as unknown as Pod;
}

test('a process that starts answers nothing before it keeps the room of pods whose gang has its place', async () => {
  const api = hostWith('Unschedulable');
  const { uid } = ring(api).metadata;
  const reserved = new Map<string, string>();
  const room = countedRoom('east', () => 1, reserved);
  const { scheduler } = await start(api, (node) => (node === 'east' ? room : undefined));
  // What can be answered is looked at more often than events come.
  await until('it can answer', () => scheduler.problem === undefined, { intervalMs: 1, timeoutMs: 10_000 });
  expect(reserved).toEqual(new Map([[uid, 'east']]));
});

test("room that becomes known later is nobody else's before these pods were tried there", async () => {
  const api = hostWith('Unschedulable');
  const pod = ring(api);
  const reserved = new Map<string, string>();
  let room = { ...countedRoom('east', () => 1 - reserved.size, reserved), ready: false };
  const { scheduler } = await start(api, (node) => (node === 'east' ? room : undefined));
  await until('it can answer', () => scheduler.problem === undefined, { intervalMs: 1, timeoutMs: 10_000 });
  room = { ...room, ready: true };
  const other = { ...pod, metadata: { ...pod.metadata, name: 'other', uid: 'other' } };
  const question = { at: 'east', avoid: undefined, holdMs: 10_000 };
  expect(await scheduler.gangRooms.place([other], question)).toEqual({
    why: 'member east: its nodes are not known yet',
  });
  await until('it is held', () => reserved.size === 1, { intervalMs: 5, timeoutMs: 10_000 });
  expect([...reserved.keys()]).toEqual([pod.metadata.uid]);
  await until(
    'others may ask',
    async () => {
      const answer = await scheduler.gangRooms.place([other], question);
      return 'why' in answer && answer.why.includes('insufficient cpu');
    },
    { intervalMs: 5, timeoutMs: 10_000 },
  );
});
