import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { MemberCapacity } from '../../src/capacity/member-capacity.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { memberNode, poolOf } from '../fixtures/member-nodes.ts';
import { memberFit } from '../fixtures/member-room.ts';
import { SchedulerRoom } from '../fixtures/scheduler-room.ts';

/** Pods of member east are to go; what each leaves behind it needs a place of its own size before the next one goes. */
let room: SchedulerRoom;
let west: MemberCapacity;
const PODS = '/api/v1/namespaces/shop/pods';
const SETS = '/apis/apps/v1/namespaces/shop/statefulsets';
const signal = new AbortController().signal;

beforeEach(async () => {
  room = await SchedulerRoom.start(['east', 'west']);
  room.setRoom('local', 0);
  room.place('sets', {}, { kind: 'StatefulSet' });
  await room.seen('the policy is known', () => room.process.view.policies.get('shop/sets') !== undefined);
});
afterEach(async () => {
  await room.close();
});

/** Member west has nodes with so many cores free. */
function nodes(...cores: readonly number[]): void {
  const { capacity, virtual } = memberFit({ pools: [poolOf({ virtualNode: 'west' })] }, 'west');
  west = capacity;
  cores.forEach((cpu, index) => setNode(`n${String(index)}`, cpu));
  room.capacities.set('west', virtual);
}

function setNode(name: string, cpu: number): void {
  const allocatable = { cpu: String(cpu), memory: '64Gi', pods: '110' };
  west.nodeHandler.updated(memberNode(name, { allocatable, capacity: allocatable }));
}

const asking = (cpu: number): object => ({
  containers: [{ name: 'main', image: 'app', resources: { requests: { cpu: String(cpu) } } }],
});
const typed = { apiVersion: 'apps/v1', kind: 'StatefulSet' };
const cached = (name: string): Pod | undefined => room.process.view.pods.get(`shop/${name}`);

/** The pod of a StatefulSet of one, in east. @returns its name */
async function statefulPod(name: string, cpu: number, spec: object = {}, replicas = 1): Promise<string> {
  const { uid = '' } = room.make(SETS, {
    ...typed,
    metadata: { name, namespace: 'shop' },
    spec: { replicas },
  }).metadata;
  await room.seen('its controller is known', () => room.process.view.owners.byUid(uid) !== undefined);
  await makePod(`${name}-0`, name, uid, {
    nodeName: 'east',
    terminationGracePeriodSeconds: 120,
    ...asking(cpu),
    ...spec,
  });
  return `${name}-0`;
}

async function makePod(
  pod: string,
  name: string,
  uid: string,
  spec: object,
  status?: object,
  metadata: object = {},
): Promise<void> {
  room.make(PODS, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: pod,
      namespace: 'shop',
      creationTimestamp: new Date(room.now).toISOString(),
      ownerReferences: [{ ...typed, name, uid, controller: true }],
      ...metadata,
    },
    spec,
    status: status ?? { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
  });
  await room.seen('it is known', () => cached(pod) !== undefined);
}

/** The one that ended is gone, and its StatefulSet makes the next one, which has no node. */
async function comes(name: string, cpu: number, status: object = { phase: 'Pending' }): Promise<void> {
  await ends(`${name}-0`);
  const { uid = '' } = room.api.objects.get(`${SETS}/${name}`)?.metadata ?? {};
  await makePod(`${name}-0`, name, uid, asking(cpu), status);
}

async function ends(pod: string): Promise<void> {
  room.endPods([pod]);
  await room.seen('it is gone', () => cached(pod) === undefined);
}

async function drain(): Promise<void> {
  room.api.edit('/api/v1/nodes/east', { spec: { taints: [{ key: 'spillway.dev/drain', effect: 'NoSchedule' }] } });
  await room.seen('it is known', () => room.process.placed.members().some(({ drained }) => drained.has('east')));
}

