import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Pod } from '../../src/kube/core-v1.ts';
import { ownerKeyOf } from '../../src/kube/owner-references.ts';
import type { TypedObject } from '../../src/placement/owner-chain.ts';
import { hostStatus } from '../../src/pods/host-status.ts';
import { DENIED_BY_WEBHOOK, MAY_NOT_READ, NO_RIGHT, WEBHOOK_DOWN } from '../fixtures/eviction-refusals.ts';
import { SchedulerRoom } from '../fixtures/scheduler-room.ts';

/** Pods of Deployment shop/web that member east refuses, under a policy that says what becomes of them. */

let room: SchedulerRoom;
let deployment: TypedObject;
let set: TypedObject;

const TIERS = { clusterAffinity: { clusterNames: ['east'], overflowAffinities: [{ clusterNames: ['west'] }] } };
const QUOTA = { type: 'spillway.dev/Mirrored', reason: 'MemberQuotaExceeded', message: 'exceeded quota: pods=10' };
const UNSCHEDULED = { type: 'spillway.dev/MemberScheduled', reason: 'Unschedulable', message: 'no node' };

beforeEach(async () => {
  room = await SchedulerRoom.start(['east', 'west']);
  // Pods of the room are as old as the test itself.
  room.now = Date.now();
  ({ deployment, set } = await room.deploy('web', 6));
  room.setRoom('west', 100);
});
afterEach(async () => {
  await room.close();
});

const place = async (placement: object): Promise<void> => {
  room.place('p', placement);
  await room.seen('the policy is known', () => room.process.view.policies.get('shop/p') !== undefined);
};
const resync = async ({ metadata } = deployment): Promise<unknown> =>
  await room.process.refused.bringUpToDate(ownerKeyOf({ metadata }), new AbortController().signal);
const avoided = (): string[] => room.process.workloads.avoided(deployment).map(({ cluster }) => cluster);

/** Pods that are bound to east and refused there from now on, once that is noted. */
async function refuse(count: number, condition: object = QUOTA, more: object = {}, of = set): Promise<string[]> {
  const names = await room.run(of, { east: count });
  room.refuse(names, condition, more);
  await room.seen('the refusals are known', () =>
    names.every((name) => (room.process.view.pods.get(`shop/${name}`)?.status?.conditions ?? []).length > 0),
  );
  return names;
}

/** The policy says so of pods that a member has no node for. */
async function onUnschedulable(rules: object): Promise<void> {
  const path = '/apis/spillway.dev/v1alpha1/namespaces/shop/placementpolicies/p';
  const spec = room.api.objects.get(path)?.['spec'] as object;
  room.api.edit(path, { spec: { ...spec, failover: { onUnschedulable: rules } } });
  await room.seen(
    'the policy is known',
    () => room.process.view.policies.get('shop/p')?.policy?.spec.failover !== undefined,
  );
}

async function whenAvoided(): Promise<void> {
  await room.seen('east is avoided', () => avoided().includes('east'));
}

/** What was deleted is gone from the caches, too. */
async function caughtUp(): Promise<void> {
  const { pods } = room.process.view;
  await room.seen('the caches show it', () => [...pods.values()].length === room.pods().length);
}

