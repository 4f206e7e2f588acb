import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { TypedObject } from '../../src/placement/owner-chain.ts';
import { SchedulerRoom } from '../fixtures/scheduler-room.ts';

/** Four pods of Deployment shop/web in member east; west has room. */
let room: SchedulerRoom;
let set: TypedObject;
let names: string[];

beforeEach(async () => {
  room = await SchedulerRoom.start(['east', 'west', 'north']);
  ({ set } = await room.deploy('web', 4));
  room.setRoom('west', 100);
  room.setRoom('north', 0);
  room.setRoom('local', 0);
  room.place('p', {});
  await room.seen('the policy is known', () => room.process.view.policies.get('shop/p') !== undefined);
  for (const name of ['east', 'west', 'north']) await answers(name, true);
  names = await room.run(set, { east: 4 });
});
afterEach(async () => {
  await room.close();
});

async function answers(member: string, yes: boolean, reason = 'Timeout'): Promise<void> {
  const how = { status: yes ? 'True' : 'False', reason, lastTransitionTime: '2026-01-01T00:00:00Z' };
  const conditions = ['Ready', 'Reachable'].map((type) => ({ type, message: '', ...how }));
  room.editMember(member, { status: { conditions } });
  await room.seen(`${member} is known`, () =>
    room.process.placed.members().some(({ name, reachable }) => name === member && reachable === yes),
  );
}

async function drain(): Promise<void> {
  room.api.edit('/api/v1/nodes/east', { spec: { taints: [{ key: 'spillway.dev/drain', effect: 'NoSchedule' }] } });
  await room.seen('it is known', () => room.process.placed.members().some(({ drained }) => drained.has('east')));
}

async function taint(...keys: string[]): Promise<void> {
  room.editMember('east', { spec: { taints: keys.map((key) => ({ key, effect: 'NoExecute' })) } });
  const { placed } = room.process;
  await room.seen('it is known', () =>
    placed.members().some(({ nodeTaints }) => nodeTaints.get('east')?.length === keys.length),
  );
}

const resync = async (): Promise<unknown> =>
  await room.process.members.bringUpToDate('east', new AbortController().signal);

async function lookFor(minutes: number): Promise<void> {
  for (let times = 0; times < minutes * 4; times += 1) {
    room.now += 15_000;
    await resync();
  }
}

describe('a pod that tolerates a taint for an hour is none that stays for other reasons:', () => {
  beforeEach(async () => {
    const tolerations = [{ key: 'spot', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 3_600 }];
    for (const name of names) room.api.edit(`/api/v1/namespaces/shop/pods/${name}`, { spec: { tolerations } });
    // Caches keep no tolerations.
    const versions = room.pods().map(({ metadata }) => metadata.resourceVersion);
    await room.seen('it is known', () =>
      room.process.view.podsOn('east').every(({ metadata }) => versions.includes(metadata.resourceVersion)),
    );
    await taint('spot');
    room.process.ages.observe(room.process.placed.members());
    await resync();
    expect(room.told('TaintedPodHeld')).toHaveLength(4);
    await lookFor(1);
    expect(room.evictions()).toEqual([]);
  });

  test('its member is lost', async () => {
    await answers('east', false);
    await lookFor(6);
    expect(room.evictions()).toHaveLength(4);
  });

  test('somebody drains', async () => {
    await drain();
    await lookFor(1);
    expect(room.evictions()).toHaveLength(4);
  });

  test('there is another taint', async () => {
    await taint('spot', 'fire');
    await lookFor(1);
    expect(room.evictions()).toHaveLength(4);
  });
});

test('one that was given back rests while its member answers, and is replaced when that is lost', async () => {
  await drain();
  for (const pod of room.process.view.podsOn('east')) room.process.mover.gaveBack(pod, 300_000);
  await lookFor(4);
  expect(room.evictions()).toEqual([]);
  await answers('east', false);
  room.now += 15_000;
  await resync();
  expect(room.evictions()).toHaveLength(4);
});

test('one that was given back rests also while its member answers, and cannot serve', async () => {
  await taint('spot');
  for (const pod of room.process.view.podsOn('east')) room.process.mover.gaveBack(pod, 300_000);
  await answers('east', false, 'TooManyRequests');
  await lookFor(4);
  expect(room.evictions()).toEqual([]);
  await lookFor(1);
  expect(room.evictions()).toHaveLength(4);
});

test('one that was given back is tried again in its time', async () => {
  await drain();
  for (const pod of room.process.view.podsOn('east')) room.process.mover.gaveBack(pod, 300_000);
  await lookFor(5);
  expect(room.evictions()).toHaveLength(4);
});