async function look(): Promise<void> {
  await room.process.members.bringUpToDate('east', signal);
}

/** So much later, whatever anybody held back until then is looked at again. */
async function lookIn(ms: number): Promise<string[]> {
  room.now += ms;
  await look();
  return room.evictions();
}

const isEnding = (pod: string): boolean => cached(pod)?.metadata.deletionTimestamp !== undefined;

describe('room that one pod needs is promised to no other', () => {
  let first: string;
  /** It goes first, as it is more important. */
  beforeEach(async () => {
    first = await statefulPod('a', 4, { priority: 10 });
  });

  test('while the first one ends, which takes longer than a minute', async () => {
    await statefulPod('b', 4);
    nodes(4);
    await drain();
    await look();
    expect(room.evictions()).toEqual([first]);
    expect(await lookIn(59_000)).toEqual([first]);
    expect(await lookIn(2_000)).toEqual([first]);
    expect(await lookIn(300_000)).toEqual([first]);
    expect(room.told('DrainedPodHeld')).toContainEqual(
      expect.stringMatching(/^Pod b-0: .*: the room elsewhere is for pods that come before it$/),
    );
  });

  test('but not for ever: one that should have ended five minutes ago may end in days', async () => {
    await statefulPod('b', 4);
    nodes(4);
    await drain();
    await look();
    await room.seen('it ends', () => isEnding(first));
    expect(await lookIn(119_000 + 300_000)).toEqual([first]);
    expect(await lookIn(16_000)).toEqual([first, 'b-0']);
  });

  test('after a restart of the manager', async () => {
    await statefulPod('b', 4);
    nodes(4);
    await drain();
    await look();
    await room.seen('it ends', () => isEnding(first));
    await room.restart();
    expect(await lookIn(3_000)).toEqual([first]);
  });

  test('nor after one while its successor has no node', async () => {
    await statefulPod('b', 4);
    nodes(4);
    await drain();
    await look();
    await comes('a', 4);
    await room.restart();
    expect(await lookIn(120_000)).toEqual([first]);
  });

  test('nor while the first one is gone, and the next one has not come', async () => {
    await statefulPod('b', 4);
    nodes(4);
    await drain();
    await look();
    await room.seen('it ends', () => isEnding(first));
    await ends(first);
    expect(await lookIn(61_000)).toEqual([first]);
  });

  test('by its size: nor to smaller pods, of which many would fit', async () => {
    await statefulPod('b', 1);
    await statefulPod('c', 1);
    nodes(4);
    await drain();
    await look();
    expect(await lookIn(61_000)).toEqual([first]);
  });

  test('and what is left beside it is for those that it is enough for', async () => {
    await statefulPod('b', 3, { priority: 5 });
    const small = await statefulPod('c', 1);
    nodes(5);
    await drain();
    await look();
    expect(await lookIn(20_000)).toEqual([first, small]);
    // The smallest one goes to the emptiest node, and leaves enough there.
    setNode('n1', 4);
    expect(await lookIn(20_000)).toEqual([first, small, 'b-0']);
  });

  test('until it has its node: what is free beside it then is for the next one', async () => {
    await statefulPod('b', 4);
    nodes(4, 4);
    await drain();
    await look();
    expect(await lookIn(0)).toEqual([first, 'b-0']);
  });

  test('where it may go once it has left: its own cluster has as many as it may have without it', async () => {
    room.addMember('home');
    const affinity = { clusterNames: ['home'], max: 1, overflowAffinities: [{ clusterNames: ['west'] }] };
    room.place('two', { clusterAffinity: affinity }, { kind: 'StatefulSet', name: 'two' });
    room.place('b', { clusterAffinity: { clusterNames: ['west'] } }, { kind: 'StatefulSet', name: 'b' });
    room.place('sets', { clusterAffinity: { clusterNames: ['home'] } }, { kind: 'StatefulSet', name: 'a' });
    await room.seen('they are known', () => room.process.placed.members().length === 3);
    room.setRoom('home', 9);
    nodes(4);
    const { uid = '' } = room.make(SETS, {
      ...typed,
      metadata: { name: 'two', namespace: 'shop' },
      spec: { replicas: 2 },
    }).metadata;
    await room.seen('its controller is known', () => room.process.view.owners.byUid(uid) !== undefined);
    for (const name of ['two-0', 'two-1']) {
      await makePod(name, 'two', uid, { nodeName: 'home', terminationGracePeriodSeconds: 120, ...asking(4) });
    }
    const second = await statefulPod('b', 4);
    const whyNot = (): string | undefined => {
      const live = room.api.objects.get(`${PODS}/${second}`) as unknown as Pod;
      return room.process.placed.whyNotElsewhere(live, 'east', [])?.why;
    };
    expect(whyNot()).toBeUndefined();
    const ending = { deletionTimestamp: new Date(room.now).toISOString(), deletionGracePeriodSeconds: 120 };
    room.api.edit(`${PODS}/two-0`, { metadata: { ...ending, finalizers: ['example.com/slow'] } });
    await room.seen('it ends', () => isEnding('two-0'));
    expect(whyNot()).toBe('the room elsewhere is for pods that come before it');
    await ends('two-0');
    room.now += 2_000;
    expect(whyNot()).toBe('the room elsewhere is for pods that come before it');
  });

  test('where it may go: not in a cluster that its policy leaves out', async () => {
    room.addMember('south');
    room.place('sets', { clusterAffinity: { clusterNames: ['south'] } }, { kind: 'StatefulSet', name: 'a' });
    room.place('b', { clusterAffinity: { clusterNames: ['west'] } }, { kind: 'StatefulSet', name: 'b' });
    await statefulPod('b', 4);
    nodes(4);
    room.setRoom('south', 1);
    await room.seen('they are known', () => room.process.placed.members().length === 3);
    await drain();
    await look();
    expect(await lookIn(0)).toEqual([first, 'b-0']);
  });

  test('nor by a controller that is being deleted', async () => {
    await statefulPod('b', 4);
    nodes(4);
    await drain();
    await look();
    await room.seen('it ends', () => isEnding(first));
    const { uid = '' } = room.api.objects.get(`${SETS}/a`)?.metadata ?? {};
    const metadata = { deletionTimestamp: new Date(room.now).toISOString(), finalizers: ['foregroundDeletion'] };
    room.api.edit(`${SETS}/a`, { metadata });
    const isDeleted = (): boolean => room.process.view.owners.byUid(uid)?.metadata.deletionTimestamp !== undefined;
    await room.seen('it is deleted', isDeleted);
    expect(await lookIn(3_000)).toEqual([first, 'b-0']);
  });

  test('nor for a pod that lost its controller before it was gone', async () => {
    await statefulPod('b', 4);
    nodes(4);
    await drain();
    await look();
    await room.seen('it ends', () => isEnding(first));
    room.api.edit(`${PODS}/${first}`, { metadata: { ownerReferences: null } });
    await room.seen('it has none', () => cached(first)?.metadata.ownerReferences === undefined);
    await ends(first);
    expect(await lookIn(61_000)).toEqual([first, 'b-0']);
  });

  test.each([
    ['is suspended', { spec: { suspend: true } }],
    ['has ended', { status: { conditions: [{ type: 'Complete', status: 'True' }] } }],
  ])('nor by a Job that %s', async (_what, change) => {
    const jobs = '/apis/batch/v1/namespaces/shop/jobs';
    const batch = { apiVersion: 'batch/v1', kind: 'Job' };
    const { uid = '' } = room.make(jobs, {
      ...batch,
      metadata: { name: 'j', namespace: 'shop' },
      spec: { parallelism: 1 },
    }).metadata;
    await room.seen('it is known', () => room.process.view.owners.byUid(uid) !== undefined);
    const ending = { deletionTimestamp: new Date(room.now).toISOString(), deletionGracePeriodSeconds: 120 };
    const ownerReferences = [{ ...batch, name: 'j', uid, controller: true }];
    const metadata = { name: 'j-1', namespace: 'shop', ownerReferences, ...ending };
    const spec = { nodeName: 'east', ...asking(4) };
    room.make(PODS, { apiVersion: 'v1', kind: 'Pod', metadata, spec, status: { phase: 'Running' } });
    await room.seen('it ends', () => isEnding('j-1'));
    nodes(4);
    await drain();
    await look();
    expect(room.evictions()).toEqual([]);
    room.api.edit(`${jobs}/j`, change);
    await room.seen('that is known', () => {
      const { spec: kept = {}, status = {} } = room.process.view.owners.byUid(uid) as {
        spec?: object;
        status?: object;
      };
      return 'suspend' in kept || 'ended' in status;
    });
    expect(await lookIn(3_000)).toEqual([first]);
  });

  test('nor by a controller that has as many pods as it asks for', async () => {
    await statefulPod('b', 4);
    nodes(4);
    await drain();
    await look();
    await room.seen('it ends', () => isEnding(first));
    room.api.edit(`${SETS}/a`, { spec: { replicas: 0 } });
    await room.seen('it is scaled', () => {
      const { uid = '' } = room.api.objects.get(`${SETS}/a`)?.metadata ?? {};
      return (room.process.view.owners.byUid(uid) as { spec?: { replicas?: number } }).spec?.replicas === 0;
    });
    expect(await lookIn(3_000)).toEqual([first, 'b-0']);
  });
});

