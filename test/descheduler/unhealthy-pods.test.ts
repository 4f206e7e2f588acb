import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { HealthAges } from '../../src/descheduler/health-ages.ts';
import { IllPods } from '../../src/descheduler/ill-pods.ts';
import { UnhealthyPods } from '../../src/descheduler/unhealthy-pods.ts';
import type { Recheck, WantedMove } from '../../src/descheduler/wanted-move.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import type { HandlerResult } from '../../src/kube/workqueue.ts';
import { ownerKeyOf } from '../../src/kube/owner-references.ts';
import type { TypedObject } from '../../src/placement/owner-chain.ts';
import { SchedulerRoom } from '../fixtures/scheduler-room.ts';

/** Pods of Deployment shop/web that are ill in member east, under a policy that lets them be moved. */

let room: SchedulerRoom;
let deployment: TypedObject;
let set: TypedObject;

const PODS = '/api/v1/namespaces/shop/pods';
const TIERS = { clusterAffinity: { clusterNames: ['east'], overflowAffinities: [{ clusterNames: ['west'] }] } };
const TOOK = { type: 'spillway.dev/Mirrored', status: 'True' };
const SILENT = {
  type: 'Ready',
  status: 'False',
  reason: 'Timeout',
  message: '',
  lastTransitionTime: '2026-01-01T00:00:00Z',
};
const MINUTE_MS = 60_000;

beforeEach(async () => {
  room = await SchedulerRoom.start(['east', 'west']);
  // Pods of the room are as old as the test itself.
  room.now = Date.now();
  ({ deployment, set } = await room.deploy('web', 1));
  room.setRoom('west', 100);
  await place({ tolerationSeconds: 120 });
});
afterEach(async () => {
  await room.close();
});

async function place(decisionConditions: object, placement: object = TIERS, more: object = {}): Promise<void> {
  room.place('p', placement);
  const path = '/apis/spillway.dev/v1alpha1/namespaces/shop/placementpolicies/p';
  const spec = room.api.objects.get(path)?.['spec'] as object;
  room.api.edit(path, { spec: { ...spec, failover: { application: { decisionConditions }, ...more } } });
  const { resourceVersion } = room.api.objects.get(path)?.metadata ?? {};
  await room.seen(
    'the policy is known',
    () => room.process.view.policies.get('shop/p')?.policy?.metadata.resourceVersion === resourceVersion,
  );
}

const avoided = (): string[] => room.process.workloads.avoided(deployment).map(({ cluster }) => cluster);
const look = async ({ metadata } = deployment): Promise<HandlerResult> =>
  await room.process.unhealthy.bringUpToDate(ownerKeyOf({ metadata }), new AbortController().signal);

/** Looks every 10 s, as time goes on. */
async function pass(ms: number, of = deployment): Promise<void> {
  for (let rest = ms; rest > 0; rest -= 10_000) {
    await look(of);
    room.now += 10_000;
  }
}

async function tell(names: readonly string[], status: object): Promise<void> {
  for (const name of names) room.api.edit(`${PODS}/${name}`, { status });
  const versions = names.map((name) => room.api.objects.get(`${PODS}/${name}`)?.metadata.resourceVersion);
  await room.seen('the caches show it', () =>
    names.every((name, at) => room.process.view.pods.get(`shop/${name}`)?.metadata.resourceVersion === versions[at]),
  );
}

async function ready(names: readonly string[]): Promise<void> {
  await tell(names, { phase: 'Running', conditions: [TOOK, { type: 'Ready', status: 'True' }] });
}

async function ill(names: readonly string[], ...more: object[]): Promise<void> {
  const conditions = [TOOK, { type: 'Ready', status: 'False', reason: 'ContainersNotReady' }, ...more];
  const containerStatuses = [{ name: 'main', state: { waiting: { reason: 'CrashLoopBackOff' } } }];
  await tell(names, { phase: 'Running', conditions, containerStatuses });
}

