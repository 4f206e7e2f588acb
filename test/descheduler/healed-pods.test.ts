import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { asOwned, releasedFrom, releasedText } from '../../src/api/released.ts';
import type { ReleasedPods } from '../../src/descheduler/released-pods.ts';
import { Releases } from '../../src/descheduler/releases.ts';
import { isReady } from '../../src/kube/conditions.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { jsonEqual } from '../../src/kube/json-equal.ts';
import { ownerKeyOf } from '../../src/kube/owner-references.ts';
import type { TypedObject } from '../../src/placement/owner-chain.ts';
import { releasedPodsIn } from '../fixtures/released-pods.ts';
import { SchedulerRoom } from '../fixtures/scheduler-room.ts';

/** A pod of ReplicaSet web-1 waits in east, which was lost; another one came in west. */
let room: SchedulerRoom;
let releases: Releases;
let ends: ReleasedPods;
let set: TypedObject;
let original = '';
let other = '';
const PODS = '/api/v1/namespaces/shop/pods';
const POLICY = '/apis/spillway.dev/v1alpha1/namespaces/shop/placementpolicies/p';
const COST = 'controller.kubernetes.io/pod-deletion-cost';

beforeEach(async () => {
  room = await SchedulerRoom.start(['east', 'west']);
  ({ set } = await room.deploy('web', 1));
  room.editSet('web-1', { spec: { replicas: 1, selector: { matchLabels: { 'pod-template-hash': 'one' } } } });
  room.place('p', {});
  [original = '', other = ''] = await room.run(set, { east: 1, west: 1 });
  releases = new Releases(() => room.now);
  ends = releasedPodsIn(room, releases);
  await rules('KeepOriginal');
  await answers(true, 'west');
  await answers(false);
  await madeAt(original, '2026-01-01T00:00:01Z');
  await madeAt(other, '2026-01-01T00:00:30Z');
  await release();
  await ready(other, '2026-01-01T00:01:00Z');
  room.editSet('web-1', { status: { replicas: 1, readyReplicas: 1 } });
});
afterEach(async () => {
  await room.close();
});

async function rules(onHeal: string, purgeMode?: 'Directly' | 'Never'): Promise<void> {
  const cluster = { purgeMode, gracePeriodSeconds: 600, onTimeout: 'GiveBack' };
  const failover = { onMemberLost: { onHeal }, ...(purgeMode === undefined ? {} : { cluster }) };
  room.api.edit(POLICY, { spec: { ...(room.api.objects.get(POLICY)?.['spec'] as object), failover } });
  await room.seen('the policy is known', () =>
    room.pods().every((pod) => jsonEqual(room.process.placed.rulesOf(asOwned(pod)).failover, failover)),
  );
}

async function answers(yes: boolean, member = 'east'): Promise<void> {
  const lastTransitionTime = new Date(room.now).toISOString();
  const condition = yes ? { status: 'True', reason: 'Ready' } : { status: 'False', reason: 'Timeout' };
  const conditions = ['Ready', 'Reachable'].map((type) => ({ type, message: '', lastTransitionTime, ...condition }));
  room.editMember(member, { status: { conditions } });
  const { placed } = room.process;
  await room.seen('the member is known', () =>
    placed.members().some(({ name, reachable }) => name === member && reachable === yes),
  );
}

const cached = (name: string): Pod | undefined => room.process.view.pods.get(`shop/${name}`);

/** Since then, or not at all. */
async function ready(name: string, since: string | undefined): Promise<void> {
  const status = since === undefined ? 'False' : 'True';
  const conditions = ['ContainersReady', 'Ready'].map((type) => ({ type, status, lastTransitionTime: since }));
  room.api.edit(`${PODS}/${name}`, { status: { phase: 'Running', conditions } });
  await room.seen('it is known', () => {
    const known = cached(name);
    return known !== undefined && isReady(known) === (since !== undefined);
  });
  const known = cached(name);
  if (known !== undefined) releases.seen(known);
}

async function madeAt(name: string, creationTimestamp: string): Promise<void> {
  const pod = stored(name);
  room.api.put(`${PODS}/${name}`, { ...pod, metadata: { ...pod.metadata, creationTimestamp } });
  await room.seen('it is known', () => cached(name)?.metadata.creationTimestamp === creationTimestamp);
}

