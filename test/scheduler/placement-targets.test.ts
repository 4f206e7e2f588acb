import { isDeepStrictEqual } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Pod, Volume } from '../../src/kube/core-v1.ts';
import { timestamp } from '../../src/kube/timestamps.ts';
import { workloadOf } from '../../src/placement/owner-chain.ts';
import type { TypedObject } from '../../src/placement/owner-chain.ts';
import { countedRoom } from '../fixtures/counted-room.ts';
import { SchedulerRoom } from '../fixtures/scheduler-room.ts';

/** Deployment shop/web of 4 pods on members, nobody asks about a pod of it, and what decides about it changes. */

let room: SchedulerRoom;
let deployment: TypedObject;
let set: TypedObject;

const BOTH = { clusterAffinity: { clusterNames: ['east', 'west'] } };
const EQUAL = { ...BOTH, replicaScheduling: {} };
const DYNAMIC = { ...BOTH, replicaScheduling: { weightPreference: { dynamicWeight: 'AvailableReplicas' } } };
/** Longer than between two writes, also for a process that knows of the former by the object. */
const PACE_MS = 11_000;
/** When a plan is written that changed while no pod came or went. */
const PLAN_ALONE_MS = 60_000;

beforeEach(async () => {
  room = await SchedulerRoom.start(['east', 'west', 'north']);
  ({ deployment, set } = await room.deploy('web', 4));
});
afterEach(async () => {
  await room.close();
});

const weighted = (weights: Record<string, number>): object => {
  const staticWeightList = Object.entries(weights).map(([name, weight]) => ({
    targetCluster: { clusterNames: [name] },
    weight,
  }));
  return { replicaScheduling: { weightPreference: { staticWeightList } } };
};

/** The member is Ready, or not. */
function mark(name: string, isReady: boolean): void {
  const status = isReady ? 'True' : 'False';
  const reason = isReady ? 'Ready' : 'Timeout';
  const ready = { type: 'Ready', status, reason, message: '', lastTransitionTime: '2026-01-01T00:00:00Z' };
  room.editMember(name, { status: { conditions: [ready] } });
}

const editNode = (name: string, spec: object): void => room.api.edit(`/api/v1/nodes/${name}`, { spec });

/** Two pods in east and two in west, with more in their specs than the caches keep. */
async function runWith(spec: object): Promise<void> {
  const pods = await room.run(set, { east: 2, west: 2 });
  for (const name of pods) room.api.edit(`/api/v1/namespaces/shop/pods/${name}`, { spec });
}

function targets(): Record<string, number> | undefined {
  const clusters = room.placementOf('web')?.status?.clusters;
  return (
    clusters &&
    Object.fromEntries(clusters.flatMap(({ name, target }) => (target === undefined ? [] : [[name, target]])))
  );
}

/** The same as the process has it, before it is written. */
function planned(): Record<string, number> {
  const counts = room.process.workloads.plan(deployment)?.targets ?? new Map<string, number>();
  return Object.fromEntries([...counts].filter(([, count]) => count > 0));
}

const writes = (): number => room.api.requests('PATCH', '/workloadplacements/deployment-web/status').length;

/** Looks at single pods past the caches. */
const readPods = (): number =>
  room.api.requests('GET', '/pods').filter(({ query }) => query['fieldSelector']?.startsWith('metadata.name=')).length;

/** Waits for the targets, and makes sure that nothing else comes of it: one write, and pods are left alone. */
async function told(wanted: Record<string, number>): Promise<void> {
  const before = writes();
  const pods = room.pods().map(({ metadata, spec }) => [metadata.uid, spec.nodeName]);
  const isTold = (): boolean => isDeepStrictEqual(targets(), wanted);
  await room.seen(`the targets are ${JSON.stringify(wanted)}`, () => isTold() || isDeepStrictEqual(planned(), wanted));
  await room.quiet();
  if (!isTold()) {
    room.now += PLAN_ALONE_MS;
    await room.process.placements.bringUpToDate(deployment.metadata.uid ?? '', new AbortController().signal);
    const { store } = room.process;
    const version = room.placementOf('web')?.metadata.resourceVersion;
    await room.seen('it is in the caches', () => store.get(deployment)?.metadata.resourceVersion === version);
  }
  expect(targets()).toEqual(wanted);
  expect(writes() - before).toBeLessThanOrEqual(1);
  expect(room.pods().map(({ metadata, spec }) => [metadata.uid, spec.nodeName])).toEqual(pods);
  room.now += PACE_MS;
}

