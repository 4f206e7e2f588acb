import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Pod } from '../../src/kube/core-v1.ts';
import type { TypedObject } from '../../src/placement/owner-chain.ts';
import { IdleControllers } from '../../src/descheduler/idle-controllers.ts';
import { unmadePods } from '../../src/descheduler/unmade-pods.ts';
import { SchedulerRoom } from '../fixtures/scheduler-room.ts';

/** Four pods of a ReplicaSet in east that go before others are made; whether any is made says each test. */
let room: SchedulerRoom;
let set: TypedObject;
let names: string[];
const PODS = '/api/v1/namespaces/shop/pods';
const MEMBERS = ['east', 'west', 'north', 'south'];
const HELD =
  /ReplicaSet web-1 has fewer pods than it asks for, and makes none: its Events say why, such as FailedCreate \(/;

beforeEach(async () => {
  room = await SchedulerRoom.start(MEMBERS);
  ({ set } = await room.deploy('web', 4));
  names = await room.run(set, { east: 4 });
  await ready(names);
  room.setRoom('local', 0);
  room.setRoom('west', 100);
});
afterEach(async () => {
  await room.close();
});

const cached = (name: string): Pod | undefined => room.process.view.pods.get(`shop/${name}`);
const look = async (): Promise<unknown> =>
  await room.process.members.bringUpToDate('east', new AbortController().signal);

async function ready(which: readonly string[]): Promise<void> {
  const conditions = [{ type: 'Ready', status: 'True' }];
  for (const name of which) room.api.edit(`${PODS}/${name}`, { status: { phase: 'Running', conditions } });
  const isKnown = (name: string): boolean =>
    cached(name)?.metadata.resourceVersion === room.api.objects.get(`${PODS}/${name}`)?.metadata.resourceVersion;
  await room.seen('they are Ready', () => which.every(isKnown));
}

async function drained(is = true): Promise<void> {
  const taints = is ? [{ key: 'spillway.dev/drain', effect: 'NoSchedule' }] : [];
  room.api.edit('/api/v1/nodes/east', { spec: { taints } });
  await room.seen('it is known', () => room.process.placed.member('east')?.drained.has('east') === is);
}

async function say(name: string, status: 'True' | 'False'): Promise<void> {
  const lastTransitionTime = new Date(room.now).toISOString();
  const reason = status === 'True' ? 'Ready' : 'Timeout';
  const conditions = ['Ready', 'Reachable'].map((type) => ({ type, message: '', lastTransitionTime, status, reason }));
  room.editMember(name, { status: { conditions } });
  await room.seen('it is known', () => room.process.placed.member(name)?.reachable === (status === 'True'));
}

/** Looks every 15 s, and shows the caches what was evicted. */
async function during(seconds: number): Promise<void> {
  for (let s = 0; s < seconds; s += 15) {
    await look();
    await room.seen('they are gone', () => {
      const left = room.evictions().flatMap((name) => cached(name) ?? []);
      return left.every(({ metadata }) => metadata.deletionTimestamp !== undefined);
    });
    room.now += 15_000;
  }
}

describe('a drain of a ReplicaSet that is refused every new pod', () => {
  test('ends no more than one where there is room for one, however long it takes', async () => {
    room.setRoom('west', 1);
    await drained();
    await during(1_800);
    expect(room.evictions()).toHaveLength(1);
    expect(room.told('DrainedPodHeld')).toContainEqual(expect.stringMatching(HELD));
  });

  test('goes on once it has made one', async () => {
    room.setRoom('west', 1);
    await drained();
    await during(600);
    expect(room.evictions()).toHaveLength(1);
    await ready(await room.run(set, { west: 1 }));
    await during(30);
    expect(room.evictions()).toHaveLength(2);
  });

  test('begins not at all where it had too few before, which a process that has just started cannot tell from what the last one took', async () => {
    room.endPods(names.slice(0, 1));
    await room.seen('it is gone', () => cached(names[0] ?? '') === undefined);
    await drained();
    await during(45);
    expect(room.evictions()).toEqual([]);
    expect(room.told('DrainedPodHeld')).toContainEqual(
      expect.stringMatching(/ReplicaSet web-1 has fewer pods than it asks for, and it is yet to be seen whether it /),
    );
    await during(600);
    expect(room.evictions()).toEqual([]);
    expect(room.told('DrainedPodHeld')).toContainEqual(expect.stringMatching(HELD));
    await ready(await room.run(set, { west: 1 }));
    await during(15);
    expect(room.evictions().length).toBeGreaterThan(0);
  });

  test('begins not at all either where this process saw it make one a day ago, and has not looked since', async () => {
    room.setRoom('west', 1);
    await drained();
    await during(30);
    expect(room.evictions()).toHaveLength(1);
    await drained(false);
    await ready(await room.run(set, { east: 1 }));
    room.now += 86_400_000;
    room.setRoom('west', 100);
    const [own = ''] = names.filter((name) => !room.evictions().includes(name));
    room.endPods([own]);
    await room.seen('it is gone', () => cached(own) === undefined);
    await drained();
    await during(600);
    expect(room.evictions()).toHaveLength(1);
    expect(room.told('DrainedPodHeld')).toContainEqual(expect.stringMatching(HELD));
  });

  test('goes on while it is scaled up, as it makes pods', async () => {
    room.editSet('web-1', { spec: { replicas: 9 } });
    await room.seen('it is known', () => {
      const known = room.process.placed.workloadByKey(`shop/${set.metadata.uid ?? ''}`);
      return (known as { spec?: { replicas?: number } } | undefined)?.spec?.replicas === 9;
    });
    await drained();
    await look();
    expect(room.evictions()).toEqual([]);
    await ready(await room.run(set, { west: 1 }));
    // What was held rests for a moment.
    room.now += 2_000;
    await during(15);
    expect(room.evictions()).toHaveLength(4);
  });
});

describe('a lost member', () => {
  beforeEach(async () => {
    for (const name of MEMBERS) await say(name, 'True');
    room.place('p', {});
  });
  const evicted = async (name: string): Promise<void> => {
    const pod = room.api.objects.get(`${PODS}/${name}`);
    if (pod === undefined) throw new Error(`${name} is gone`);
    const metadata = { ...pod.metadata, deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: 30 };
    room.api.put(`${PODS}/${name}`, { ...pod, metadata });
    await room.seen('it ends', () => cached(name)?.metadata.deletionTimestamp !== undefined);
  };

  test('keeps the rest when nobody comes for those that end there', async () => {
    const [first = ''] = names;
    await evicted(first);
    await say('east', 'False');
    await during(1_200);
    expect(room.evictions()).toEqual([]);
    expect(room.told('PodOfLostMemberHeld')).toContainEqual(expect.stringMatching(HELD));
    await room.run(set, { west: 1 });
    await during(15);
    expect(room.evictions()).toHaveLength(3);
  });

  test('is left where a ReplicaSet had too few before, as by a quota: the first that ends may give it the room', async () => {
    room.editSet('web-1', { spec: { replicas: 6 } });
    await say('east', 'False');
    await during(315);
    expect(room.evictions().length).toBeGreaterThan(0);
  });
});

test('a pod that a controller has made counts from the last look that did not show it: it may be as old as that', () => {
  let now = 1_000_000;
  const db = { apiVersion: 'apps/v1', kind: 'ReplicaSet', metadata: { name: 'db', uid: 'o' }, spec: { replicas: 4 } };
  const ownerReferences = [{ ...db, ...db.metadata, controller: true }];
  const pod = (uid: string): Pod => ({ metadata: { name: uid, uid, ownerReferences }, spec: { containers: [] } });
  let pods = ['a', 'b', 'c', 'd'].map(pod);
  const idle = new IdleControllers({
    placed: { workloadByKey: () => db, ofController: () => pods },
    monotonic: () => now,
  });
  const isHeld = (): boolean => idle.whyNoneComes(pod('a')) !== undefined;
  expect(isHeld()).toBe(false);
  pods = ['a', 'b'].map(pod);
  now += 60_000;
  expect(isHeld()).toBe(false);
  pods = ['a', 'b', 'e'].map(pod);
  now += 50_000;
  expect(isHeld()).toBe(false);
  now += 11_000;
  expect(isHeld()).toBe(true);
});

describe('pods that a controller could make and has not', () => {
  const owner = (apiVersion: string, kind: string, spec: object = {}, more: object = {}): TypedObject =>
    ({ apiVersion, kind, metadata: { name: 'db', uid: 'o' }, spec: { replicas: 3, ...spec }, ...more }) as TypedObject;
  const pod = (name: string, state: 'ready' | 'waits' | 'ends' | 'failed' = 'ready'): Pod => ({
    metadata: { name, uid: name, ...(state === 'ends' ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}) },
    spec: { containers: [] },
    status: {
      phase: state === 'failed' ? 'Failed' : 'Running',
      conditions: state === 'waits' ? [] : [{ type: 'Ready', status: 'True' }],
    },
  });
  const huge = { replicas: 2 ** 31 - 1 };
  const ordered = owner('apps/v1', 'StatefulSet', { podManagementPolicy: 'OrderedReady' });
  const parallel = owner('apps/v1', 'StatefulSet', { podManagementPolicy: 'Parallel' });
  const replicaSet = owner('apps/v1', 'ReplicaSet');

  test.each<[string, TypedObject, Pod[], number | undefined]>([
    ['a ReplicaSet makes others beside those that end', replicaSet, [pod('a'), pod('b', 'ends')], 2],
    ['and beside those that have failed', replicaSet, [pod('a'), pod('b', 'failed'), pod('c', 'waits')], 1],
    ['one with too many makes none', replicaSet, ['a', 'b', 'c', 'd'].map((name) => pod(name)), 0],
    ['so does a ReplicationController', owner('v1', 'ReplicationController'), [pod('a')], 2],
    ['a StatefulSet makes none of a name that there is', parallel, [pod('db-0'), pod('db-1', 'ends')], 1],
    ['in order, only those after all that are Ready', ordered, [pod('db-0'), pod('db-1')], 1],
    ['and none after one that is not', ordered, [pod('db-0', 'waits'), pod('db-1')], 0],
    ['nor after one that ends', ordered, [pod('db-0', 'ends'), pod('db-1')], 0],
    ['but the one before it', ordered, [pod('db-1', 'waits'), pod('db-2')], 1],
    [
      'by the ordinals that it begins at',
      owner('apps/v1', 'StatefulSet', { ordinals: { start: 5 } }),
      ['db-5', 'db-6', 'db-7'].map((name) => pod(name)),
      0,
    ],
    [
      'of all there can be',
      owner('apps/v1', 'StatefulSet', { ...huge, podManagementPolicy: 'Parallel' }),
      [],
      2 ** 31 - 1,
    ],
    ['of all there can be, in order', owner('apps/v1', 'StatefulSet', huge), [pod('db-0')], 1],
    ['of a Job nobody can tell', owner('batch/v1', 'Job', { parallelism: 3 }), [], undefined],
    ['nor of a kind that is not known', owner('example.org/v1', 'ReplicaSet'), [], undefined],
  ])('%s', (_, controller, pods, count) => {
    expect(unmadePods(controller, pods)).toBe(count);
  });

  test('one that is being deleted makes none', () => {
    const { metadata, ...rest } = replicaSet;
    const gone = { ...rest, metadata: { ...metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } };
    expect(unmadePods(gone, [])).toBe(0);
  });
});
