import { afterEach, describe, expect, test } from 'vitest';
import { asOwned, releasedText } from '../../src/api/released.ts';
import type { ReleasedPods } from '../../src/descheduler/released-pods.ts';
import { Releases } from '../../src/descheduler/releases.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { jsonEqual } from '../../src/kube/json-equal.ts';
import { ownerKeyOf } from '../../src/kube/owner-references.ts';
import type { TypedObject } from '../../src/placement/owner-chain.ts';
import { AGAINST_BUDGET, DENIED_BY_WEBHOOK } from '../fixtures/eviction-refusals.ts';
import { releasedPodsIn } from '../fixtures/released-pods.ts';
import { SchedulerRoom } from '../fixtures/scheduler-room.ts';

/** Pods of ReplicaSet web-1 wait in east, which is lost (onHeal: KeepOriginal), and it makes none beside them. */
let room: SchedulerRoom;
let releases: Releases;
let ends: ReleasedPods;
let set: TypedObject;
let unfollow: () => void;
/** Names of those that do not go, though they are asked to. */
let staying: readonly string[] = [];
const PODS = '/api/v1/namespaces/shop/pods';
const POLICY = '/apis/spillway.dev/v1alpha1/namespaces/shop/placementpolicies/p';
const { signal } = new AbortController();

/** `slots`: room in west; there is none elsewhere. */
async function start(count: number, slots: number): Promise<void> {
  staying = [];
  room = await SchedulerRoom.start(['east', 'west', 'north']);
  ({ set } = await room.deploy('web', count));
  room.editSet('web-1', { spec: { replicas: count, selector: { matchLabels: { 'pod-template-hash': 'one' } } } });
  const names = await room.run(set, { east: count });
  room.place('p', {});
  await rule({ onHeal: 'KeepOriginal' });
  for (const name of ['local', 'north']) room.setRoom(name, 0);
  room.setRoom('west', slots);
  begin();
  for (const name of ['west', 'north']) await answers(true, name);
  await answers(false, 'east');
  await wait(names);
}

async function rule(onMemberLost: { onHeal: string; action?: string }): Promise<void> {
  const failover = { onMemberLost };
  room.api.edit(POLICY, { spec: { ...(room.api.objects.get(POLICY)?.['spec'] as object), failover } });
  const { policies } = room.process.view;
  const known = (): object | undefined => policies.get('shop/p')?.policy?.spec.failover?.onMemberLost;
  await room.seen('the policy', () => jsonEqual(known(), onMemberLost));
}

/** A process begins to end released pods. */
function begin(): void {
  releases = new Releases(() => room.now);
  ends = releasedPodsIn(room, releases);
  const { placed, mover } = room.process;
  unfollow = placed.follow({
    podCame: (pod) => {
      releases.seen(pod);
      mover.underWay.came(pod);
    },
    podChanged: (pod) => releases.seen(pod),
    podGone: (pod) => {
      releases.forget(pod);
      ends.gone(pod);
    },
    membersChanged: () => undefined,
    rulesChanged: () => undefined,
  });
}
afterEach(async () => {
  unfollow();
  await room.close();
});

const uidOf = (name: string): string => known(name)?.metadata.uid ?? '';
const known = (name: string): Pod | undefined => room.process.view.pods.get(`shop/${name}`);

/** It is evicted, and ends when its member answers. */
function ending(name: string): void {
  const pod = room.api.objects.get(`${PODS}/${name}`) as unknown as Pod;
  const deletionTimestamp = new Date(room.now).toISOString();
  const metadata = { ...pod.metadata, deletionTimestamp, deletionGracePeriodSeconds: 0 };
  room.api.put(`${PODS}/${name}`, { ...pod, metadata });
}

/** They are released as their member was lost. */
async function wait(names: readonly string[]): Promise<void> {
  const at = new Date(room.now).toISOString().replace('.000Z', 'Z');
  const { uid = '' } = set.metadata;
  const mark = releasedText({ hash: 'one', replicaSet: 'web-1', uid, at, ready: names.length, lost: true });
  for (const name of names)
    room.api.edit(`${PODS}/${name}`, {
      metadata: {
        labels: { 'pod-template-hash': null },
        annotations: { 'spillway.dev/released': mark },
        ownerReferences: null,
      },
      status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'False' }] },
    });
  const out = (): string[] => releases.of(ownerKeyOf(set)).map(({ metadata }) => metadata.name);
  await room.seen('they are released', () => names.every((name) => out().includes(name)));
}