test.each([
  ['of a pod that was resized while it ran', 1, { generation: 2 }, []],
  ['not of one that admission made smaller', 1, { generation: 1 }, ['a-0']],
  ['not of one that is as it was made', 2, { generation: 2 }, ['a-0']],
])('room is asked for by the template of the next one: %s', async (_what, cpu, metadata, evicted) => {
  const template = { metadata: { labels: { app: 'a' } }, spec: asking(cpu === 1 ? 4 : cpu) };
  const { uid = '' } = room.make(SETS, {
    ...typed,
    metadata: { name: 'a', namespace: 'shop' },
    spec: { replicas: 1, template },
  }).metadata;
  await room.seen('its controller is known', () => room.process.view.owners.byUid(uid) !== undefined);
  await makePod('a-0', 'a', uid, { nodeName: 'east', ...asking(cpu) }, undefined, metadata);
  nodes(2);
  await drain();
  await look();
  expect(room.evictions()).toEqual(evicted);
});

describe('a pod that waits', () => {
  const refused = (): object => ({
    phase: 'Pending',
    conditions: [
      {
        type: 'PodScheduled',
        status: 'False',
        reason: 'Unschedulable',
        lastTransitionTime: new Date(room.now).toISOString(),
      },
    ],
  });

  test('keeps nobody from room that it cannot have itself', async () => {
    const [big, small] = [await statefulPod('a', 4, { priority: 10 }), await statefulPod('b', 1)];
    nodes(4);
    await drain();
    await look();
    expect(room.evictions()).toEqual([big]);
    // Somebody else has taken a part of its room.
    await comes('a', 4, refused());
    setNode('n0', 3);
    expect(await lookIn(15_000)).toEqual([big, small]);
  });

  test('is no more in the way where there are many of it: none of them fits', async () => {
    const first = await statefulPod('a', 4);
    nodes(4);
    // No rules say where these may go.
    for (let index = 0; index < 70; index += 1) {
      const metadata = { name: `big-${String(index)}`, namespace: 'shop' };
      room.make(PODS, { apiVersion: 'v1', kind: 'Pod', metadata, spec: asking(5), status: { phase: 'Pending' } });
    }
    await room.seen('they are known', () => cached('big-69') !== undefined);
    await drain();
    await look();
    expect(room.evictions()).toEqual([first]);
  });

  test('keeps nobody from it for longer where no scheduler ever speaks of it', async () => {
    const first = await statefulPod('a', 4);
    nodes(4);
    const creationTimestamp = new Date(room.now).toISOString();
    const metadata = { name: 'alone', namespace: 'shop', creationTimestamp };
    room.make(PODS, { apiVersion: 'v1', kind: 'Pod', metadata, spec: asking(4), status: { phase: 'Pending' } });
    await room.seen('it is known', () => cached('alone') !== undefined);
    await drain();
    await look();
    expect(await lookIn(280_000)).toEqual([]);
    expect(await lookIn(25_000)).toEqual([first]);
  });

  test('of very many kinds keeps nobody from room in another cluster than it may go to', async () => {
    const first = await statefulPod('a', 4);
    room.addMember('south');
    room.setRoom('south', 0);
    nodes(100);
    const batch = { apiVersion: 'batch/v1', kind: 'Job' };
    room.place('jobs', { clusterAffinity: { clusterNames: ['south'] } }, batch);
    for (let index = 0; index < 300; index += 1) {
      const name = `j-${String(index)}`;
      const job = { ...batch, metadata: { name, namespace: 'shop' }, spec: { parallelism: 1 } };
      const { uid = '' } = room.make('/apis/batch/v1/namespaces/shop/jobs', job).metadata;
      const ownerReferences = [{ ...batch, name, uid, controller: true }];
      const metadata = { name, namespace: 'shop', ownerReferences };
      room.make(PODS, { apiVersion: 'v1', kind: 'Pod', metadata, spec: asking(4), status: { phase: 'Pending' } });
    }
    const { view, placed } = room.process;
    await room.seen(
      'all is known',
      () => view.policies.get('shop/jobs') !== undefined && placed.members().length === 3,
    );
    await room.seen('they are known', () => cached('j-299') !== undefined);
    await drain();
    await look();
    expect(await lookIn(20_000)).toEqual([first]);
  });

  test('keeps its size and no more from others, and for five minutes where schedulers find no node for it', async () => {
    const [first, second] = [await statefulPod('a', 4, { priority: 10 }), await statefulPod('b', 4)];
    nodes(4);
    await drain();
    await look();
    await comes('a', 4, refused());
    expect(await lookIn(200_000)).toEqual([first]);
    expect(await lookIn(90_000)).toEqual([first]);
    expect(await lookIn(20_000)).toEqual([first, second]);
  });

  test.each([
    ['a node comes', (): void => setNode('n1', 4)],
    ['others have gone', (): void => setNode('n0', 4)],
  ])('for longer has the room that there is for it once %s', async (_what, grow) => {
    const first = await statefulPod('a', 4);
    const { uid = '' } = room.make(SETS, {
      ...typed,
      metadata: { name: 'other', namespace: 'shop' },
      spec: { replicas: 1 },
    }).metadata;
    await makePod('other-0', 'other', uid, asking(4), refused());
    nodes(2);
    await drain();
    await look();
    expect(await lookIn(400_000)).toEqual([]);
    grow();
    expect(await lookIn(20_000)).toEqual([]);
    expect(await lookIn(30_000)).toEqual([]);
    // Its scheduler does not take it.
    expect(await lookIn(30_000)).toEqual([first]);
  });

  test('does not keep it where no scheduler may put it', async () => {
    const first = await statefulPod('a', 4);
    nodes(4);
    const { uid = '' } = room.make(SETS, {
      ...typed,
      metadata: { name: 'other', namespace: 'shop' },
      spec: { replicas: 1 },
    }).metadata;
    await makePod('other-0', 'other', uid, { ...asking(4), nodeSelector: { gpu: 'true' } }, { phase: 'Pending' });
    await drain();
    await look();
    expect(room.evictions()).toEqual([first]);
  });
});
