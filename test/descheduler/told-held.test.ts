import { afterEach, beforeEach, expect, test } from 'vitest';
import { migrationMove } from '../../src/descheduler/migration.ts';
import type { WantedMove } from '../../src/descheduler/wanted-move.ts';
import { SchedulerRoom } from '../fixtures/scheduler-room.ts';

const { signal } = new AbortController();
let room: SchedulerRoom;

beforeEach(async () => {
  room = await SchedulerRoom.start(['east', 'west']);
});
afterEach(async () => {
  await room.close();
});

test('a pod that is held has an Event of each strategy that wants it elsewhere, also when the cause is the same', async () => {
  const { set } = await room.deploy('web', 1);
  const [name = ''] = await room.run(set, { east: 1 });
  const pod = room.pods().find(({ metadata }) => metadata.name === name);
  if (pod === undefined) throw new Error('there is no pod');
  const migrated = migrationMove(
    pod,
    { from: 'east', to: 'west', by: 'shop/now' },
    { recheck: () => ({ why: 'it is busy' }) },
  );
  const tainted: WantedMove = { ...migrated, strategy: 'TaintNoExecute' };
  const told = (): number[] => [room.told('TaintedPodHeld').length, room.told('PodNotMigrated').length];
  await room.process.mover.move(tainted, signal);
  expect(told()).toEqual([1, 0]);
  await room.process.mover.move(migrated, signal);
  expect(told()).toEqual([1, 1]);
  for (const wanted of [tainted, migrated, tainted, migrated]) await room.process.mover.move(wanted, signal);
  expect(told()).toEqual([1, 1]);
});

test('why a pod stays is known of each strategy, and of another one that keeps it from being tried', async () => {
  const { set } = await room.deploy('web', 1);
  const [name = ''] = await room.run(set, { east: 1 });
  const pod = room.pods().find(({ metadata }) => metadata.name === name);
  if (pod === undefined) throw new Error('there is no pod');
  const { mover } = room.process;
  const migrated = migrationMove(
    pod,
    { from: 'east', to: 'west', by: 'shop/now' },
    { recheck: () => ({ why: 'it is busy' }) },
  );
  const tainted: WantedMove = { ...migrated, strategy: 'TaintNoExecute', recheck: () => ({ why: 'it is tolerated' }) };
  expect(mover.whyHeld(pod, 'Migrate')).toBeUndefined();
  await mover.move(tainted, signal);
  expect(mover.restMs(pod)).toBeGreaterThan(0);
  expect(mover.whyHeld(pod, 'Migrate')).toBe('it is tolerated');
  room.now += mover.restMs(pod);
  expect(mover.whyHeld(pod, 'Migrate')).toBeUndefined();
  await mover.move(migrated, signal);
  expect([mover.whyHeld(pod, 'Migrate'), mover.whyHeld(pod, 'TaintNoExecute')]).toEqual([
    'it is busy',
    'it is tolerated',
  ]);
  await mover.move({ ...migrated, recheck: () => 'notWanted' }, signal);
  expect(mover.whyHeld(pod, 'Migrate')).toBeUndefined();
  mover.gaveBack(pod, 300_000);
  expect(mover.whyHeld(pod, 'Migrate')).toMatch(/^it was given back to its ReplicaSet/);
});
