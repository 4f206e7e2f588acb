import { afterEach, beforeEach, expect, test } from 'vitest';
import type { WorkloadRebalancer } from '../../src/api/workload-rebalancer.ts';
import { DisplacedPods } from '../../src/descheduler/displaced-pods.ts';
import { Rebalancers } from '../../src/descheduler/rebalancers.ts';
import { ownerKeyOf } from '../../src/kube/owner-references.ts';
import type { TypedObject } from '../../src/placement/owner-chain.ts';
import { DENIED_BY_WEBHOOK } from '../fixtures/eviction-refusals.ts';
import type { Fault, MemoryRequest } from '../fixtures/memory-api.ts';
import { SchedulerRoom } from '../fixtures/scheduler-room.ts';

/** Deployment shop/web has four pods in member east and two in north, of which the policy speaks no more: all are to go to west. */
const PODS = '/api/v1/namespaces/shop/pods';
const POLICY = '/apis/spillway.dev/v1alpha1/namespaces/shop/placementpolicies/p';
const REBALANCERS = '/apis/spillway.dev/v1alpha1/workloadrebalancers';
const { signal } = new AbortController();
let room: SchedulerRoom;
let deployment: TypedObject;
let set: TypedObject;
let names: string[];

beforeEach(async () => {
  room = await SchedulerRoom.start(['east', 'north', 'west']);
  ({ deployment, set } = await room.deploy('web', 6));
  room.setRoom('local', 0);
  room.setRoom('west', 100);
  room.place('p', { clusterAffinity: { clusterNames: ['west'] } });
  const spec = room.api.objects.get(POLICY)?.['spec'] as object;
  room.api.edit(POLICY, { spec: { ...spec, failover: { activation: 'Eager' } } });
  const { policies } = room.process.view;
  await room.seen('the policy is known', () => policies.get('shop/p')?.policy?.spec.failover !== undefined);
  names = await room.run(set, { east: 4, north: 2 });
  await ready(names);
});
afterEach(async () => {
  await room.close();
});

/** The later ones of a cluster are the younger ones. */
async function ready(pods: readonly string[]): Promise<void> {
  for (const [index, name] of pods.entries()) {
    const creationTimestamp = new Date(room.now - 600_000 + index * 1_000).toISOString();
    const status = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
    room.api.edit(`${PODS}/${name}`, { metadata: { creationTimestamp }, status });
  }
  const isReady = (name: string): boolean =>
    room.process.view.pods.get(`shop/${name}`)?.status?.conditions?.length === 1;
  await room.seen('they are Ready', () => pods.every(isReady));
}

/** What becomes of the pod that is tried first. */
function firstOne(about: (name: string) => (request: MemoryRequest) => boolean, answer: Fault): void {
  let bad: string | undefined;
  room.api.fault = (request) => {
    if (bad === undefined && request.path.endsWith('/eviction')) bad = request.path.split('/')[6];
    return bad !== undefined && about(bad)(request) ? answer : undefined;
  };
}

/** What was evicted is gone, and another one is Ready in west. */
async function goesOn(look: () => Promise<unknown>, ms: number, seconds: number): Promise<void> {
  const until = room.now + seconds * 1_000;
  while (room.now < until) {
    await look();
    const { pods } = room.process.view;
    await room.seen('the caches show it', () => [...pods.values()].length === room.pods().length);
    const missing = 6 - room.pods().length;
    if (missing > 0) await ready(await room.run(set, { west: missing }));
    room.now += ms;
  }
}

function displaced(until = signal): () => Promise<unknown> {
  const { placed, mover, records } = room.process;
  const all = new DisplacedPods({ placed, mover, records, monotonic: () => room.now });
  return async () => await all.bringUpToDate(ownerKeyOf(deployment), until);
}

function rebalanced(more: object = {}): () => Promise<unknown> {
  const { host, placed, mover } = room.process;
  const workload = { apiVersion: 'apps/v1', kind: 'Deployment', namespace: 'shop', name: 'web' };
  room.make(REBALANCERS, {
    apiVersion: 'spillway.dev/v1alpha1',
    kind: 'WorkloadRebalancer',
    metadata: { name: 'now' },
    spec: { workloads: [workload], ...more },
  });
  const get = (): WorkloadRebalancer => room.api.objects.get(`${REBALANCERS}/now`) as unknown as WorkloadRebalancer;
  const all = new Rebalancers({
    host,
    placed,
    mover,
    stop: room.stop,
    dryRun: false,
    rebalancers: { get, problem: undefined },
    clock: () => room.now,
    monotonic: () => room.now,
  });
  return async () => await all.bringUpToDate('now', signal);
}

const itsEviction = (name: string) => (request: MemoryRequest) => request.path.endsWith(`/${name}/eviction`);

