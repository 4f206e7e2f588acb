import { afterEach, beforeEach, expect, test } from 'vitest';
import { gangMove } from '../../src/descheduler/gang-timed-out.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { AGAINST_BUDGET } from '../fixtures/eviction-refusals.ts';
import { SchedulerRoom } from '../fixtures/scheduler-room.ts';

let room: SchedulerRoom;
let pod: Pod;
beforeEach(async () => {
  room = await SchedulerRoom.start(['east']);
  const { set } = await room.deploy('web', 1);
  await room.run(set, { east: 1 });
  [pod] = room.pods() as [Pod];
});
afterEach(async () => {
  await room.close();
});

const move = async (isStillToGo: (live: Pod) => boolean = () => true): Promise<string> =>
  await room.process.mover.move(gangMove(pod, 'east', isStillToGo), new AbortController().signal);
const evictions = (): unknown[] => room.api.requests('POST', '/eviction').map(({ body }) => body);

test('a pod of a gang gives back what it has without a place elsewhere, as the version that was looked at', async () => {
  expect(await move()).toBe('moved');
  const { uid, resourceVersion } = pod.metadata;
  expect(evictions()).toMatchObject([{ deleteOptions: { preconditions: { uid, resourceVersion } } }]);
  expect(room.events.map(({ about, reason }) => `${about} ${reason}`)).toEqual([
    'Pod web-1-1 GangPodGivenBack',
    'Deployment web GangPodGivenBack',
  ]);
});

test('its disruption budget holds, and one that has ended meanwhile is left alone', async () => {
  room.api.fault = ({ path }) => (path.endsWith('/eviction') ? AGAINST_BUDGET : undefined);
  expect(await move()).toBe('workloadHeld');
  expect(room.events.map(({ reason }) => reason)).toEqual(['GangPodHeld']);
  room.api.fault = undefined;
  room.api.edit('/api/v1/namespaces/shop/pods/web-1-1', { status: { phase: 'Succeeded' } });
  expect(await move()).toBe('notWanted');
});

test('one whose gang got all of its nodes meanwhile stays, by what the pod is right before it would go', async () => {
  room.api.edit('/api/v1/namespaces/shop/pods/web-1-1', { status: { startTime: '2026-01-01T00:00:00Z' } });
  expect(await move(({ status }) => status?.startTime === undefined)).toBe('notWanted');
  expect([evictions(), room.events]).toEqual([[], []]);
});

test('the limit of moves within an hour counts it, and does not hold it: what it has is of no use to it', async () => {
  const { records, placed, mover } = room.process;
  const { workload } = placed.rulesOf(pod);
  for (let count = 0; count < 5; count += 1)
    records.add(workload, { strategy: 'Drain', from: 'east', pod: 'p', message: '' });
  expect(mover.fuse.tooOften(pod)).toMatchObject({ count: 5, most: 5 });
  expect(await move()).toBe('moved');
  expect(records.withinAnHour(workload)).toBe(6);
});