async function release(name = original): Promise<void> {
  const { uid = '' } = set.metadata;
  const at = '2026-01-01T00:00:20Z';
  const mark = releasedText({ hash: 'one', replicaSet: 'web-1', uid, at, ready: 0, lost: true });
  room.api.edit(`${PODS}/${name}`, {
    metadata: {
      labels: { 'pod-template-hash': null },
      annotations: { 'spillway.dev/released': mark },
      ownerReferences: null,
    },
  });
  await room.seen('it is released', () => releasedFrom(cached(name) as Pod) !== undefined);
  releases.seen(cached(name) as Pod);
}

/** East is to be left by all. */
async function tainted(): Promise<void> {
  room.editMember('east', { spec: { clusterTaints: [{ key: 'drained', effect: 'NoExecute' }] } });
  await room.seen('it is known', () =>
    room.process.placed.members().some(({ clusterTaints }) => clusterTaints.length > 0),
  );
}

/** A WorkloadMigration of web from east to west is under way. */
async function migrated(): Promise<void> {
  const migrations = '/apis/spillway.dev/v1alpha1/namespaces/shop/workloadmigrations';
  const workload = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' };
  room.make(migrations, {
    apiVersion: 'spillway.dev/v1alpha1',
    kind: 'WorkloadMigration',
    metadata: { name: 'm', namespace: 'shop', generation: 1 },
    spec: { from: 'east', to: 'west', workloads: [workload] },
  });
  const made = room.api.objects.get(`${migrations}/m`)?.metadata as { generation?: number } | undefined;
  const observedGeneration = made?.generation ?? 0;
  const fits = { type: 'Fits', status: 'True', reason: 'Fits', message: '', observedGeneration };
  room.api.edit(`${migrations}/m`, {
    status: {
      observedGeneration,
      workloads: [{ workload, pods: 1, waiting: 0, moving: 1, moved: 0, reason: 'Moving' }],
      conditions: [{ ...fits, lastTransitionTime: '2026-01-01T00:00:00Z' }],
    },
  });
  const { placed } = room.process;
  await room.seen('the way is known', () => {
    const deployment = placed.workloadNamed({ ...workload, namespace: 'shop' });
    return deployment !== undefined && placed.wayOf(deployment)?.from === 'east';
  });
}

/** East has answered for so long, and was looked at before. */
async function healed(forMs = 11_000): Promise<void> {
  await look();
  await answers(true);
  room.now += forMs;
}

const look = async (): Promise<void> => {
  await ends.bringUpToDate(ownerKeyOf(set), new AbortController().signal);
};
const evicted = (): string[] => room.api.requests('POST', '/eviction').map(({ path }) => path.split('/').at(-2) ?? '');
const patched = (): string[] =>
  room.api
    .requests('PATCH')
    .filter(({ path }) => path.startsWith(PODS))
    .map(({ path }) => path.split('/').at(-1) ?? '');
const stored = (name: string): Pod => room.api.objects.get(`${PODS}/${name}`) as unknown as Pod;
const costOf = (name: string): number => Number(stored(name).metadata.annotations?.[COST] ?? 0);

test('it waits for as long as its member does not answer, and a moment more', async () => {
  await ready(original, '2026-01-01T00:00:02Z');
  room.now += 3_600_000;
  await look();
  await healed(9_000);
  await look();
  expect([evicted(), patched()]).toEqual([[], []]);
});

test('KeepOriginal: it is given back when it is Ready, and the other one goes first', async () => {
  await healed();
  await look();
  expect(patched()).toEqual([]);
  await ready(original, '2026-01-01T00:05:00Z');
  await look();
  expect([evicted(), patched()]).toEqual([[], [other, original]]);
  expect(stored(original).metadata.labels?.['pod-template-hash']).toBe('one');
  expect(costOf(original)).toBeGreaterThan(costOf(other));
  expect(room.events).toMatchObject([{ about: `Pod ${original}`, type: 'Normal', reason: 'OriginalKept' }]);
  expect(room.events[0]?.message).toBe(
    `its member answers again, and it is Ready: ReplicaSet web-1 has it again, which ends ${other} or another one in its place (onHeal)`,
  );
});

