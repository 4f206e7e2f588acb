import { afterEach, expect, test } from 'vitest';
import { SchedulerRoom } from '../fixtures/scheduler-room.ts';

let room: SchedulerRoom;
afterEach(async () => {
  await room.close();
});

test('members that wait for their turn hold no other one up', async () => {
  const members = Array.from({ length: 8 }, (_, index) => `east-${String(index)}`);
  room = await SchedulerRoom.start([...members, 'west']);
  // A turn comes each 100 s.
  room.rates.perMember = 0.01;
  await room.restart();
  room.setRoom('local', 0);
  room.setRoom('west', 99);
  room.place('p', {});
  const { set } = await room.deploy('web', 16);
  await room.run(set, Object.fromEntries(members.map((name) => [name, 2])));
  for (const name of members)
    room.api.edit(`/api/v1/nodes/${name}`, { spec: { taints: [{ key: 'spillway.dev/drain', effect: 'NoSchedule' }] } });
  room.letWrite();
  await room.seen('one pod of each has gone', () => room.evictions().length === members.length);
  const left = new Set(room.pods().map(({ spec }) => spec.nodeName));
  expect(left).toEqual(new Set(members));
});
