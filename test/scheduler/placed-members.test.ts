import { afterEach, beforeEach, expect, test } from 'vitest';
import type { PlacedMember } from '../../src/placement/placed-pods.ts';
import { SchedulerRoom } from '../fixtures/scheduler-room.ts';

/** Each pod of a lost member asks for all members anew: thousands of pods, and a hundred members, held up the answers to schedulers for a second. */
let room: SchedulerRoom;
const PATH = '/apis/spillway.dev/v1alpha1/memberclusters/east';

beforeEach(async () => {
  room = await SchedulerRoom.start(['east', 'west']);
});
afterEach(async () => {
  await room.close();
});

const east = (): PlacedMember | undefined => room.process.placed.member('east');

test('members are the same until something happens to one of them', () => {
  const { placed } = room.process;
  const before = placed.members();
  expect(before.map(({ name }) => name)).toEqual(['east', 'west']);
  placed.members().forEach((member, index) => expect(member).toBe(before[index]));
  expect(placed.member('east')).toBe(before[0]);
});

test.each([
  [
    'takes no new pods',
    (): void => room.api.edit(PATH, { spec: { unschedulable: true } }),
    (): boolean => east()?.unavailable !== undefined,
  ],
  [
    'is to be emptied',
    (): void =>
      room.api.edit('/api/v1/nodes/east', { spec: { taints: [{ key: 'spillway.dev/drain', effect: 'NoSchedule' }] } }),
    (): boolean => east()?.drained.has('east') === true,
  ],
  ['is none any more', (): void => room.api.delete(PATH), (): boolean => east() === undefined],
])('but not once it %s', async (_what, change, isSeen) => {
  expect(isSeen()).toBe(false);
  change();
  await room.seen('it is seen', isSeen);
});