test('a MemberCluster that cannot be read for a while ends none that waits there', async () => {
  await look();
  room.editMember('east', { spec: { virtualNodes: [{ name: 'NOT A NAME' }] } });
  const { placed } = room.process;
  const east = (): unknown => placed.members().find(({ name }) => name === 'east')?.reachable;
  await room.seen('it is not read', () => east() === undefined);
  for (let minutes = 0; minutes < 5; minutes += 1) {
    await look();
    room.now += 60_000;
  }
  expect([evicted(), patched()]).toEqual([[], []]);
});

test('one whose MemberCluster is gone ends after a minute, and not when that is made anew', async () => {
  const gone = async (forMs: number): Promise<void> => {
    room.removeMember('east');
    await room.seen('it is gone', () => room.process.placed.members().every(({ name }) => name !== 'east'));
    await look();
    room.now += forMs;
    await look();
  };
  await gone(59_000);
  room.addMember('east');
  await room.seen('it is there', () => room.process.placed.members().some(({ name }) => name === 'east'));
  await look();
  await gone(59_000);
  expect([evicted(), patched()]).toEqual([[], []]);
  room.now += 1_000;
  await look();
  expect([evicted(), patched()]).toEqual([[original], []]);
});

describe('purgeMode Never, said while it waits,', () => {
  test('ends it neither where a quota leaves no room beside it nor by a word that nothing runs there, and says so', async () => {
    room.api.delete(`${PODS}/${other}`);
    await room.seen('the other one is gone', () => room.process.placed.ofController(ownerKeyOf(set)).length === 0);
    await rules('KeepOriginal', 'Never');
    for (let times = 0; times < 60; times += 1) {
      await look();
      room.now += 5_000;
    }
    // Without that it would stay for so long, too.
    expect(room.told('ReleasedPodStays')).toEqual([]);
    await look();
    expect([evicted(), patched()]).toEqual([[], []]);
    expect(room.told('ReleasedPodStays')).toEqual([
      `Pod ${original}: its ReplicaSet makes no other pod beside it, but it cannot be ended: its policy says purgeMode: Never`,
    ]);
    room.api.edit('/api/v1/nodes/east', {
      spec: { taints: [{ key: 'node.kubernetes.io/out-of-service', effect: 'NoSchedule' }] },
    });
    room.editMember('east', { status: { fencing: { nodes: { east: 'Fenced' } } } });
    await room.seen('it is known', () =>
      room.process.placed.members().some(({ outOfService }) => outOfService.size > 0),
    );
    room.now += 30_000;
    await look();
    expect([evicted(), patched()]).toEqual([[], []]);
  });

  test('ends none of the two while its member is lost', async () => {
    await look();
    await rules('KeepOriginal', 'Never');
    for (let times = 0; times < 24; times += 1) {
      await look();
      room.now += 5_000;
    }
    expect([evicted(), patched()]).toEqual([[], []]);
  });

  test('ends it neither by KeepReplacement, and gives it back when it is Ready', async () => {
    await rules('KeepReplacement', 'Never');
    for (let times = 0; times < 15; times += 1) {
      await look();
      room.now += 5_000;
    }
    expect([evicted(), patched()]).toEqual([[], []]);
    await ready(original, '2026-01-01T00:05:00Z');
    await healed();
    await look();
    expect([evicted(), patched().at(-1)]).toEqual([[], original]);
  });

  test.each([
    ['though it ran for a shorter time', '2026-01-01T00:02:00Z', async () => Promise.resolve()],
    ['though it would have to leave its member otherwise', '2026-01-01T00:00:02Z', tainted],
  ])('gives it back, %s', async (_, since, more) => {
    await rules('LongestRunning', 'Never');
    await ready(original, since);
    await healed();
    await more();
    await look();
    expect([evicted(), patched().at(-1)]).toEqual([[], original]);
  });
});

/** The other one has its cost, and the original is not given back. */
async function crashBetweenWrites(): Promise<void> {
  room.api.fault = ({ path, method }) =>
    method === 'PATCH' && path.endsWith(original) ? { code: 500, reason: 'InternalError' } : undefined;
  await expect(look()).rejects.toThrow();
  room.api.fault = undefined;
}

const KEEPING = {
  never: {
    onMemberLost: { onHeal: 'KeepOriginal' },
    cluster: { purgeMode: 'Never', gracePeriodSeconds: 600, onTimeout: 'GiveBack' },
  },
  hold: { onMemberLost: { onHeal: 'KeepOriginal', action: 'Hold' } },
} as const;

