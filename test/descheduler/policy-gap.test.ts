import { afterEach, beforeEach, expect, test } from 'vitest';
import type { TypedObject } from '../../src/placement/owner-chain.ts';
import { SchedulerRoom } from '../fixtures/scheduler-room.ts';

/** Member east is to be emptied, and west has room for its four pods. Their policy keeps them where they are. */
let room: SchedulerRoom;
let set: TypedObject;
const POLICY = '/apis/spillway.dev/v1alpha1/namespaces/shop/placementpolicies/hold';
const NEVER = { cluster: { purgeMode: 'Never' } };
const DIRECTLY = { cluster: { purgeMode: 'Directly' } };
const WENT =
  /: PlacementPolicy hold was deleted, or does not choose it any more, less than a minute ago, and may come back$/;

beforeEach(async () => {
  room = await SchedulerRoom.start(['east', 'west']);
  ({ set } = await room.deploy('web', 4));
  room.setRoom('local', 100);
  room.setRoom('west', 100);
  await policy(NEVER);
  await room.run(set, { east: 4 });
  room.api.edit('/api/v1/nodes/east', { spec: { taints: [{ key: 'spillway.dev/drain', effect: 'NoSchedule' }] } });
  await room.seen('it is drained', () => room.process.placed.member('east')?.drained.has('east') === true);
  await look();
  expect(room.evictions()).toEqual([]);
});
afterEach(async () => {
  await room.close();
});

const look = async (): Promise<unknown> =>
  await room.process.members.bringUpToDate('east', new AbortController().signal);
const known = (): unknown => room.process.view.policies.get('shop/hold')?.metadata.resourceVersion;

/** It is made, or edited. */
async function policy(failover: object, selector: object = {}, name = 'hold'): Promise<void> {
  room.place(name, {}, selector);
  const path = POLICY.replace(/hold$/, name);
  const spec = room.api.objects.get(path)?.['spec'] as object;
  room.api.edit(path, { spec: { ...spec, failover } });
  const { policies } = room.process.view;
  const resourceVersion = room.api.objects.get(path)?.metadata.resourceVersion;
  await room.seen('it is known', () => policies.get(`shop/${name}`)?.metadata.resourceVersion === resourceVersion);
}

async function deleted(): Promise<void> {
  room.unplace('hold');
  await room.seen('it is gone', () => known() === undefined);
}

/** Looked at every five seconds. */
async function pass(seconds: number): Promise<void> {
  for (let passed = 0; passed < seconds; passed += 5) {
    room.now += 5_000;
    await look();
  }
}

test('a policy that is deleted keeps its pods for a minute, and they say so', async () => {
  await deleted();
  await pass(55);
  expect(room.evictions()).toEqual([]);
  expect(room.told('DrainedPodHeld').at(-1)).toMatch(WENT);
  await pass(20);
  expect(room.evictions()).toHaveLength(4);
});

test('so does one that is edited so that it chooses others', async () => {
  await policy(NEVER, { name: 'other' });
  await pass(55);
  expect(room.evictions()).toEqual([]);
  expect(room.told('DrainedPodHeld').at(-1)).toMatch(WENT);
  await pass(20);
  expect(room.evictions()).toHaveLength(4);
});

test('whatever other policy is left for them meanwhile', async () => {
  await policy(DIRECTLY, {}, 'zz-all');
  await pass(5);
  expect(room.evictions()).toEqual([]);
  await deleted();
  await pass(55);
  expect(room.evictions()).toEqual([]);
  await pass(20);
  expect(room.evictions()).toHaveLength(4);
});

test('one that is made anew keeps them on, and counts at once if it says otherwise', async () => {
  await deleted();
  await look();
  await policy(NEVER);
  await pass(120);
  expect(room.evictions()).toEqual([]);
  await deleted();
  await policy(DIRECTLY);
  await pass(20);
  expect(room.evictions()).toHaveLength(4);
});

test('an edit counts at once, and so does another policy that comes before it', async () => {
  await policy(NEVER, { labelSelector: { matchLabels: { app: 'web' } } });
  await look();
  expect(room.evictions()).toEqual([]);
  await policy(DIRECTLY, { name: 'web' }, 'first');
  await pass(5);
  expect(room.evictions()).toHaveLength(4);
});

test('what is said of how its pods go counts at once', async () => {
  await policy(DIRECTLY);
  await pass(5);
  expect(room.evictions()).toHaveLength(4);
});

test('a process that comes while it is gone knows of none', async () => {
  await deleted();
  await room.restart();
  await pass(5);
  expect(room.evictions()).toHaveLength(4);
});

test('however often it is edited within that minute, what it said at first keeps them', async () => {
  for (let i = 0; i < 5; i += 1) await policy(NEVER, { name: `other-${String(i)}` });
  await deleted();
  await pass(55);
  expect(room.evictions()).toEqual([]);
  await pass(20);
  expect(room.evictions()).toHaveLength(4);
});
