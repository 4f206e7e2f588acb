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

test('a drain keeps pods of a StatefulSet after one that it waits for, and lets one go in the same round that is not Ready itself', async () => {
  const typed = { apiVersion: 'apps/v1', kind: 'StatefulSet' };
  const metadata = { name: 'db', namespace: 'shop' };
  const spec = { replicas: 4, podManagementPolicy: 'OrderedReady' };
  const { uid = '' } = room.make('/apis/apps/v1/namespaces/shop/statefulsets', { ...typed, metadata, spec }).metadata;
  for (const [index, status] of ['True', 'False', 'True', 'False'].entries())
    room.make(PODS, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name: `db-${String(index)}`,
        namespace: 'shop',
        ownerReferences: [{ ...typed, name: 'db', uid, controller: true }],
      },
      spec: { nodeName: index < 2 ? 'west' : 'east', containers: [{ name: 'main' }] },
      status: { phase: 'Running', conditions: [{ type: 'Ready', status }] },
    });
  await room.seen('all are known', () => {
    const { owners } = room.process.view;
    return owners.byUid(uid) !== undefined && cached('db-3') !== undefined;
  });
  await drained();
  await look();
  expect(room.evictions().filter((name) => name.startsWith('db'))).toEqual(['db-3']);
  expect(room.told('DrainedPodHeld')).toEqual([
    expect.stringMatching(/^Pod db-2: .*StatefulSet db makes its pods in order, .* \(db-1 is not Ready\)$/),
  ]);
});

test('what waits in order for an earlier pod is read once in a while, not each pod of it', async () => {
  const typed = { apiVersion: 'apps/v1', kind: 'StatefulSet' };
  const metadata = { name: 'db', namespace: 'shop' };
  const spec = { replicas: 60, podManagementPolicy: 'OrderedReady' };
  const { uid = '' } = room.make('/apis/apps/v1/namespaces/shop/statefulsets', { ...typed, metadata, spec }).metadata;
  const make = (index: number): void => {
    const ownerReferences = [{ ...typed, name: 'db', uid, controller: true }];
    room.make(PODS, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: `db-${String(index)}`, namespace: 'shop', ownerReferences },
      spec: { nodeName: index < 2 ? 'west' : 'east', containers: [{ name: 'main' }] },
      status: { phase: 'Running', conditions: [{ type: 'Ready', status: index === 1 ? 'False' : 'True' }] },
    });
  };
  for (let index = 0; index < 60; index += 1) make(index);
  const { owners } = room.process.view;
  await room.seen('all are known', () => owners.byUid(uid) !== undefined && cached('db-59') !== undefined);
  await drained();
  const reads = (): number => room.api.requests('GET').filter(({ path }) => path.startsWith(`${PODS}/db-`)).length;
  const lookFor = async (seconds: number): Promise<void> => {
    for (let s = 0; s < seconds; s += 5) {
      await look();
      room.now += 5_000;
    }
  };
  await lookFor(60);
  const before = reads();
  await lookFor(600);
  // One in 15 seconds.
  expect(reads() - before).toBe(40);
  room.api.edit(`${PODS}/db-1`, { status: { conditions: [{ type: 'Ready', status: 'True' }] } });
  await room.seen('it is known', () => cached('db-1')?.status?.conditions?.[0]?.status === 'True');
  room.now += 15_000;
  await lookFor(15);
  expect(room.evictions().filter((name) => name.startsWith('db')).length).toBeGreaterThan(10);
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

  describe.each(['KeepOriginal', 'LongestRunning'])('whose pods would wait for it, by onHeal %s', (onHeal) => {
    beforeEach(async () => {
      const path = '/apis/spillway.dev/v1alpha1/namespaces/shop/placementpolicies/p';
      const failover = { onMemberLost: { onHeal } };
      room.api.edit(path, { spec: { ...(room.api.objects.get(path)?.['spec'] as object), failover } });
      const { policies } = room.process.view;
      const known = (): unknown => policies.get('shop/p')?.policy?.spec.failover?.onMemberLost?.onHeal;
      await room.seen('the policy is known', () => known() === onHeal);
      const conditions = ['Ready', 'spillway.dev/Mirrored'].map((type) => ({ type, status: 'True' }));
      for (const name of names) room.api.edit(`${PODS}/${name}`, { status: { conditions } });
    });

    test.each<[string, () => void]>([
      ['Recreate', () => room.editDeployment('web', { spec: { strategy: { type: 'Recreate' } } })],
      ['a ReplicaSet that tells its pods from no others', () => room.editSet('web-1', { spec: { selector: null } })],
    ])('keeps the rest as well where they cannot, with %s', async (_, edit) => {
      room.editSet('web-1', { spec: { selector: { matchLabels: { 'pod-template-hash': 'one' } } } });
      edit();
      const [first = '', second = ''] = names;
      const surges = (): boolean => room.process.placed.surgingSetOf(cached(second) as Pod) !== undefined;
      await room.seen('it cannot', () => !surges());
      await evicted(first);
      await say('east', 'False');
      await during(1_200);
      expect(room.evictions()).toEqual([]);
      expect(room.told('PodOfLostMemberHeld')).toContainEqual(expect.stringMatching(HELD));
    });
  });

  test('is left where a ReplicaSet had too few before, as by a quota: the first that ends may give it the room', async () => {
    room.editSet('web-1', { spec: { replicas: 6 } });
    await say('east', 'False');
    await during(315);
    expect(room.evictions().length).toBeGreaterThan(0);
  });
});