describe.each([
  ['whose virtual node is out of service', 'never', true],
  ['that has no room beside it', 'never', false],
  ['that has no room beside it', 'hold', false],
] as const)('one %s, by whose policy it stays (%s),', (_, keeping, isOut) => {
  test('stays while that is made anew', async () => {
    const edited = async (): Promise<void> => {
      const failover = KEEPING[keeping];
      room.api.edit(POLICY, { spec: { ...(room.api.objects.get(POLICY)?.['spec'] as object), failover } });
      await room.seen('it is known', () =>
        jsonEqual(room.process.view.policies.get('shop/p')?.policy?.spec.failover, failover),
      );
    };
    const pass = async (seconds: number): Promise<void> => {
      for (let passed = 0; passed < seconds; passed += 5) {
        room.now += 5_000;
        await look();
      }
    };
    await look();
    await edited();
    if (isOut) {
      const taints = [{ key: 'node.kubernetes.io/out-of-service', effect: 'NoSchedule' }];
      room.api.edit('/api/v1/nodes/east', { spec: { taints } });
      room.editMember('east', { status: { fencing: { nodes: { east: 'Fenced' } } } });
      await room.seen('it is out', () => (room.process.placed.member('east')?.outOfService.size ?? 0) > 0);
    } else {
      for (const name of ['west', 'local']) room.setRoom(name, 5);
      room.api.delete(`${PODS}/${other}`);
      await room.seen('the other one is gone', () => cached(other) === undefined);
    }
    await pass(450);
    expect([evicted(), patched()]).toEqual([[], []]);
    room.unplace('p');
    await room.seen('the policy is gone', () => room.process.view.policies.get('shop/p') === undefined);
    await pass(55);
    expect([evicted(), patched()]).toEqual([[], []]);
    room.place('p', {});
    await edited();
    await pass(60);
    expect([evicted(), patched()]).toEqual([[], []]);
  });
});

test('a crash between the two writes is found and finished', async () => {
  await healed();
  await ready(original, '2026-01-01T00:05:00Z');
  await crashBetweenWrites();
  const cost = costOf(other);
  await room.seen('it is known', () => cached(other)?.metadata.annotations?.[COST] === String(cost));
  await look();
  expect(patched().filter((name) => name === other)).toHaveLength(1);
  expect([stored(original).metadata.labels?.['pod-template-hash'], costOf(other)]).toEqual(['one', cost]);
});

test('the other one goes first, whatever keeps the costs of those in order that are there already', async () => {
  // Pods in east go before those in west.
  room.place('p', { clusterAffinity: { clusterNames: ['west'], overflowAffinities: [{ clusterNames: ['east'] }] } });
  await rules('KeepOriginal');
  room.editSet('web-1', { spec: { replicas: 2 }, status: { readyReplicas: 2 } });
  const { placed, costs } = room.process;
  await room.seen('it is known', () => placed.surgingSetOf(asOwned(cached(original) as Pod))?.replicas === 2);
  const [back = ''] = await room.run(set, { east: 1 }, { [COST]: '1', 'spillway.dev/deletion-cost': '1' });
  await madeAt(back, '2026-01-01T00:00:00Z');
  await ready(back, '2026-01-01T00:05:00Z');
  await healed();
  await ready(original, '2026-01-01T00:05:00Z');
  await crashBetweenWrites();
  expect(patched()).toEqual([other, original]);
  const cost = costOf(other);
  await room.seen('it is known', () => cached(other)?.metadata.annotations?.[COST] === String(cost));
  await costs.bringUpToDate(set.metadata.uid ?? '', new AbortController().signal);
  await look();
  expect(stored(original).metadata.labels?.['pod-template-hash']).toBe('one');
  expect(costOf(other)).toBeLessThan(Math.min(costOf(back), costOf(original)));
});

test('KeepOriginal: one that does not get well in its time goes', async () => {
  await healed(601_000);
  await look();
  expect([evicted(), patched()]).toEqual([[original], []]);
  expect(room.told('ReleasedPodEvicted')).toEqual([
    `Pod ${original}: ReplicaSet web-1 has ${other} in its place, and this one is not Ready again, though its member answers (onHeal): it was evicted`,
  ]);
});