async function answers(yes: boolean, member: string): Promise<void> {
  const lastTransitionTime = new Date(room.now).toISOString();
  const condition = yes ? { status: 'True', reason: 'Ready' } : { status: 'False', reason: 'Timeout' };
  const conditions = ['Ready', 'Reachable'].map((type) => ({ type, message: '', lastTransitionTime, ...condition }));
  room.editMember(member, { status: { conditions } });
  await room.seen('the member', () => room.process.placed.member(member)?.reachable === yes);
}

/** A look each 5 s for so many s, with what happens after each. @returns how many s after the first one pods were evicted, one number for each */
async function watch(forSeconds: number, then: (evicted: number) => Promise<void> | void = () => undefined) {
  const at: number[] = [];
  for (let second = 0; second <= forSeconds; second += 5) {
    const before = room.evictions().length;
    await ends.bringUpToDate(ownerKeyOf(set), signal).catch((error: unknown) => {
      if (staying.length === 0) throw error;
    });
    const names = room.evictions().slice(before);
    const gone = names.filter((name) => !staying.includes(name));
    await room.seen('they are gone', () => gone.every((name) => known(name) === undefined));
    at.push(...names.map(() => second));
    await then(names.length);
    room.now += 5_000;
  }
  return at;
}

describe('a quota leaves a ReplicaSet no room beside pods that wait in a lost member', () => {
  test.each([1, 2, 3, 4])('and there is a place for %i of four: as many go, one by one', async (slots) => {
    await start(4, slots);
    let left = slots;
    const at = await watch(3_600, async (evicted) => {
      // It makes one for each that goes.
      left -= evicted;
      room.setRoom('west', left);
      if (evicted > 0) await room.run(set, { west: evicted });
    });
    expect(at).toHaveLength(slots);
    expect(at[0]).toBe(300);
  });

  test('and others come: those after them go as many at once as came', async () => {
    await start(8, 100);
    const at = await watch(900, async (evicted) => {
      if (evicted > 0) await room.run(set, { west: evicted });
    });
    const [first = 0] = at;
    const times = [...new Set(at)];
    expect([first, ...times.map((time) => at.filter((one) => one === time).length)]).toEqual([300, 1, 1, 2, 4]);
  });

  test('and its Deployment has strategy Recreate by now: they go all the same, and the host is not asked before', async () => {
    await start(4, 4);
    room.editDeployment('web', { spec: { strategy: { type: 'Recreate' } } });
    const { placed } = room.process;
    const surging = (pod: Pod): unknown => placed.surgingSetOf(asOwned(pod));
    await room.seen('the strategy', () => releases.of(ownerKeyOf(set)).every((pod) => surging(pod) === undefined));
    const before = room.api.seen.length;
    await watch(295);
    expect(room.api.seen.slice(before)).toEqual([]);
    const at = await watch(900, async (evicted) => {
      if (evicted > 0) await room.run(set, { west: evicted });
    });
    expect([at.length, at[0]]).toEqual([4, 0]);
  });

  test('and there is no place, or fewer than all: the host is not asked about each all the time', async () => {
    await start(50, 0);
    await watch(300);
    const before = room.api.seen.length;
    await watch(55);
    const reads = room.api.seen.slice(before).filter(({ method }) => method === 'GET');
    // The ReplicaSet, and the first of them.
    expect(reads.length).toBeLessThanOrEqual(8);
    expect([room.evictions(), room.told('ReleasedPodStays')]).toEqual([
      [],
      [expect.stringMatching(/it cannot be ended: no other cluster takes it now/)],
    ]);
  });

  const TOLERATES = { key: 'spillway.dev/member-unreachable', operator: 'Exists', effect: 'NoExecute' };
  const tolerate = async (names: readonly string[], more: object = {}): Promise<void> => {
    for (const name of names) room.api.edit(`${PODS}/${name}`, { spec: { tolerations: [{ ...TOLERATES, ...more }] } });
    await room.seen('their tolerations', () => names.every((name) => known(name)?.spec.tolerations?.length === 1));
  };
  const names = (): string[] => releases.of(ownerKeyOf(set)).map(({ metadata }) => metadata.name);

  test.each([
    ['their policy says Hold by now', 'its policy says Hold'],
    ['they tolerate it for an hour', 'it tolerates spillway.dev/member-unreachable for 60m'],
  ])('and %s: the host is not asked about any, and each says why it stays', async (what, why) => {
    await start(50, 100);
    if (what.includes('hour')) await tolerate(names(), { tolerationSeconds: 3_600 });
    else await rule({ onHeal: 'KeepOriginal', action: 'Hold' });
    const before = room.api.seen.length;
    await watch(895);
    expect(room.api.seen.slice(before)).toEqual([]);
    const told = names().map(
      (name) => `Pod ${name}: its ReplicaSet makes no other pod beside it, but it cannot be ended: ${why}`,
    );
    expect(room.told('ReleasedPodStays')).toEqual(expect.arrayContaining(told));
    expect(room.events).toHaveLength(50);
  });

  test.each([
    ['tolerates that for ever', 0, 300],
    ['is not let go by a webhook', 1, 300],
    // It may have gone, until a cache would show it.
    ['gets no answer', 1, 360],
  ])('and it lacks one of two: where the first one %s the other one goes', async (what, times, second) => {
    await start(2, 100);
    await room.run(set, { west: 1 });
    const [first = '', other = ''] = names().toSorted((a, b) => (uidOf(a) < uidOf(b) ? -1 : 1));
    if (times === 0) await tolerate([first]);
    else staying = [first];
    const fault = what === 'gets no answer' ? 'reset' : DENIED_BY_WEBHOOK;
    room.api.fault = ({ path }) => (path.endsWith(`/${first}/eviction`) ? fault : undefined);
    const at = await watch(800);
    expect([room.evictions(), at.at(-1)]).toEqual([[...Array<string>(times).fill(first), other], second]);
  });

  test('and its budget lets none go: few of many are asked to at a time, and all in turn', async () => {
    await start(50, 100);
    staying = names();
    room.api.fault = ({ path }) => (path.endsWith('/eviction') ? AGAINST_BUDGET : undefined);
    const at = await watch(300 + 4 * 15);
    expect(at).toEqual([300, 315, 330, 345, 360].flatMap((second) => Array<number>(10).fill(second)));
    expect(new Set(room.evictions()).size).toBe(50);
  });

  test('and the host takes long to let none go: one is asked to at a time, and all in turn', async () => {
    await start(4, 100);
    staying = names();
    room.api.fault = ({ path }) => {
      if (!path.endsWith('/eviction')) return undefined;
      room.now += 10_000;
      return DENIED_BY_WEBHOOK;
    };
    expect(await watch(300 + 3 * 200)).toEqual([300, 500, 700, 900]);
    expect(new Set(room.evictions()).size).toBe(4);
  });

  /** One that waits too many, and another one whose member is back. @returns the name of that */
  async function oneIsBack(): Promise<string> {
    await start(1, 100);
    room.editSet('web-1', { spec: { replicas: 2 } });
    const [, back = ''] = await room.run(set, { west: 1, north: 1 });
    await wait([back]);
    await watch(295);
    const conditions = [{ type: 'Ready', status: 'True' }];
    room.api.edit(`${PODS}/${back}`, { status: { phase: 'Running', conditions } });
    await room.seen(
      'it is Ready',
      () => known(back)?.status?.conditions?.some(({ type }) => type === 'Ready') === true,
    );
    return back;
  }

  test('and the one that it lacks is given back to it, which no cache shows yet: none goes', async () => {
    const back = await oneIsBack();
    const look = async (): Promise<unknown> => await ends.bringUpToDate(ownerKeyOf(set), signal);
    const isAbout = (path: string): boolean => path.endsWith(`/pods/${back}`);
    room.api.fault = ({ method, path }) => (method === 'PATCH' && isAbout(path) ? 'reset' : undefined);
    await expect(look()).rejects.toThrow();
    room.now += 1_000;
    const changed = { code: 404, reason: 'NotFound', message: 'not as it was' };
    room.api.fault = ({ method, path }) => (method === 'GET' && isAbout(path) ? changed : undefined);
    await look();
    expect(room.evictions()).toEqual([]);
  });

  test('and the one that it lacks is given back to it at that moment: none goes', async () => {
    const back = await oneIsBack();
    await watch(0);
    expect([room.evictions(), room.told('OriginalKept')]).toEqual([[], [expect.stringContaining(back)]]);
  });

  test('and the host takes a second to refuse that another one is given back: they have their turns all the same', async () => {
    const back = await oneIsBack();
    staying = [back];
    room.api.fault = ({ method, path }) => {
      if (method !== 'PATCH' || !path.endsWith(`/pods/${back}`)) return undefined;
      room.now += 1_200;
      return DENIED_BY_WEBHOOK;
    };
    await watch(60);
    expect(room.evictions()).toEqual([expect.not.stringMatching(new RegExp(`^${back}$`))]);
  });

  test('one that is kept by what is said of it alone keeps no other one', async () => {
    await start(2, 100);
    const [first] = releases.of(ownerKeyOf(set));
    room.api.edit(`${PODS}/${first?.metadata.name ?? ''}`, { spec: { tolerations: [TOLERATES] } });
    await watch(300);
    expect(room.evictions()).toEqual([expect.not.stringMatching(new RegExp(`^${first?.metadata.name ?? ''}$`))]);
  });

  test('their places are kept from pods of others for five minutes', async () => {
    await start(4, 3);
    const { set: api } = await room.deploy('api', 1);
    const [other = ''] = await room.run(api, { north: 1 });
    const conditions = [{ type: 'Ready', status: 'True' }];
    room.api.edit(`${PODS}/${other}`, { status: { phase: 'Running', conditions } });
    room.api.edit('/api/v1/nodes/north', { spec: { taints: [{ key: 'spillway.dev/drain', effect: 'NoSchedule' }] } });
    const { placed, members } = room.process;
    await room.seen('the drain', () => placed.member('north')?.drained.has('north') === true);
    for (let second = 0; second < 300; second += 5) {
      await members.bringUpToDate('north', signal);
      room.now += 5_000;
    }
    expect(room.evictions()).toEqual([]);
    for (let second = 0; second < 30; second += 5) {
      await members.bringUpToDate('north', signal);
      room.now += 5_000;
    }
    expect(room.evictions()).toEqual([other]);
  });
});