describe('targets follow without a pod that asks:', () => {
  test('a member goes, and is back', async () => {
    room.place('p', EQUAL);
    await room.run(set, { east: 3, west: 1 });
    room.letWrite();
    await told({ east: 2, west: 2 });
    mark('west', false);
    // What it has counts.
    await told({ east: 3 });
    mark('west', true);
    await told({ east: 2, west: 2 });
    expect(readPods()).toBeLessThanOrEqual(1);
  });

  test('a division by room is the same when a member is back, and all its pods still are', async () => {
    room.place('p', DYNAMIC);
    await room.run(set, { east: 1, west: 3 });
    room.letWrite();
    await told({ east: 1, west: 3 });
    mark('west', false);
    await told({ east: 1 });
    mark('west', true);
    await told({ east: 1, west: 3 });
  });

  test('also when no member could be used meanwhile', async () => {
    room.place('p', DYNAMIC);
    await room.run(set, { east: 1, west: 3 });
    room.letWrite();
    await told({ east: 1, west: 3 });
    mark('west', false);
    mark('east', false);
    await told({});
    mark('west', true);
    mark('east', true);
    await told({ east: 1, west: 3 });
  });

  test('a policy is edited', async () => {
    room.place('p', EQUAL);
    await room.run(set, { east: 2, west: 2 });
    room.letWrite();
    await told({ east: 2, west: 2 });
    room.place('p', weighted({ east: 1, north: 3 }));
    // Those in west stay, and count.
    await told({ east: 1, north: 1 });
    expect(room.placementOf('web')?.status?.policy).toMatchObject({ generation: 2 });
    room.place('p', weighted({ east: 1, west: 3 }));
    await told({ east: 1, west: 3 });
  });

  test('a virtual node is cordoned, and let go again', async () => {
    room.place('p', EQUAL);
    await room.run(set, { east: 2, west: 2 });
    room.letWrite();
    await told({ east: 2, west: 2 });
    editNode('west', {
      unschedulable: true,
      taints: [{ key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' }],
    });
    await told({ east: 2 });
    editNode('west', { unschedulable: null, taints: null });
    await told({ east: 2, west: 2 });
  });

  test('a member is avoided no longer', async () => {
    room.place('p', EQUAL);
    await room.run(set, { east: 2, west: 2 });
    const { process } = room;
    await room.seen('the policy is known', () => process.view.policies.get('shop/p') !== undefined);
    const refusal = { cluster: 'west', reason: 'MemberQuotaExceeded', message: 'exceeded quota: pods=10' };
    process.workloads.refused(deployment, refusal, 60_000);
    const uid = deployment.metadata.uid ?? '';
    const bringUpToDate = async () => await process.placements.bringUpToDate(uid, new AbortController().signal);
    await bringUpToDate();
    expect(targets()).toEqual({ east: 2 });
    const { version } = room.api;
    await room.seen(
      'it is in the caches',
      () => Number(process.store.get(deployment)?.metadata.resourceVersion) === version,
    );
    expect(await bringUpToDate()).toEqual({ requeueAfterMs: 60_000 });
    room.now += 60_000;
    await bringUpToDate();
    expect(targets()).toEqual({ east: 2, west: 2 });
  });
});

test('there are none where no pod can go', async () => {
  room.place('p', { clusterAffinity: { exclude: ['north'] }, replicaScheduling: {} });
  await runWith({ nodeSelector: { type: 'virtual-kubelet' } });
  room.letWrite();
  await told({ east: 2, west: 2 });
});

test('there are none for a gang, which was placed as a whole', async () => {
  room.place('p', EQUAL);
  const labelled = {
    ...set,
    metadata: { ...set.metadata, labels: { ...set.metadata.labels, 'spillway.dev/gang': 'ring' } },
  };
  await room.run(labelled, { east: 4 }, { 'spillway.dev/gang-placed-at': '2026-01-01T00:00:00Z' });
  room.letWrite();
  await told({});
});

describe('what a scheduler asked about last', () => {
  /** As the extender notes it, with the plan that it made of it. */
  function asked(pod: Pod, targets: Record<string, number>): void {
    const { view, workloads } = room.process;
    const chain = view.owners.chainOf(pod);
    const { chosen } = view.policies.select(chain, view.namespaceLabels('shop'));
    if (chosen === undefined) throw new Error('no rules');
    const plan = { affinityName: undefined, targets: new Map(Object.entries(targets)), tiers: new Map() };
    const decision = { allowed: [], refusals: [], plan };
    workloads.decided({ chain, identity: workloadOf(chain), pod, rules: chosen, decision });
  }
  const last = (): Pod => room.pods().at(-1) as Pod;
  const ruled = async () =>
    await room.seen('the policy is known', () => room.process.view.policies.get('shop/p') !== undefined);

  const volumes: Record<string, (pod: string) => Volume> = {
    'an ephemeral claim': () => ({ name: 'data', ephemeral: {} }),
    'the claim of a template': (pod) => ({ name: 'data', persistentVolumeClaim: { claimName: `data-${pod}` } }),
  };
  test.each(Object.entries(volumes))('keeps others from no member by where its data are: %s', async (_, volume) => {
    const isElsewhere = ({ spec }: Pod): boolean =>
      spec.volumes?.some((one) => one.ephemeral !== undefined || one.persistentVolumeClaim !== undefined) === true;
    const east = countedRoom('east', () => 10);
    const request = (pod: Pod) => (isElsewhere(pod) ? { refused: 'its claim is bound in west' } : east.request(pod));
    room.capacities.set('east', { ...east, request });
    room.place('p', EQUAL);
    const pods = await room.run(set, { east: 2, west: 2 });
    for (const name of pods)
      room.api.edit(`/api/v1/namespaces/shop/pods/${name}`, { spec: { volumes: [volume(name)] } });
    await ruled();
    asked(last(), { east: 2, west: 2 });
    room.letWrite();
    await told({ east: 2, west: 2 });
    // Nor does one that is read.
    await room.restart();
    room.letWrite();
    mark('north', false);
    room.place('p', weighted({ east: 1, west: 3 }));
    await told({ east: 1, west: 3 });
  });

  test('does not count once the workload makes pods of another revision, whichever replica is asked about them', async () => {
    room.place('p', DYNAMIC);
    room.capacities.set(
      'east',
      countedRoom('east', () => 0),
    );
    room.capacities.set(
      'west',
      countedRoom('west', () => 0),
    );
    const first = await room.run(set, { east: 1, west: 3 });
    await ruled();
    asked(last(), { east: 1, west: 3 });
    room.letWrite();
    await told({ east: 1, west: 3 });
    const next = await room.rollOut(deployment, 'two', '2');
    const second = await room.run(next, { east: 1, west: 3 });
    room.endPods(first);
    await told({ east: 1, west: 3 });
    // Back to the former one, while the ReplicaSet of the newer one stays.
    room.editSet('web-1', { metadata: { annotations: { 'deployment.kubernetes.io/revision': '3' } } });
    await room.run(set, { east: 1, west: 3 });
    room.endPods(second);
    await room.restart();
    room.letWrite();
    await told({ east: 1, west: 3 });
    // What west has of it counts.
    mark('west', false);
    room.place('p', EQUAL);
    await told({ east: 1 });
  });
});

describe('what another replica planned since', () => {
  const FULL = { east: 9, west: 3 };
  const planOf = (targets: Record<string, number>) => ({
    affinityName: undefined,
    targets: new Map(Object.entries(targets)),
    tiers: new Map(Object.keys(targets).map((name) => [name, 0])),
  });

  /** 12 pods where the other replica had them, whose clock is wrong by so much, in ms. */
  async function plannedBefore(clockAheadMs: number): Promise<void> {
    for (const name of ['east', 'west'])
      room.capacities.set(
        name,
        countedRoom(name, () => 20),
      );
    room.capacities.set(
      'local',
      countedRoom('local', () => 0),
    );
    room.place('p', DYNAMIC);
    // This one was asked about the first six, an hour before.
    const { workloads, store, view } = room.process;
    await room.seen('the policy is known', () => view.policies.get('shop/p') !== undefined);
    workloads.refreshed(deployment, planOf({ east: 3, west: 3 }));
    room.now += 3_600_000;
    room.editDeployment('web', { spec: { replicas: 12 } });
    await room.run(set, FULL);
    const { uid = '' } = deployment.metadata;
    const path = '/apis/spillway.dev/v1alpha1/namespaces/shop/workloadplacements';
    room.make(path, {
      apiVersion: 'spillway.dev/v1alpha1',
      kind: 'WorkloadPlacement',
      metadata: { name: 'deployment-web', namespace: 'shop' },
      spec: { workload: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid } },
    });
    const plannedAt = timestamp(room.now + clockAheadMs);
    const clusters = Object.entries(FULL).map(([name, count]) => ({ name, tier: 0, target: count, actual: count }));
    room.api.edit(`${path}/deployment-web`, { status: { plannedAt, clusters } });
    await room.seen('it is stored', () => store.statusOf(deployment) !== undefined);
  }

  test.each([
    ['of the same time', 0],
    ['that is two hours slow', -7_200_000],
    ['that is two hours fast', 7_200_000],
  ])('counts, by a clock %s: no pod is moved away from it, and no seat', async (_, clockAheadMs) => {
    await plannedBefore(clockAheadMs);
    const { placed } = room.process;
    const live = room.pods().filter(({ spec }) => spec.nodeName === 'east');
    expect(live.map((pod) => placed.betterPlace(pod, 'east'))).toEqual(live.map(() => undefined));
    room.letWrite();
    await told(FULL);
  });

  test('does not count while this one plans itself, whatever the times say', async () => {
    await plannedBefore(7_200_000);
    const { workloads } = room.process;
    workloads.refreshed(deployment, planOf({ east: 8, west: 4 }));
    room.now += 29_000;
    expect(workloads.plan(deployment)?.targets).toEqual(planOf({ east: 8, west: 4 }).targets);
    room.now += 1_000;
    expect(workloads.plan(deployment)?.targets).toEqual(planOf(FULL).targets);
  });
});

describe('targets stay', () => {
  test('what this process had stored itself, once that counts', async () => {
    room.place('p', DYNAMIC);
    await room.run(set, { east: 3, west: 1 });
    room.letWrite();
    await told({ east: 3, west: 1 });
    const before = writes();
    room.now += 60_000;
    // Every workload is looked at again.
    mark('north', false);
    await told({ east: 3, west: 1 });
    expect(writes()).toBe(before);
  });

  test('while a virtual node is not ready for a moment: only the probe says whether its member is there', async () => {
    room.place('p', EQUAL);
    await room.run(set, { east: 3, west: 1 });
    room.letWrite();
    await told({ east: 2, west: 2 });
    const before = writes();
    for (const key of ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable']) {
      editNode('west', { taints: [{ key, effect: 'NoSchedule' }] });
      await told({ east: 2, west: 2 });
    }
    expect(writes()).toBe(before);
  });

  test('what they are in another process, which knows of no pod what it asks for', { timeout: 60_000 }, async () => {
    const tainted = { spec: { taints: [{ key: 'dear', effect: 'NoSchedule' }] } };
    room.editMember('west', tainted);
    room.place('p', EQUAL);
    const tolerations = [{ key: 'dear', operator: 'Exists' }];
    await runWith({ tolerations });
    room.letWrite();
    await told({ east: 2, west: 2 });
    const before = writes();
    await room.restart();
    room.letWrite();
    await told({ east: 2, west: 2 });
    expect(writes()).toBe(before);
    mark('west', false);
    await told({ east: 2 });
    await room.restart();
    room.letWrite();
    mark('west', true);
    await told({ east: 2, west: 2 });
    // One look in each of the processes at most, and none at other pods.
    expect(readPods()).toBeLessThanOrEqual(3);
  });
});