test.each([
  ['that is edited', () => displaced(), 15_000],
  ['by which it is rebalanced', () => rebalanced(), 2_000],
])(
  'under a policy %s a pod that the host does not let go leaves all others their turns before it',
  async (_, of, ms) => {
    firstOne(itsEviction, DENIED_BY_WEBHOOK);
    await goesOn(of(), ms, 200);
    const [bad = '', ...rest] = room.evictions();
    expect(new Set(rest.slice(0, 5))).toEqual(new Set(names.filter((name) => name !== bad)));
    expect(new Set(rest.slice(5))).toEqual(new Set([bad]));
  },
);

test('one that cannot be read leaves the others their turns, too', async () => {
  const [, , , youngest = ''] = names;
  const fault = { code: 500, reason: 'InternalError', message: 'cannot decrypt' };
  room.api.fault = ({ method, path }) => (method === 'GET' && path.endsWith(`/pods/${youngest}`) ? fault : undefined);
  await goesOn(displaced(), 15_000, 200);
  expect(new Set(room.evictions())).toEqual(new Set(names.filter((name) => name !== youngest)));
});

test('while it is not known whether one has gone no other one goes', async () => {
  firstOne(itsEviction, 'reset');
  const look = displaced();
  await goesOn(look, 5_000, 75);
  // It was tried when the better place had been there for 15 s, and 60 s have passed since then.
  expect(room.evictions()).toHaveLength(1);
  await goesOn(look, 15_000, 30);
  const [bad, next] = room.evictions();
  expect(next).not.toBe(bad);
});

test.each([
  ['that is edited', () => displaced(), 15_000],
  ['by which it is rebalanced', () => rebalanced(), 2_000],
])('under a policy %s none goes while one is gone that a silent watch shows as it was', async (_, of, ms) => {
  let gone: string | undefined;
  const look = of();
  const gets = (): string[] =>
    room.api.requests('GET').flatMap(({ path }) => (path.startsWith(`${PODS}/`) ? [path.split('/').at(-1) ?? ''] : []));
  const missing = { code: 404, reason: 'NotFound', message: 'gone' };
  room.api.fault = ({ method, path }) => {
    if (method !== 'GET' || !path.startsWith(`${PODS}/`)) return undefined;
    gone ??= path.split('/').at(-1);
    return path.endsWith(`/${gone ?? ''}`) ? missing : undefined;
  };
  await goesOn(look, ms, 50);
  expect(new Set(gets()).size).toBeGreaterThan(1);
  expect(room.evictions()).toEqual([]);
  room.endPods([gone ?? '']);
  await goesOn(look, ms, 50);
  expect(room.evictions()).not.toEqual([]);
});

test('while the host has yet to answer about one no other strategy moves the next one', async () => {
  firstOne(itsEviction, 'hang');
  const end = new AbortController();
  const look = displaced(end.signal);
  await look();
  room.now += 15_000;
  const going = look();
  await room.seen('it is being evicted', () => room.evictions().length === 1);
  const other = rebalanced();
  for (let seconds = 0; seconds < 20; seconds += 2) {
    await other();
    room.now += 2_000;
  }
  expect(room.evictions()).toHaveLength(1);
  end.abort();
  await expect(going).rejects.toThrow();
});

test('a dry run of a rebalancer says who would go there in turn, as far as there is room for all of them, and what holds them', async () => {
  room.setRoom('west', 3);
  room.stopMoves('INC-7');
  const look = rebalanced({ dryRun: true });
  await look();
  room.now += 5_000;
  await look();
  const [found] =
    (room.api.objects.get(`${REBALANCERS}/now`) as unknown as WorkloadRebalancer).status?.observedWorkloads ?? [];
  expect(found).toMatchObject({ result: 'Successful', reason: 'DryRun' });
  expect(found?.message).toBeUndefined();
  const created = (name = ''): string => room.process.view.pods.get(`shop/${name}`)?.metadata.creationTimestamp ?? '';
  const moves = found?.moves ?? [];
  expect(moves).toHaveLength(3);
  // One of those that came within the last second.
  expect(created(moves[0]?.pod)).toBe(names.map(created).reduce((a, b) => (a > b ? a : b)));
  expect(new Set(moves.map(({ pod }) => pod)).size).toBe(3);
  for (const { to, why } of moves) expect(`${to} ${why}`).toMatch(/^west PolicyChanged: /);
  expect([room.evictions(), room.told('MoveWanted'), room.told('PodNotRebalanced')]).toEqual([[], [], []]);
  const spec = room.api.objects.get(POLICY)?.['spec'] as object;
  room.api.edit(POLICY, { spec: { ...spec, failover: { cluster: { purgeMode: 'Never' } } } });
  const { policies } = room.process.view;
  const isKnown = (): boolean => policies.get('shop/p')?.policy?.spec.failover?.cluster?.purgeMode === 'Never';
  await room.seen('the policy is known', isKnown);
  room.api.edit(`${REBALANCERS}/now`, { metadata: { generation: 7 }, status: {} });
  await look();
  room.now += 5_000;
  await look();
  const [held] =
    (room.api.objects.get(`${REBALANCERS}/now`) as unknown as WorkloadRebalancer).status?.observedWorkloads ?? [];
  expect(held?.message).toBe('now they would wait: its policy says purgeMode: Never');
});
