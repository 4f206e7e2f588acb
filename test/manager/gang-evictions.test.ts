import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Pod } from '../../src/kube/core-v1.ts';
import { gangEvictions } from '../../src/manager/gang-evictions.ts';
import type { GangEvictions } from '../../src/scheduler/gangs/gang-evictions.ts';
import { AGAINST_BUDGET, DENIED_BY_WEBHOOK } from '../fixtures/eviction-refusals.ts';
import { SchedulerRoom } from '../fixtures/scheduler-room.ts';

/** Two pods of a gang in east. */
let room: SchedulerRoom;
let pods: Pod[];
let evictions: GangEvictions;
const { signal } = new AbortController();
beforeEach(async () => {
  room = await SchedulerRoom.start(['east']);
  const { set } = await room.deploy('web', 2);
  await room.run(set, { east: 2 });
  pods = room.pods();
  evictions = gangEvictions(room.process.mover, room.stop);
});
afterEach(async () => {
  await room.close();
});

const giveBack = async (pod: Pod | undefined): Promise<string> =>
  await evictions.giveBack(pod as Pod, 'east', () => true, signal);

test('one that its budget holds, or the host does not let go, is not tried again before its time', async () => {
  const [held, denied] = pods;
  room.api.fault = ({ path }) => (path.endsWith('/eviction') ? AGAINST_BUDGET : undefined);
  expect([await giveBack(held), await giveBack(held)]).toEqual(['controllerHeld', 'held']);
  room.api.fault = ({ path }) => (path.endsWith('/eviction') ? DENIED_BY_WEBHOOK : undefined);
  room.now += 10_000;
  expect([await giveBack(denied), await giveBack(held), room.evictions().length]).toEqual([
    'controllerHeld',
    'controllerHeld',
    3,
  ]);
  room.now += 10_000;
  expect([await giveBack(denied), await giveBack(held), room.evictions().length]).toEqual(['held', 'held', 3]);
  room.api.fault = undefined;
  room.now += 5_000;
  expect([await giveBack(denied), await giveBack(held)]).toEqual(['gone', 'gone']);
});

test('that all moves are stopped is said of one that is not tried yet, too', async () => {
  const [pod] = pods;
  room.api.fault = ({ path }) => (path.endsWith('/eviction') ? AGAINST_BUDGET : undefined);
  await giveBack(pod);
  room.stopMoves('INC-7');
  expect(await giveBack(pod)).toBe('stopped');
});

test('those come last that the host did not let go', async () => {
  const [first, other] = pods;
  room.api.fault = ({ path }) => (path.endsWith('/eviction') ? DENIED_BY_WEBHOOK : undefined);
  await giveBack(first);
  room.now += 15_000;
  expect(evictions.inTurn(pods)).toEqual([other, first]);
});