async function run(counts: Record<string, number>, of = set): Promise<string[]> {
  const names = await room.run(of, counts);
  await ready(names);
  return names;
}

/** What was deleted is gone from the caches, too. */
async function caughtUp(): Promise<void> {
  const { pods } = room.process.view;
  await room.seen('the caches show it', () => [...pods.values()].length === room.pods().length);
}

describe('a pod that does not get well', () => {
  test('makes way once it was ill for so long, when others of its revision are well elsewhere, and the member is avoided', async () => {
    const [sick = ''] = await run({ east: 1 });
    await run({ west: 2 });
    await pass(2 * MINUTE_MS);
    await ill([sick]);
    await pass(2 * MINUTE_MS);
    expect(avoided()).toEqual([]);
    await look();
    expect(avoided()).toEqual(['east']);
    expect(room.evictions()).toEqual([]);
    room.now += 10_000;
    await look();
    expect(room.evictions()).toEqual([sick]);
    const [words = ''] = room.told('UnhealthyPodReplaced');
    expect(words).toMatch(
      new RegExp(
        `^Pod ${sick}: it has not been well in member east for 3m, and others of its revision are well elsewhere; it was evicted, so that ReplicaSet web-1 makes another one, which goes elsewhere: east is avoided for a while$`,
      ),
    );
    expect(room.told('UnhealthyPodReplaced')).toHaveLength(2);
    const [entry] = room.process.workloads.avoided(deployment);
    expect(entry).toMatchObject({ reason: 'PodUnhealthy', until: (entry?.since ?? 0) + 5 * MINUTE_MS });
    expect(await room.process.moves.moves.get()).toMatchObject({
      values: [{ labels: { strategy: 'UnhealthyInMember', member: 'east', outcome: 'moved' }, value: 1 }],
    });
  });

  test('is told in a dry run, and no member is avoided for it: new pods go where they go anyway', async () => {
    room.dryRun = true;
    await room.restart();
    const [sick = ''] = await run({ east: 1 });
    await run({ west: 2 });
    await pass(2 * MINUTE_MS);
    await ill([sick]);
    await pass(3 * MINUTE_MS);
    expect([room.evictions(), avoided()]).toEqual([[], []]);
    expect(room.told('MoveWanted')).toContainEqual(
      expect.stringMatching(
        new RegExp(`^Pod ${sick}: UnhealthyInMember: it has not been well in member east .*descheduler.dryRun is set$`),
      ),
    );
  });

  test.each([
    ['west comes after it', TIERS],
    ['no cluster comes first', { clusterAffinity: { clusterNames: ['east', 'west'] } }],
    [
      'west comes after it, once a pod has waited for others',
      { clusterAffinity: { ...TIERS.clusterAffinity, clusterNames: ['east', 'local'], tryNextAfter: '60s' } },
    ],
  ])('is told in a dry run as what would go while its member has room: %s', async (_, placement) => {
    room.dryRun = true;
    await room.restart();
    await place({ tolerationSeconds: 120 }, placement);
    room.setRoom('east', 100);
    room.setRoom('local', 0);
    const [sick = ''] = await run({ east: 1 });
    await run({ west: 2 });
    await pass(2 * MINUTE_MS);
    await ill([sick]);
    await pass(3 * MINUTE_MS);
    expect([room.evictions(), avoided(), room.told('UnhealthyPodStays')]).toEqual([[], [], []]);
    expect(room.told('MoveWanted')).not.toEqual([]);
  });

  test('stays in a dry run, too, when no other cluster takes it', async () => {
    room.dryRun = true;
    await room.restart();
    room.setRoom('east', 100);
    room.setRoom('west', 0);
    const [sick = ''] = await run({ east: 1 });
    await run({ west: 2 });
    await pass(2 * MINUTE_MS);
    await ill([sick]);
    await pass(3 * MINUTE_MS);
    expect([room.evictions(), avoided(), room.told('MoveWanted')]).toEqual([[], [], []]);
    expect(room.told('UnhealthyPodStays')).toEqual([
      expect.stringMatching(/no other cluster takes it now \(.*west: 3 nodes: insufficient cpu/),
    ]);
  });

  test('that crashes over and over is ill all the time, and goes while it is not Ready', async () => {
    const [sick = ''] = await run({ east: 1 });
    await run({ west: 1 });
    await pass(2 * MINUTE_MS);
    for (let times = 0; times < 3; times += 1) {
      await ill([sick]);
      await pass(20_000);
      await ready([sick]);
      await pass(20_000);
    }
    expect(room.evictions()).toEqual([]);
    await ill([sick]);
    await pass(20_000);
    expect(room.evictions()).toEqual([sick]);
  });

  test('is none that is Ready, and has only been so for less long than others', async () => {
    const first = await room.run(set, { west: 1 });
    const [late = ''] = await room.run(set, { east: 1 });
    await look();
    await ready(first);
    await pass(30_000);
    await ready([late]);
    await pass(5 * MINUTE_MS);
    expect(avoided()).toEqual([]);
    expect(room.events).toEqual([]);
    expect(await look()).toBeUndefined();
  });

  test('stays without a word of its policy', async () => {
    room.place('p', TIERS);
    await room.seen(
      'the policy is known',
      () => room.process.view.policies.get('shop/p')?.policy?.spec.failover === undefined,
    );
    const [sick = ''] = await run({ east: 1 });
    await run({ west: 2 });
    await ill([sick]);
    await pass(30 * MINUTE_MS);
    expect(room.evictions()).toEqual([]);
    expect(avoided()).toEqual([]);
    expect(await look()).toBeUndefined();
  });

  test('stays when none of its revision is well elsewhere: a bad image moves nothing, and one pod says so', async () => {
    const old = await run({ west: 2 });
    const next = await room.rollOut(deployment, 'two', '2');
    const names = await run({ east: 2, west: 1 }, next);
    await ill(names);
    await pass(30 * MINUTE_MS);
    expect(old).toHaveLength(2);
    expect(room.evictions()).toEqual([]);
    expect(avoided()).toEqual([]);
    const words = room.told('UnhealthyPodStays');
    expect(new Set(words).size).toBe(2);
    // Each is told again after 20 of these 30 minutes.
    expect(words.length).toBeLessThanOrEqual(4);
    expect(words[0]).toMatch(
      /it has not been well in member (east|west) for too long, and stays there: no other pod of its revision is well in another cluster, so its image or its settings may be at fault \(CrashLoopBackOff\)$/,
    );
  });

  test('stays when the others are Ready but for a moment now and then: they crash, too', async () => {
    const [sick = ''] = await run({ east: 1 });
    const [other = ''] = await run({ west: 1 });
    for (let times = 0; times < 20; times += 1) {
      await ill([sick, other]);
      await pass(30_000);
      await ready([other]);
      await pass(30_000);
    }
    expect(room.evictions()).toEqual([]);
  });

  test('stays when the only one that was well elsewhere fell ill in the meantime', async () => {
    const sick = await run({ east: 2 });
    const [other = ''] = await run({ west: 1 });
    await pass(2 * MINUTE_MS);
    await ill(sick);
    await pass(2 * MINUTE_MS);
    await look();
    room.now += 10_000;
    await ill([other]);
    await look();
    expect(room.evictions()).toEqual([]);
  });

  test('stays while no other cluster takes it, and goes when one does', async () => {
    room.setRoom('west', 0);
    const [sick = ''] = await run({ east: 1 });
    await run({ west: 2 });
    await pass(2 * MINUTE_MS);
    await ill([sick]);
    await pass(5 * MINUTE_MS);
    expect(room.evictions()).toEqual([]);
    expect(room.told('UnhealthyPodStays')).toEqual([expect.stringMatching(/no other cluster takes it now/)]);
    room.setRoom('west', 1);
    await pass(30_000);
    expect(room.evictions()).toEqual([sick]);
  });

  test.each([
    ['is silent', { status: { conditions: [SILENT] } }],
    ['takes no new pods', { spec: { unschedulable: true } }],
  ])('stays while its member %s, and its time begins anew afterwards', async (_, patch) => {
    const [sick = ''] = await run({ east: 1 });
    await run({ west: 2 });
    await pass(2 * MINUTE_MS);
    const before = room.api.objects.get('/apis/spillway.dev/v1alpha1/memberclusters/east') as {
      spec?: object;
      status?: object;
    };
    const isOpen = (): boolean =>
      room.process.placed.members().find(({ name }) => name === 'east')?.unavailable === undefined;
    await ill([sick]);
    await pass(MINUTE_MS);
    room.editMember('east', { ...before, ...patch, spec: { ...before.spec, ...('spec' in patch ? patch.spec : {}) } });
    await room.seen('it is known', () => !isOpen());
    await pass(10 * MINUTE_MS);
    expect(room.evictions()).toEqual([]);
    room.editMember('east', { spec: { ...before.spec, unschedulable: false }, status: before.status });
    await room.seen('it is known', isOpen);
    await pass(110_000);
    expect(avoided()).toEqual([]);
    await pass(40_000);
    expect(room.evictions()).toEqual([sick]);
  });

  test.each([
    ['Ready again', async (name: string) => await ready([name])],
    [
      'kept from being Ready by gates alone',
      async (name: string) => await ill([name], { type: 'ContainersReady', status: 'True' }),
    ],
    [
      'not known to be in the member',
      async (name: string) =>
        await tell([name], { phase: 'Pending', conditions: [{ type: 'Ready', status: 'False' }] }),
    ],
  ])('is looked at past the caches: it stays when it is %s', async (_, change) => {
    const [sick = ''] = await run({ east: 1 });
    await run({ west: 2 });
    await pass(2 * MINUTE_MS);
    await ill([sick]);
    await pass(2 * MINUTE_MS);
    await look();
    room.now += 10_000;
    const seen = change(sick);
    // The caches are told late.
    room.api.listeners.clear();
    await look();
    expect(room.evictions()).toEqual([]);
    void seen.catch(() => undefined);
  });

  test('of a kind that is not replaced stays, and no member is avoided for it', async () => {
    const names = await run({ east: 1 });
    await run({ west: 2 });
    const [sick = ''] = names;
    room.api.edit(`${PODS}/${sick}`, {
      spec: {
        ...room.pods().find(({ metadata }) => metadata.name === sick)?.spec,
        volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }],
      },
    });
    await pass(2 * MINUTE_MS);
    await ill([sick]);
    await pass(5 * MINUTE_MS);
    expect(room.evictions()).toEqual([]);
    expect(avoided()).toEqual([]);
  });
});