test.each([
  ['ran through', '2026-01-01T00:00:02Z', 'stays'],
  ['started anew after the other one was Ready', '2026-01-01T00:02:00Z', 'goes'],
])('LongestRunning: the original %s', async (_, since, what) => {
  await rules('LongestRunning');
  await ready(original, since);
  await healed();
  await look();
  expect(evicted()).toEqual(what === 'goes' ? [original] : []);
  expect(room.told('ReleasedPodEvicted')).toEqual(
    what === 'goes'
      ? [
          `Pod ${original}: ReplicaSet web-1 has ${other} in its place, which has been Ready for longer (onHeal: LongestRunning): it was evicted`,
        ]
      : [],
  );
});

describe('nothing is chosen, and the other one stays', () => {
  test('when the policy says so by then', async () => {
    await rules('KeepReplacement');
    await look();
    room.now += 14_000;
    await look();
    expect([evicted(), patched()]).toEqual([[], []]);
    room.now += 1_000;
    await look();
    expect([evicted(), patched()]).toEqual([[original], []]);
  });

  test('when the policy says by then that pods go directly', async () => {
    await rules('KeepOriginal', 'Directly');
    await look();
    room.now += 15_000;
    await look();
    expect([evicted(), patched()]).toEqual([[original], []]);
  });

  test('when no policy has said anything for a minute, and not while one is made anew', async () => {
    const isThere = (): boolean => room.process.view.policies.get('shop/p') !== undefined;
    const gone = async (forMs: number): Promise<void> => {
      room.unplace('p');
      await room.seen('it is gone', () => !isThere());
      await look();
      room.now += forMs;
      await look();
    };
    await gone(59_000);
    expect([evicted(), patched()]).toEqual([[], []]);
    room.place('p', {});
    await room.seen('it is there', isThere);
    await rules('KeepOriginal');
    await look();
    await gone(59_000);
    expect([evicted(), patched()]).toEqual([[], []]);
    room.now += 1_000;
    await look();
    expect([evicted(), patched()]).toEqual([[original], []]);
  });

  test('nor is an end chosen, in the moment before it is known whether a policy is made anew', async () => {
    await ready(original, '2026-01-01T00:00:02Z');
    await healed();
    room.api.fault = ({ method, path }) => {
      if (method === 'GET' && path.endsWith(original)) room.unplace('p');
      return undefined;
    };
    const { placed } = room.process;
    const rulesOf = placed.rulesOf.bind(placed);
    const isGone = (): boolean => room.api.objects.get(POLICY) === undefined;
    const late = new Proxy(placed, {
      get: (target, key) => {
        if (key === 'rulesOf') return (pod: Pod) => ({ ...rulesOf(pod), ...(isGone() ? { failover: undefined } : {}) });
        const value: unknown = Reflect.get(target, key, target);
        return typeof value === 'function'
          ? (...args: unknown[]): unknown => Reflect.apply(value, target, args)
          : value;
      },
    });
    ends = releasedPodsIn(room, releases, late);
    await look();
    expect([isGone(), evicted(), patched()]).toEqual([true, [], []]);
  });

  test('when it would have to leave its member at once', async () => {
    await ready(original, '2026-01-01T00:00:02Z');
    await healed();
    await tainted();
    await look();
    expect([evicted(), patched()]).toEqual([[original], []]);
    expect(room.told('ReleasedPodEvicted')[0]).toContain(`ReplicaSet web-1 has ${other} in its place`);
  });

  test('when its workload is being migrated out of its member', async () => {
    await ready(original, '2026-01-01T00:00:02Z');
    await migrated();
    await healed();
    await look();
    expect([evicted(), patched()]).toEqual([[original], []]);
  });

  test('when somebody else says which of them goes first', async () => {
    await ready(original, '2026-01-01T00:00:02Z');
    room.api.edit(`${PODS}/${original}`, { metadata: { annotations: { [COST]: '7' } } });
    await healed();
    await look();
    expect([evicted(), patched()]).toEqual([[original], []]);
    expect(room.told('ReleasedPodEvicted')[0]).toContain(`ReplicaSet web-1 has ${other} in its place`);
  });
});