describe('a place is kept', () => {
  const taken = /^the room elsewhere is for pods that come before it$/;

  test('for the next one of the same ReplicaSet while one was told to go and no cache shows it, and not while it stays', async () => {
    await start(2, 1);
    const [a, b] = releases.of(ownerKeyOf(set)).map(asOwned) as [Pod, Pod];
    const { placed } = room.process;
    expect(placed.whyNotElsewhere(b, 'east', [], { comeBefore: 0 })).toBeUndefined();
    expect(placed.whyNotElsewhere(b, 'east', [a], { comeBefore: 1 })?.why).toMatch(taken);
  });

  test.each([
    ['ends', (): void => ending('web-1-1')],
    ['is gone', (): void => room.endPods(['web-1-1'])],
  ])('for five minutes from when one %s, however long ago it was released', async (_, end) => {
    await start(1, 1);
    const { set: api } = await room.deploy('api', 1);
    const [name = ''] = await room.run(api, { north: 1 });
    const why = (): string | undefined => room.process.placed.whyNotElsewhere(known(name) as Pod, 'north', [])?.why;
    expect(why()).toMatch(taken);
    room.now += 600_000;
    expect(why()).toBeUndefined();
    end();
    await room.seen(
      'it',
      () => known('web-1-1')?.metadata.deletionTimestamp !== undefined || known('web-1-1') === undefined,
    );
    expect(why()).toMatch(taken);
    room.now += 300_000;
    expect(why()).toBeUndefined();
  });
});