describe('by looks alone', () => {
  let now: number;
  let pods: Pod[];
  let idle: IdleControllers;
  const as = (kind: string, replicas: number): void => {
    const metadata = { name: 'db', uid: 'o' };
    const db = { apiVersion: 'apps/v1', kind, metadata, spec: { replicas, podManagementPolicy: 'OrderedReady' } };
    const placed = { workloadByKey: () => db, ofController: () => pods };
    idle = new IdleControllers({ placed, monotonic: () => now });
  };
  beforeEach(() => {
    now = 1_000_000;
  });
  const ownerReferences = [{ apiVersion: 'apps/v1', kind: 'Any', name: 'db', uid: 'o', controller: true }];
  const pod = (name: string, state: 'Ready' | 'not Ready' | 'ends' = 'Ready', uid = name): Pod => ({
    metadata: {
      name,
      uid,
      ownerReferences,
      ...(state === 'ends' ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}),
    },
    spec: { containers: [] },
    status: { conditions: [{ type: 'Ready', status: state === 'not Ready' ? 'False' : 'True' }] },
  });
  const whyHeld = (one: Pod): string | undefined => idle.whyNoneComes(one)?.why;

  test('a pod that a controller has made counts from the last look that did not show it: it may be as old as that', () => {
    as('ReplicaSet', 4);
    const [a, b, c, d] = [pod('a'), pod('b'), pod('c'), pod('d')];
    pods = [a, b, c, d];
    expect(whyHeld(a)).toBeUndefined();
    pods = [a, b];
    now += 60_000;
    expect(whyHeld(a)).toBeUndefined();
    pods = [a, b, pod('e')];
    now += 50_000;
    expect(whyHeld(a)).toBeUndefined();
    now += 11_000;
    expect(whyHeld(a)).toContain('ReplicaSet db has fewer pods than it asks for');
  });

  describe('of a StatefulSet that makes its pods in order', () => {
    const rest = ['db-1', 'db-2', 'db-3'].map((name) => pod(name));
    const [one, two, three] = rest as [Pod, Pod, Pod];
    beforeEach(() => as('StatefulSet', 4));

    test('those after one that ends for days stay, from the first look of a process on', () => {
      pods = [pod('db-0', 'ends'), ...rest];
      const why =
        'StatefulSet db makes its pods in order, and none in the place of this one before an earlier one is Ready (db-0 is on its way out)';
      for (let days = 0; days < 3; days += 1) {
        for (const each of rest) expect(whyHeld(each)).toBe(why);
        now += 86_400_000;
      }
    });

    test('they go for a minute after all was well, and stay until it is Ready, be it made again and again', () => {
      pods = [pod('db-0'), ...rest];
      expect(whyHeld(three)).toBeUndefined();
      for (let s = 0; s <= 600; s += 20) {
        now += 20_000;
        pods = [pod('db-0', 'not Ready', String(Math.min(s, 300))), one, two, ...(s < 300 ? [three] : [])];
        expect(whyHeld(two) === undefined).toBe(s < 60);
      }
      expect(whyHeld(two)).toMatch(/Ready \(db-0 is not Ready\)$/);
      pods = [pod('db-0', 'Ready', '300'), one, two];
      // The last one is missing for no longer than it can be made.
      expect(whyHeld(two)).toContain('it is yet to be seen whether it makes others');
      pods = [pod('db-0', 'Ready', '300'), one, two, pod('db-3', 'not Ready', 'new')];
      now += 5_000;
      expect(whyHeld(two)).toBeUndefined();
    });

    test('that one, those before it and those that are not Ready either go', () => {
      const [ill, other] = [pod('db-1', 'not Ready'), pod('db-2', 'not Ready')];
      pods = [pod('db-0'), ill, other, three];
      for (const each of [pod('db-0'), ill, other]) expect(whyHeld(each)).toBeUndefined();
      expect(idle.whyNoneComes(three)?.ofThese).toEqual([three]);
      expect(whyHeld(three)).toContain('(db-1 is not Ready)');
    });
  });
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

  test.each<[string, TypedObject, Pod[], number | undefined, string?]>([
    ['a ReplicaSet makes others beside those that end', replicaSet, [pod('a'), pod('b', 'ends')], 2],
    ['and beside those that have failed', replicaSet, [pod('a'), pod('b', 'failed'), pod('c', 'waits')], 1],
    ['one with too many makes none', replicaSet, ['a', 'b', 'c', 'd'].map((name) => pod(name)), 0],
    ['so does a ReplicationController', owner('v1', 'ReplicationController'), [pod('a')], 2],
    ['a StatefulSet makes none of a name that there is', parallel, [pod('db-0'), pod('db-1', 'ends')], 1],
    ['in order, only those after all that are Ready', ordered, [pod('db-0'), pod('db-1')], 1],
    ['and none after one that is not, for which it waits', ordered, [pod('db-0', 'waits'), pod('db-1')], 0, 'db-0'],
    ['nor after one that ends', ordered, [pod('db-0'), pod('db-1', 'ends'), pod('db-2', 'ends')], 0, 'db-1'],
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
  ])('%s', (_, controller, pods, count, waitsFor) => {
    const found = unmadePods(controller, pods);
    expect([found?.count, found?.waitsFor?.metadata.name]).toEqual([count, waitsFor]);
  });

  test('one that is being deleted makes none', () => {
    const { metadata, ...rest } = replicaSet;
    const gone = { ...rest, metadata: { ...metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } };
    expect(unmadePods(gone, [])).toEqual({ count: 0 });
  });
});