test('one that is not Ready by now, though the caches do not show it yet, is not given back', async () => {
  await healed();
  await ready(original, '2026-01-01T00:00:02Z');
  const before = releases.of(ownerKeyOf(set));
  await ready(original, undefined);
  for (const pod of before) releases.seen(pod);
  await look();
  expect([evicted(), patched()]).toEqual([[], []]);
});

test('one whose virtual node is out of service goes once its member has been silent for 30 s', async () => {
  room.api.edit('/api/v1/nodes/east', {
    spec: { taints: [{ key: 'node.kubernetes.io/out-of-service', effect: 'NoSchedule' }] },
  });
  room.editMember('east', { status: { fencing: { nodes: { east: 'Fenced' } } } });
  await room.seen('it is known', () => room.process.placed.members().some(({ outOfService }) => outOfService.size > 0));
  room.now += 29_000;
  await look();
  expect(evicted()).toEqual([]);
  room.now += 1_000;
  await look();
  expect(evicted()).toEqual([original]);
  expect(room.told('ReleasedPodEvicted')[0]).toMatch(/its virtual node is out of service: it was evicted$/);
});

test('of those that wait none goes while the fault may be on this side, nor until the time after that is over', async () => {
  room.setRoom('local', 1);
  room.editSet('web-1', { spec: { replicas: 2 } });
  const { placed } = room.process;
  await room.seen(
    'the ReplicaSet is known',
    () => placed.surgingSetOf(asOwned(cached(original) as Pod))?.replicas === 2,
  );
  await look();
  await answers(false, 'west');
  room.now += 1_800_000;
  await look();
  expect(evicted()).toEqual([]);
  await answers(true, 'west');
  room.now += 299_000;
  await look();
  expect(evicted()).toEqual([]);
  room.now += 1_000;
  await look();
  expect(evicted()).toEqual([original]);
});

test('of those that wait one goes where the ReplicaSet can make no pod beside them, and no other one until it has had the time to make one', async () => {
  // Of three, two wait, and a quota lets one pod come only, which did.
  room.setRoom('local', 2);
  room.editSet('web-1', { spec: { replicas: 2 } });
  const [second = ''] = await room.run(set, { east: 1 });
  await release(second);
  await room.seen('the ReplicaSet is known', () => {
    const { placed } = room.process;
    return placed.surgingSetOf(asOwned(cached(second) as Pod))?.replicas === 2;
  });
  await look();
  room.now += 300_000;
  await look();
  expect(evicted()).toHaveLength(1);
  // It is gone at once, and the ReplicaSet makes another one some moments later.
  const [name = ''] = evicted();
  await room.seen('it is gone', () => cached(name) === undefined);
  for (const pod of releases.of(ownerKeyOf(set)).filter(({ metadata }) => metadata.name === name)) {
    releases.forget(pod);
    ends.gone(pod);
  }
  for (let times = 0; times < 120; times += 1) {
    await look();
    room.now += 5_000;
  }
  expect(evicted()).toEqual([name]);
  await look();
  expect(evicted()).toHaveLength(2);
});

describe('one that is Ready again, though the caches do not show it yet, serves, and does not go', () => {
  /** And nobody serves in its place. */
  async function isReadyUnseen(): Promise<void> {
    const before = releases.of(ownerKeyOf(set));
    await ready(original, new Date(room.now).toISOString());
    for (const pod of before) releases.seen(pod);
  }
  async function nobodyElseIs(): Promise<void> {
    await ready(other, undefined);
    room.editSet('web-1', { status: { replicas: 1, readyReplicas: 0 } });
  }

  test('as one that is not well', async () => {
    await answers(true);
    await look();
    room.now += 11 * 60_000;
    await isReadyUnseen();
    await look();
    expect(room.evictions()).toEqual([]);
    expect(room.api.requests('PATCH', `/pods/${original}`)).toEqual([]);
    await ready(original, undefined);
    await look();
    expect(room.evictions()).toEqual([original]);
  });

  test('as one that is replaced', async () => {
    await rules('KeepReplacement');
    await nobodyElseIs();
    await answers(true);
    await look();
    room.now += 60_000;
    await isReadyUnseen();
    await look();
    expect(room.evictions()).toEqual([]);
    await ready(original, undefined);
    await look();
    expect(room.evictions()).toEqual([original]);
  });
});