describe('many pods that do not get well', () => {
  test('go no faster than those that come instead get well', async () => {
    room.editDeployment('web', { spec: { replicas: 5 } });
    const sick = await run({ east: 4 });
    await run({ west: 1 });
    const [one] = room.pods();
    await room.seen(
      'it is known how many it asks for',
      () => one !== undefined && room.process.placed.rulesOf(one).replicas === 5,
    );
    await pass(2 * MINUTE_MS);
    await ill(sick);
    await pass(2 * MINUTE_MS + 20_000);
    expect(room.evictions()).toHaveLength(1);
    await caughtUp();
    const [next = ''] = await room.run(set, { west: 1 });
    await pass(2 * MINUTE_MS);
    expect(room.evictions()).toHaveLength(1);
    await ready([next]);
    await pass(50_000);
    expect(room.evictions()).toHaveLength(1);
    await pass(30_000);
    expect(room.evictions()).toHaveLength(3);
  });

  test('in several members at once go no faster together than those that come instead get well', async () => {
    await room.close();
    room = await SchedulerRoom.start(['east', 'north', 'south', 'west']);
    room.now = Date.now();
    ({ deployment, set } = await room.deploy('web', 13));
    room.setRoom('west', 100);
    await place(
      { tolerationSeconds: 120 },
      {
        clusterAffinity: { clusterNames: ['east', 'north', 'south'], overflowAffinities: [{ clusterNames: ['west'] }] },
      },
    );
    const sick = await run({ east: 4, north: 4, south: 4 });
    await run({ west: 1 });
    await pass(2 * MINUTE_MS);
    await ill(sick);
    await pass(2 * MINUTE_MS + 20_000);
    expect(avoided().toSorted()).toEqual(['east', 'north', 'south']);
    expect(room.evictions()).toHaveLength(1);
    await caughtUp();
    const [next = ''] = await run({ west: 1 });
    await pass(2 * MINUTE_MS);
    expect([next, room.evictions().length]).toEqual([expect.any(String), 3]);
  });

  test('go each once an hour on the average, and never back to where they were ill', async () => {
    room.perPodPerHour = 100;
    await room.restart();
    await place({ tolerationSeconds: 15 }, { clusterAffinity: { clusterNames: ['east', 'west'] } });
    room.setRoom('east', 100);
    room.setRoom('local', 100);
    await run({ 'local-1': 3 });
    let [sick = ''] = await run({ east: 1 });
    room.now += 2 * MINUTE_MS;
    await pass(2 * MINUTE_MS);
    const places: string[] = ['east'];
    for (let minutes = 0; minutes < 50; minutes += 2) {
      await ill([sick]);
      await pass(2 * MINUTE_MS);
      if (!room.evictions().includes(sick)) continue;
      await caughtUp();
      const [next] = room.process.placed
        .members()
        .map(({ name }) => name)
        .filter((name) => !avoided().includes(name));
      if (next === undefined) break;
      places.push(next);
      [sick = ''] = await run({ [next]: 1 });
    }
    expect(places).toEqual(['east', 'west']);
    expect(room.evictions()).toHaveLength(1);
    expect(room.told('UnhealthyPodStays').at(-1)).toMatch(
      /no other cluster takes it now \(.*member east: it was left by pods of the workload and is avoided until/,
    );
  });

  test('one that came although the member was avoided stays: whoever sent it there does not ask', async () => {
    const [sick = ''] = await run({ east: 1 });
    await run({ west: 2 });
    await pass(2 * MINUTE_MS);
    await ill([sick]);
    await pass(2 * MINUTE_MS + 20_000);
    expect(room.evictions()).toEqual([sick]);
    await caughtUp();
    const [again = ''] = await room.run(set, { east: 1 });
    const made = room.pods().find(({ metadata }) => metadata.name === again);
    const creationTimestamp = new Date(room.now).toISOString();
    room.api.put(`${PODS}/${again}`, { ...made, metadata: { ...made?.metadata, creationTimestamp } });
    await ill([again]);
    await pass(4 * MINUTE_MS);
    expect(room.evictions()).toEqual([sick]);
  });
});

test("a pod that its member finds no node for is another strategy's business", async () => {
  const [waiting = ''] = await run({ east: 1 });
  await run({ west: 2 });
  await ill([waiting], { type: 'spillway.dev/MemberScheduled', status: 'False', reason: 'Unschedulable' });
  await pass(10 * MINUTE_MS);
  expect(room.evictions()).toEqual([]);
  expect(avoided()).toEqual([]);
});

describe('what is asked of a pod right before it goes', () => {
  /** The move that is wanted of one pod that is ill in east, while others are well in west, and one in east. */
  async function wanted(): Promise<{
    pod: Pod;
    others: string[];
    recheck: (looks?: boolean, live?: Pod) => Promise<Recheck>;
  }> {
    const [sick = ''] = await run({ east: 1 });
    const others = await run({ west: 1, east: 1 });
    const { placed, records } = room.process;
    const ages = new HealthAges(() => room.now);
    const clock = (): number => room.now;
    const moves: WantedMove[] = [];
    const mover = {
      wasSent: () => false,
      restMs: () => 0,
      inTurn: (pods: readonly Pod[]) => [...pods],
      keeps: () => false,
      move: async (move: WantedMove) =>
        await Promise.resolve(moves.push(move) > 0 ? ('held' as const) : ('notWanted' as const)),
    };
    const illness = new IllPods({ placed, ages, mover, records, dryRun: false, clock });
    const unhealthy = new UnhealthyPods({ placed, mover, records, ill: illness, ages, dryRun: false, clock });
    const key = ownerKeyOf(deployment);
    const pods = async (ms: number): Promise<void> => {
      for (let rest = ms; rest > 0; rest -= 10_000) {
        await unhealthy.bringUpToDate(key, new AbortController().signal);
        room.now += 10_000;
      }
    };
    await pods(2 * MINUTE_MS);
    await ill([sick]);
    await pods(3 * MINUTE_MS);
    const [move] = moves;
    const pod = room.pods().find(({ metadata }) => metadata.name === sick);
    if (move === undefined || pod === undefined) throw new Error('it is not wanted');
    const recheck = async (looks = true, live = pod): Promise<Recheck> => {
      if (looks) illness.look(key);
      return await Promise.resolve(move.recheck(live));
    };
    return { pod, others, recheck };
  }
  const why = (found: Recheck): string => (found === undefined || found === 'notWanted' ? String(found) : found.why);

  test('it may go as long as nothing changed', async () => {
    expect(await (await wanted()).recheck()).toBeUndefined();
  });

  test('the policy as it is now: it is no longer to be moved, or later', async () => {
    const { recheck } = await wanted();
    await place({ tolerationSeconds: 600 });
    expect(await recheck()).toBe('notWanted');
    room.place('p', TIERS);
    await room.seen(
      'the policy is known',
      () => room.process.view.policies.get('shop/p')?.policy?.spec.failover === undefined,
    );
    expect(await recheck()).toBe('notWanted');
  });

  test('whether it is only rehearsed: what avoids no member for that goes in earnest no more, and the other way round', async () => {
    const { recheck } = await wanted();
    await place({ tolerationSeconds: 120 }, TIERS, { dryRun: true });
    expect(await recheck(false)).toBe('notWanted');
    await place({ tolerationSeconds: 120 });
    expect(await recheck(false)).toBeUndefined();
  });

  test('whether another one is well elsewhere: those in the same member do not count', async () => {
    const { others, recheck } = await wanted();
    await ill(others.slice(0, 1));
    expect(why(await recheck())).toMatch(/^no other pod of its revision is well in another cluster/);
  });

  test.each([
    ['west', /^no other pod of its revision is well in another cluster/],
    ['east', /^what member east said last may be old, as it is not ready \(Timeout\)$/],
  ])('whether %s is silent by now', async (name, words) => {
    const { recheck } = await wanted();
    room.editMember(name, { status: { conditions: [SILENT] } });
    await room.seen(
      'it is known',
      () => room.process.placed.members().find((one) => one.name === name)?.unavailable !== undefined,
    );
    expect(why(await recheck(false))).toMatch(words);
    expect(await recheck()).toSatisfy((found: Recheck) => found !== undefined);
  });

  test('what the pod is, whole', async () => {
    const { pod, recheck } = await wanted();
    const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }];
    expect(why(await recheck(true, { ...pod, spec: { ...pod.spec, volumes } }))).toBe(
      'it uses claims, and its data are there (CrashLoopBackOff)',
    );
  });

  test('how many of the workload went within an hour', async () => {
    const { recheck } = await wanted();
    for (let times = 0; times < 2; times += 1)
      room.process.records.add(deployment, { strategy: 'UnhealthyInMember', from: 'north', pod: 'p', message: '' });
    expect(await recheck()).toBeUndefined();
    room.process.records.add(deployment, { strategy: 'UnhealthyInMember', from: 'north', pod: 'p', message: '' });
    expect(why(await recheck())).toMatch(
      /^each of its pods, on the average, was moved for that once within the last hour$/,
    );
  });
});
