import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { CLUSTER_TAINT_POLICIES, type ClusterTaintPolicy } from '../../src/api/cluster-taint-policy.ts';
import { MEMBER_CLUSTERS, type MemberCluster, parseMemberCluster } from '../../src/api/member-cluster.ts';
import { ClusterTaintController } from '../../src/host/cluster-taint-controller.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { Informer } from '../../src/kube/informer.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { apiVersionOf } from '../../src/kube/resource.ts';
import { create, get, patch, remove } from '../../src/kube/verbs.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { type MemoryApiServer, serveMemoryApi } from '../fixtures/memory-api-server.ts';
import { GOOD_TAINT_POLICY } from '../placement/wrong-taint-policies.ts';

const apiVersion = apiVersionOf(MEMBER_CLUSTERS);
let api: MemoryApi;
let server: MemoryApiServer;
let client: KubeClient;
let events: string[];
const stops: (() => Promise<void>)[] = [];

beforeEach(async () => {
  api = new MemoryApi();
  server = await serveMemoryApi(api);
  client = server.client('host');
  events = [];
  const spec = { credentials: { secretRef: { namespace: 'spillway-system', name: 'east' } } };
  const object = { apiVersion, kind: 'MemberCluster', metadata: { name: 'east' }, spec } as KubeObject;
  await create(client, MEMBER_CLUSTERS, object);
  await ready('False');
});
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
  await server.close();
});

/** One replica, whose wall clock is wrong by so much (ms). */
async function start(aheadMs = 0): Promise<void> {
  const stop = new AbortController();
  const logger = pino({ level: 'silent' });
  const informer = new Informer({ client, resource: MEMBER_CLUSTERS, logger });
  const members = (): MemberCluster[] | undefined =>
    informer.hasSynced
      ? [...informer.values()].flatMap((raw) => {
          const found = parseMemberCluster(raw);
          return 'member' in found ? found.member : [];
        })
      : undefined;
  const controller = new ClusterTaintController({
    host: client,
    members,
    events: {
      record: ({ kind, name }, type, reason, message) =>
        void events.push(`${type} ${reason} ${kind}/${name}: ${message}`),
    },
    logger,
    clock: () => Date.now() + aheadMs,
  });
  const running = [informer.run(stop.signal), controller.run(stop.signal)];
  stops.push(async () => {
    stop.abort();
    await Promise.all(running);
  });
  await Promise.resolve();
}

async function ready(status: string, lastTransitionTime = '2026-01-01T00:00:00Z'): Promise<void> {
  const conditions = [{ type: 'Ready', status, reason: 'Test', message: '', lastTransitionTime }];
  await patch(
    client,
    MEMBER_CLUSTERS,
    { name: 'east' },
    { status: { conditions } },
    { type: 'merge', subresource: 'status' },
  );
}

const policy = (spec: object = {}): KubeObject =>
  ({
    apiVersion,
    kind: 'ClusterTaintPolicy',
    metadata: { name: 'p' },
    spec: { ...GOOD_TAINT_POLICY, addAfterSeconds: 0, removeAfterSeconds: 0, ...spec },
  }) as KubeObject;
const taints = async (): Promise<string[]> => {
  const { status } = await get<MemberCluster>(client, MEMBER_CLUSTERS, { name: 'east' });
  return (status?.taints ?? []).map(({ key, policy: by }) => `${by}: ${key}`);
};
const until = async (check: () => Promise<void>): Promise<void> =>
  await vi.waitFor(check, { timeout: 8_000, interval: 20 });
const taintWrites = (): number => api.requests('PATCH', '/memberclusters/east/status').length;

it('a member has the taint while its policy says so, and not without the policy; it is told, and two replicas write it once', async () => {
  await start();
  await start();
  await create(client, CLUSTER_TAINT_POLICIES, policy());
  await until(async () => expect(await taints()).toEqual(['p: example.com/not-ready']));
  await until(async () => {
    const { status } = await get<ClusterTaintPolicy>(client, CLUSTER_TAINT_POLICIES, { name: 'p' });
    expect(status?.taintedClusters).toEqual(['east']);
    expect(status?.conditions?.map(({ type, status: is }) => `${type} ${is}`)).toEqual([
      'Accepted True',
      'Consistent True',
    ]);
  });
  const before = taintWrites();
  // Two more looks of each.
  await new Promise((resolve) => setTimeout(resolve, 4_500));
  expect(taintWrites()).toBe(before);
  await remove(client, CLUSTER_TAINT_POLICIES, { name: 'p' });
  await until(async () => expect(await taints()).toEqual([]));
  expect([...new Set(events)]).toEqual([
    'Normal ClusterTainted MemberCluster/east: ClusterTaintPolicy p added the taint example.com/not-ready:NoExecute',
    'Normal ClusterTaintRemoved MemberCluster/east: the taint example.com/not-ready:NoExecute of ClusterTaintPolicy p is gone',
  ]);
}, 30_000);

it('a policy that cannot be read leaves its taint', async () => {
  await create(client, CLUSTER_TAINT_POLICIES, policy());
  await start();
  await until(async () => expect(await taints()).toEqual(['p: example.com/not-ready']));
  for (const stop of stops.splice(0)) await stop();
  await patch(
    client,
    CLUSTER_TAINT_POLICIES,
    { name: 'p' },
    { spec: { taints: [{ key: 'x', effect: 'Odd' }] } },
    { type: 'merge' },
  );
  await start();
  await until(async () => {
    const { status } = await get<ClusterTaintPolicy>(client, CLUSTER_TAINT_POLICIES, { name: 'p' });
    expect(status?.conditions?.[0]).toMatchObject({ type: 'Accepted', status: 'False', reason: 'Invalid' });
  });
  expect(await taints()).toEqual(['p: example.com/not-ready']);
  for (const stop of stops.splice(0)) await stop();
}, 30_000);

it('a taint goes only when its policy was read to be gone', async () => {
  const ghost = { key: 'x', effect: 'NoExecute', policy: 'ghost', timeAdded: '2026-01-01T00:00:00Z' };
  await patch(
    client,
    MEMBER_CLUSTERS,
    { name: 'east' },
    { status: { taints: [ghost] } },
    { type: 'merge', subresource: 'status' },
  );
  api.fault = ({ path }) => (path.endsWith('/clustertaintpolicies/ghost') ? { code: 500 } : undefined);
  await start();
  await until(async () => {
    expect(api.requests('GET', '/clustertaintpolicies/ghost').length).toBeGreaterThan(1);
    await Promise.resolve();
  });
  expect(await taints()).toEqual(['ghost: x']);
  api.fault = undefined;
  await until(async () => expect(await taints()).toEqual([]));
}, 30_000);

it('a condition that a clock wrote that was a day ahead counts from when it is first seen', async () => {
  await ready('False', new Date(Date.now() + 86_400_000).toISOString());
  await start();
  await create(client, CLUSTER_TAINT_POLICIES, policy({ addAfterSeconds: 1 }));
  await until(async () => expect(await taints()).toEqual(['p: example.com/not-ready']));
});

it('a wall clock that is ahead gives no taint before its time', async () => {
  await ready('False', new Date(Date.now() - 1_000).toISOString());
  await start();
  await start(600_000);
  await create(client, CLUSTER_TAINT_POLICIES, policy({ addAfterSeconds: 300 }));
  // Both have looked at it.
  await until(async () => {
    const { status } = await get<ClusterTaintPolicy>(client, CLUSTER_TAINT_POLICIES, { name: 'p' });
    expect(status?.conditions).toHaveLength(2);
  });
  await sleep(2_500);
  expect(await taints()).toEqual([]);
}, 30_000);
