import { afterEach, beforeEach, expect, test } from 'vitest';
import type { TypedObject } from '../../src/placement/owner-chain.ts';
import { SchedulerRoom } from '../fixtures/scheduler-room.ts';

/** A drained member with ten pods, which have room elsewhere; who moves them has lost the Lease, and does not know it yet. */
let room: SchedulerRoom;
let deployment: TypedObject;
const PODS = '/api/v1/namespaces/shop/pods';

beforeEach(async () => {
  room = await SchedulerRoom.start(['east', 'west']);
  room.setRoom('local', 0);
  room.setRoom('west', 100);
  room.place('p', {});
  await room.seen('the policy is known', () => room.process.view.policies.get('shop/p') !== undefined);
  const made = await room.deploy('web', 10);
  ({ deployment } = made);
  await room.run(made.set, { east: 10 });
  room.api.edit('/api/v1/nodes/east', { spec: { taints: [{ key: 'spillway.dev/drain', effect: 'NoSchedule' }] } });
  await room.seen('it is drained', () => room.process.placed.member('east')?.drained.has('east') === true);
});
afterEach(async () => {
  await room.close();
});

/** Pods that were read past the caches, as each one is right before it goes. */
const readLive = (): number =>
  new Set(room.api.requests('GET').flatMap(({ path }) => (path.startsWith(`${PODS}/`) ? [path] : []))).size;
const look = async (): Promise<unknown> =>
  await room.process.members.bringUpToDate('east', new AbortController().signal);

test('nothing is moved any more, and nothing counts as moved', async () => {
  room.leaseHeld = false;
  await expect(look()).rejects.toThrow('not sent: the lease is not held any more');
  expect(room.evictions()).toEqual([]);
  expect(room.process.records.withinAnHour(deployment)).toBe(0);
  room.leaseHeld = true;
  room.now += 15_000;
  await look();
  expect(new Set(room.evictions()).size).toBe(10);
});

test('no loop moves any, and what was moved before is written down all the same', async () => {
  room.leaseHeld = false;
  room.letWrite();
  await room.seen('several were tried', () => readLive() >= 3);
  expect(room.evictions()).toEqual([]);
  room.now += 15_000;
  room.leaseHeld = true;
  await room.seen('all go', () => new Set(room.evictions()).size === 10);
  room.leaseHeld = false;
  await room.seen('that is written down', () => {
    const moves = room.placementOf('web')?.status?.moves ?? [];
    return moves.reduce((all, { count }) => all + count, 0) === 10;
  });
});