describe('a webhook refuses every pod that a ReplicaSet makes beside pods that wait in a lost member', () => {
  test('one of them goes, and the next after ten minutes, not all at once', async () => {
    await start(4, 100);
    expect(await watch(1_000)).toEqual([300, 900]);
  });

  test('nor does the next one when another process sees the first one go', async () => {
    await start(4, 100);
    // It takes as long as its member does not answer.
    const name = releases.of(ownerKeyOf(set))[0]?.metadata.name ?? '';
    room.now += 300_000;
    ending(name);
    await room.seen('it is ending', () => known(name)?.metadata.deletionTimestamp !== undefined);
    expect(await watch(900)).toEqual([600]);
  });
});

describe('pods that wait in a lost member stay for onMemberLost.after', () => {
  test.each([
    ['the process that saw it', false],
    ['one that begins then', true],
  ])('since the fault is not on this side any more, for %s', async (_, isAnother) => {
    await start(1, 9);
    for (const name of ['west', 'north']) await answers(false, name);
    expect(await watch(1_800)).toEqual([]);
    for (const name of ['west', 'north']) await answers(true, name);
    if (isAnother) {
      unfollow();
      const pods = releases.of(ownerKeyOf(set));
      begin();
      for (const pod of pods) releases.seen(pod);
    }
    const [first = 0] = await watch(600);
    expect(first).toBeGreaterThanOrEqual(295);
  });

  test('since it fell silent again, though it answered for a moment', async () => {
    await start(1, 0);
    await watch(600);
    await answers(true, 'east');
    room.setRoom('west', 9);
    expect(await watch(60)).toEqual([]);
    await answers(false, 'east');
    expect(await watch(600)).toEqual([300]);
  });
});