describe('with TryNext', () => {
  beforeEach(async () => {
    await place({ ...TIERS, onRefusal: 'TryNext' });
  });

  test('refused pods make way three at a time, and it is told on the pod and on its workload', async () => {
    const names = await refuse(5);
    await whenAvoided();
    await resync();
    expect(room.evictions()).toEqual([]);
    room.now += 10_000;
    expect(await resync()).toEqual({ requeueAfterMs: 2_000 });
    expect(room.evictions()).toHaveLength(3);
    expect(names).toEqual(expect.arrayContaining(room.evictions()));
    // They are gone, or will be in a moment; the pods that come instead are not there yet.
    await caughtUp();
    await room.run(set, { west: 3 });
    await resync();
    expect(room.evictions().toSorted()).toEqual(names.toSorted());
    const [first = ''] = room.evictions();
    const words = room.told('RefusedPodReplaced');
    expect(words.find((one) => one.startsWith(`Pod ${first}:`))).toMatch(
      /member east refuses it \(MemberQuotaExceeded\), and it never started there; it was evicted, so that ReplicaSet web-1 makes another one, which goes elsewhere: east is avoided.*exceeded quota: pods=10/,
    );
    expect(words.find((one) => one.startsWith(`Deployment web: pod ${first}:`))).toBeDefined();
    expect(words).toHaveLength(10);
    for (const { body } of room.api.requests('POST', '/eviction')) {
      const version = expect.stringMatching(/^\d+$/) as string;
      const uid = expect.stringContaining('uid-') as string;
      expect(body).toMatchObject({ deleteOptions: { preconditions: { uid, resourceVersion: version } } });
    }
  });

  test.each([
    ['is denied', DENIED_BY_WEBHOOK],
    ['fails', WEBHOOK_DOWN],
  ])('one whose eviction %s leaves the others their turns, and is tried again after them', async (_, answer) => {
    await refuse(5);
    await whenAvoided();
    let bad: string | undefined;
    room.api.fault = ({ path }) => {
      if (!path.endsWith('/eviction')) return undefined;
      bad ??= path;
      return path === bad ? answer : undefined;
    };
    for (const ms of [10_000, 15_000, 2_000]) {
      room.now += ms;
      await resync();
      await caughtUp();
    }
    const [first, ...others] = room.evictions();
    expect(new Set(others.slice(0, 4)).size).toBe(4);
    expect(others.indexOf(first ?? '')).toBe(4);
  });

  test('those of a ReplicaSet whose next pods have no place keep none of another one', async () => {
    await refuse(4, QUOTA, { spec: { nodeSelector: { 'kubernetes.io/hostname': 'east' } } });
    const others = await refuse(2, QUOTA, {}, await room.rollOut(deployment, 'two', '2'));
    await whenAvoided();
    room.now += 10_000;
    await resync();
    expect(room.evictions().toSorted()).toEqual(others);
  });

  test('no more make way while pods of the workload have no place', async () => {
    await refuse(5);
    await whenAvoided();
    room.now += 10_000;
    await room.run(set, { '': 3 });
    await resync();
    expect(room.evictions()).toEqual([]);
  });

  test('nor while such as made way have yet to end, for five minutes from when they should have', async () => {
    const ending = await room.run(set, { west: 3 });
    const metadata = { deletionTimestamp: new Date(room.now - 200_000).toISOString(), deletionGracePeriodSeconds: 30 };
    for (const name of ending)
      room.api.edit(`/api/v1/namespaces/shop/pods/${name}`, { metadata, status: { phase: 'Pending' } });
    const { pods } = room.process.view;
    await room.seen('they end', () =>
      ending.every((name) => pods.get(`shop/${name}`)?.metadata.deletionTimestamp !== undefined),
    );
    await refuse(2);
    await whenAvoided();
    const began = room.now;
    for (; room.evictions().length === 0 && room.now - began < 600_000; room.now += 20_000) await resync();
    expect(room.evictions()).toHaveLength(2);
    expect(room.now - began).toBe(120_000);
  });

  test('what was evicted counts until the caches show it', async () => {
    await refuse(5);
    await whenAvoided();
    room.now += 10_000;
    // They are told nothing any more.
    room.api.listeners.clear();
    await resync();
    await resync();
    // A watch that died without a word has not been noticed by then.
    room.now += 50_000;
    await resync();
    expect(new Set(room.evictions()).size).toBe(3);
    expect(room.evictions()).toHaveLength(3);
  });

  test('a pod that was left Pending makes way after the time of its tier', async () => {
    room.place('p', {
      clusterAffinity: { ...TIERS.clusterAffinity, tryNextAfter: '60s' },
      onRefusal: 'TryNext',
    });
    const names = await refuse(1, UNSCHEDULED);
    room.now += 59_000;
    await resync();
    expect(avoided()).toEqual([]);
    room.now += 1_000;
    room.refuse(names, {
      ...UNSCHEDULED,
      lastTransitionTime: new Date(room.now - 60_000).toISOString(),
      message: 'still none',
    });
    await whenAvoided();
    await resync();
    expect(room.evictions()).toEqual([]);
    room.now += 10_000;
    await resync();
    expect(room.evictions()).toEqual(names);
  });

  test('the pod is looked at past the caches: one that has begun, or is another one, stays', async () => {
    const [begun = '', other = '', taken = ''] = await refuse(3);
    await whenAvoided();
    room.now += 10_000;
    const path = '/api/v1/namespaces/shop/pods';
    // The caches are told late.
    room.api.listeners.clear();
    room.api.edit(`${path}/${begun}`, { status: { startTime: '2026-01-01T00:00:00Z' } });
    room.api.edit(`${path}/${taken}`, { status: { conditions: [] } });
    // As StatefulSets do: another pod of that name, just like the former one.
    const former = room.pods().find((one) => one.metadata.name === other);
    room.api.delete(`${path}/${other}`);
    room.make(path, { ...former, metadata: { ...former?.metadata, resourceVersion: undefined } });
    await resync();
    expect(room.evictions()).toEqual([]);
    expect(room.events).toEqual([]);
  });

  test('an eviction that comes too late hits nothing', async () => {
    const [name = ''] = await refuse(1);
    await whenAvoided();
    room.now += 10_000;
    room.api.fault = ({ method, path }) => {
      if (method === 'POST' && path.endsWith('/eviction')) {
        room.api.edit(`/api/v1/namespaces/shop/pods/${name}`, { status: { phase: 'Running' } });
      }
      return undefined;
    };
    await resync();
    expect(room.evictions()).toEqual([name]);
    expect(room.pods().map(({ metadata }) => metadata.name)).toEqual([name]);
    expect(room.events).toEqual([]);
  });

  test('a pod of a Job stays, and is told so once', async () => {
    const owner = { apiVersion: 'batch/v1', kind: 'Job', name: 'once', uid: set.metadata.uid, controller: true };
    const [name = ''] = await refuse(1, QUOTA, { metadata: { ownerReferences: [owner] } });
    room.place('p', { ...TIERS, onRefusal: 'TryNext' }, { apiVersion: 'batch/v1', kind: 'Job' });
    const job = room.process.view.owners.chainOf(room.pods()[0] ?? deployment)[1];
    expect(job?.kind).toBe('Job');
    await room.seen('east is avoided', () => job !== undefined && room.process.workloads.avoided(job).length > 0);
    room.now += 10_000;
    for (let times = 0; times < 2; times += 1) {
      await room.process.refused.bringUpToDate(
        ownerKeyOf(job ?? { metadata: { name: '' } }),
        new AbortController().signal,
      );
    }
    expect(room.evictions()).toEqual([]);
    expect(room.api.requests('GET', `/${name}`)).toHaveLength(1);
    expect(room.told('RefusedPodStays')).toEqual([
      `Pod ${name}: it stays in member east, which refuses it, and starts there once it is taken: a Job counts a pod that is deleted as one that failed`,
    ]);
  });

  test('it stays while no other cluster takes it, and goes when one does', async () => {
    room.editMember('west', { spec: { unschedulable: true } });
    const names = await refuse(2);
    await whenAvoided();
    room.now += 10_000;
    await room.seen('west is closed', () =>
      room.process.view.nodes.clusters().some(({ name, unavailable }) => name === 'west' && unavailable !== undefined),
    );
    await resync();
    expect(room.evictions()).toEqual([]);
    const [words = '', ...more] = room.told('RefusedPodStays');
    expect(more).toEqual([]);
    expect(words).toMatch(/no other cluster takes it now \(.*member west: it takes no new pods/);
    room.now += 15_000;
    await resync();
    expect(room.told('RefusedPodStays')).toHaveLength(1);
    room.editMember('west', { spec: { unschedulable: false } });
    await room.seen('west is open', () =>
      room.process.view.nodes.clusters().every(({ unavailable }) => unavailable === undefined),
    );
    room.now += 15_000;
    await resync();
    expect(room.evictions().toSorted()).toEqual(names.toSorted());
  });

  test('it stays while it is not known what room there is elsewhere', async () => {
    room.capacities.clear();
    const names = await refuse(1);
    await whenAvoided();
    room.now += 10_000;
    await resync();
    expect(room.evictions()).toEqual([]);
    expect(room.told('RefusedPodStays')).toEqual([
      expect.stringMatching(/no other cluster takes it now \(.*member west: its nodes are not known yet/),
    ]);
    room.setRoom('west', 1);
    room.now += 15_000;
    await resync();
    expect(room.evictions()).toEqual(names);
  });

  test('it stays where the next tier takes none once it is gone', async () => {
    const overflowAffinities = [{ clusterNames: ['west'], max: '50%' }];
    await place({ clusterAffinity: { clusterNames: ['east'], overflowAffinities }, onRefusal: 'TryNext' });
    const single = await room.deploy('single', 1);
    await refuse(1, QUOTA, {}, single.set);
    await room.seen('east is avoided', () => room.process.workloads.avoided(single.deployment).length > 0);
    room.now += 10_000;
    await resync(single.deployment);
    expect(room.evictions()).toEqual([]);
    expect(room.told('RefusedPodStays')).toEqual([expect.stringContaining('the policy allows at most 0 pods in west')]);
  });

  describe('where the next tier has no room and is waited for', () => {
    const overflowAffinities = [{ clusterNames: ['west'], tryNextAfter: '2m' }, { clusterNames: ['north'] }];
    const clusterAffinity = { clusterNames: ['east'], overflowAffinities };

    beforeEach(async () => {
      room.addMember('north');
      room.setRoom('west', 0);
      room.setRoom('north', 100);
      const { nodes } = room.process.view;
      await room.seen(
        'north is known',
        () => nodes.virtualNodesOf('north').length > 0 && nodes.member('north') !== undefined,
      );
    });

    test('it makes way at once, as the one that comes instead may wait that long', async () => {
      await place({ clusterAffinity, onRefusal: 'TryNext' });
      const names = await refuse(1);
      await whenAvoided();
      room.now += 10_000;
      await resync();
      expect(room.evictions()).toEqual(names);
    });

    test('it stays if the one that comes instead would go back before that, however old it is itself', async () => {
      await place({ clusterAffinity, onRefusal: 'TryNext', avoidFor: '1m' });
      const names = await room.run(set, { east: 1 });
      room.now += 600_000;
      room.refuse(names, QUOTA);
      await whenAvoided();
      room.now += 10_000;
      await resync();
      expect(room.evictions()).toEqual([]);
      expect(room.told('RefusedPodStays')).toEqual([
        expect.stringMatching(/member north: it is tried 2m after the pod came/),
      ]);
    });
  });

  test('with a time of its own a pod that is left Pending makes way whatever onRefusal says, one that is refused does not', async () => {
    await place({ ...TIERS, onRefusal: 'Stay' });
    await onUnschedulable({ after: '1m' });
    const refused = await refuse(1);
    const [pending = ''] = await refuse(1, UNSCHEDULED);
    await whenAvoided();
    room.now += 60_000;
    await resync();
    expect(room.evictions()).toEqual([]);
    room.now += 10_000;
    await room.seen('east is avoided for it, too', () => avoided().includes('east'));
    await resync();
    expect(room.evictions()).toEqual([pending]);
    expect(refused).not.toContain(pending);
    expect(room.told('UnschedulablePodReplaced')).toEqual([
      expect.stringMatching(/^Pod .*: member east has had no node for it for too long, .*scheduler said: no node$/),
      expect.stringMatching(/^Deployment web: pod /),
    ]);
  });

  test('a member whose nodes come when they are needed has the time that these take', async () => {
    room.editMember('east', {
      spec: { capacity: { elastic: [{ name: 'g', resources: { cpu: '4' }, maxNodes: 3, leadTimeSeconds: 300 }] } },
    });
    await place({ ...TIERS, onRefusal: 'Stay' });
    await onUnschedulable({ after: '1m' });
    await room.seen('it is known', () => room.process.view.nodes.member('east')?.spec.capacity.elastic.length === 1);
    const names = await refuse(1, UNSCHEDULED);
    const still = (): void =>
      room.refuse(names, {
        ...UNSCHEDULED,
        lastTransitionTime: new Date(began).toISOString(),
        message: `none at ${String(room.now)}`,
      });
    const began = room.now;
    const shown = (): Pod | undefined => room.process.view.pods.get(`shop/${names[0] ?? ''}`);
    const isShown = (): boolean =>
      shown()?.status?.conditions?.some(({ message }) => message === `none at ${String(room.now)}`) === true;
    room.now += 299_000;
    still();
    await room.seen('the caches show it', isShown);
    expect(room.process.placed.refusalOf(shown() as Pod)?.at).toBe(began + 300_000);
    await resync();
    expect(avoided()).toEqual([]);
    room.now += 1_000;
    still();
    await whenAvoided();
    room.now += 10_000;
    await resync();
    expect(room.evictions()).toEqual(names);
  });

  test.each([
    ['ten minutes behind', -600_000],
    ['two hours ahead', 7_200_000],
  ])('a member whose clock is %s makes a pod neither go sooner nor stay longer', async (_, byMs) => {
    await place({ ...TIERS, onRefusal: 'Stay' });
    await onUnschedulable({ after: '5m' });
    const names = await room.run(set, { east: 1 });
    const said = new Date(room.now + byMs).toISOString();
    const unscheduled = { type: 'PodScheduled', status: 'False', lastTransitionTime: said } as const;
    const conditions = [{ ...UNSCHEDULED, ...unscheduled }];
    const [pod] = room.pods();
    if (pod === undefined) throw new Error('there is no pod');
    const copy: Pod = { ...pod, status: { phase: 'Pending', conditions } };
    const context = { member: 'east', network: 'Flat', inSync: true } as const;
    const { conditions: shown = [] } = hostStatus(pod, copy, context, new Date(room.now).toISOString());
    room.refuse(names, { ...shown.find(({ type }) => type === UNSCHEDULED.type) });
    const isKnown = (): boolean =>
      (room.process.view.pods.get(`shop/${names[0] ?? ''}`)?.status?.conditions ?? []).length > 0;
    await room.seen('the refusal is known', isKnown);
    room.now += 290_000;
    await resync();
    expect([avoided(), room.evictions()]).toEqual([[], []]);
    room.now += 11_000;
    room.refuse(names, { ...shown.find(({ type }) => type === UNSCHEDULED.type), message: 'still' });
    await whenAvoided();
    room.now += 10_000;
    await resync();
    expect(room.evictions()).toEqual(names);
  });

  test('it stays where its own node selector leaves only that member', async () => {
    const [name = ''] = await refuse(1, QUOTA, { spec: { nodeSelector: { 'kubernetes.io/hostname': 'east' } } });
    await whenAvoided();
    room.now += 10_000;
    await resync();
    expect(room.evictions()).toEqual([]);
    expect(room.told('RefusedPodStays')[0]).toContain(`Pod ${name}: `);
  });

  test('it stays while the member is not ready: what it said may be old', async () => {
    await refuse(1);
    await whenAvoided();
    const conditions = [
      { type: 'Ready', status: 'False', reason: 'Timeout', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' },
    ];
    room.editMember('east', { status: { conditions } });
    await room.seen('east is not ready', () =>
      room.process.view.nodes.clusters().some(({ unavailable }) => unavailable !== undefined),
    );
    room.now += 10_000;
    await resync();
    expect(room.evictions()).toEqual([]);
    expect(room.told('RefusedPodStays')[0]).toContain('what east said last may be old, as it is not ready (Timeout)');
  });

  test('without the right it is said for each pod, and tried once a minute', async () => {
    const names = await refuse(3);
    await whenAvoided();
    room.now += 10_000;
    room.api.fault = ({ path }) => (path.endsWith('/eviction') ? NO_RIGHT : undefined);
    for (let times = 0; times < 5; times += 1) await resync();
    expect(room.evictions()).toHaveLength(1);
    const words = room.told('RefusedPodStays');
    expect(words).toEqual(words.map(() => expect.stringContaining('manifests/scheduler/descheduler.yaml') as string));
    expect(words.map((one) => one.slice('Pod '.length, one.indexOf(':'))).toSorted()).toEqual(names.toSorted());
    room.now += 59_000;
    await resync();
    expect(room.evictions()).toHaveLength(1);
    room.now += 1_000;
    await whenAvoided();
    room.api.fault = undefined;
    await resync();
    expect(room.evictions()).toHaveLength(4);
  });

  test('without the right it is said in each workload, though another one was looked at first', async () => {
    const api = await room.deploy('api', 1);
    const [web = ''] = await refuse(1);
    const [other = ''] = await refuse(1, QUOTA, {}, api.set);
    await whenAvoided();
    await room.seen('it is avoided for both', () => room.process.workloads.avoided(api.deployment).length > 0);
    room.now += 10_000;
    const ofOnePod = ({ path }: { path: string }): boolean => path.startsWith('/api/v1/namespaces/shop/pods/');
    room.api.fault = (request) => (ofOnePod(request) ? MAY_NOT_READ : undefined);
    await resync();
    await resync(api.deployment);
    expect(room.api.requests('GET').filter(ofOnePod)).toHaveLength(1);
    expect(room.told('RefusedPodStays').map((one) => one.split(':')[0])).toEqual([`Pod ${web}`, `Pod ${other}`]);
  });

  test('the member is avoided for as long as a pod stands there refused, and no longer', async () => {
    room.editMember('west', { spec: { unschedulable: true } });
    const names = await refuse(1);
    await whenAvoided();
    const since = room.process.workloads.avoided(deployment)[0]?.since;
    room.now += 299_000;
    room.refuse(names, { ...QUOTA, message: 'still', lastTransitionTime: new Date(room.now - 299_000).toISOString() });
    const ends = (): number => (room.process.workloads.avoided(deployment)[0]?.until ?? 0) - room.now;
    await room.seen('the end has moved', () => ends() > 290_000);
    expect(room.process.workloads.avoided(deployment)[0]?.since).toBe(since);
    room.endPods(names);
    room.now += 302_000;
    expect(avoided()).toEqual([]);
  });
});

describe('with Stay, which is the default', () => {
  test('nothing makes way, and the refusal ends in its time', async () => {
    await place(TIERS);
    const names = await refuse(2);
    await whenAvoided();
    room.now += 200_000;
    await resync();
    expect(room.evictions()).toEqual([]);
    room.now += 101_000;
    room.refuse(names, { ...QUOTA, message: 'still', lastTransitionTime: new Date(room.now - 301_000).toISOString() });
    await room.seen(
      'the change is known',
      () => room.process.view.pods.get(`shop/${names[0] ?? ''}`)?.status?.conditions?.[0]?.message === 'still',
    );
    expect(avoided()).toEqual([]);
    expect(room.events).toEqual([]);
  });

  test('an edit of the policy takes up what was refused long ago', async () => {
    await place(TIERS);
    const names = await refuse(1);
    await whenAvoided();
    room.now += 400_000;
    expect(avoided()).toEqual([]);
    await place({ ...TIERS, onRefusal: 'TryNext' });
    room.letWrite();
    await room.seen('the pod makes way', () => room.evictions().join() === names.join());
  });
});
