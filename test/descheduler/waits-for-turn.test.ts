import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { releasedText } from '../../src/api/released.ts';
import { WaitsForTurn } from '../../src/descheduler/waits-for-turn.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import type { TypedObject } from '../../src/placement/owner-chain.ts';
import { SchedulerRoom } from '../fixtures/scheduler-room.ts';

/** Deployment shop/web of three pods, of which one has yet to come, one is in west, which is to be emptied, and one is released in east, where no room is left. */
let room: SchedulerRoom;
let set: TypedObject;
let inWest: string;
const PODS = '/api/v1/namespaces/shop/pods';
const MINUTE_MS = 60_000;

beforeEach(async () => {
  room = await SchedulerRoom.start(['east', 'west', 'south']);
  ({ set } = await room.deploy('web', 3));
  room.editSet('web-1', {
    spec: { replicas: 3, selector: { matchLabels: { 'pod-template-hash': 'one' } } },
    status: { replicas: 3, readyReplicas: 2 },
  });
  room.setRoom('local', 0);
  room.setRoom('east', 0);
  room.setRoom('south', 100);
  const names = await room.run(set, { west: 1, south: 1 });
  const conditions = [{ type: 'Ready', status: 'True' }];
  for (const name of names) room.api.edit(`${PODS}/${name}`, { status: { phase: 'Running', conditions } });
  await room.seen('they are Ready', () => names.every((name) => cached(name)?.status?.phase === 'Running'));
  [inWest = ''] = names;
});
afterEach(async () => {
  await room.close();
});

const cached = (name: string): Pod | undefined => room.process.view.pods.get(`shop/${name}`);
const released = (): number => room.api.requests('PATCH', `/pods/${inWest}`).length;

/** Another pod is released in east. Returns its name. */
async function release(more: object = {}): Promise<string> {
  const [name = ''] = await room.run(set, { east: 1 });
  const at = new Date(room.now).toISOString().replace('.000Z', 'Z');
  const mark = releasedText({ hash: 'one', replicaSet: 'web-1', uid: set.metadata.uid ?? '', at, ready: 3 });
  const metadata = {
    labels: { 'pod-template-hash': null },
    annotations: { 'spillway.dev/released': mark },
    ownerReferences: null,
    ...more,
  };
  const conditions = [{ type: 'Ready', status: 'False' }];
  room.api.edit(`${PODS}/${name}`, { metadata, status: { phase: 'Running', conditions } });
  const { resourceVersion } = room.api.objects.get(`${PODS}/${name}`)?.metadata ?? {};
  await room.seen('it is released', () => cached(name)?.metadata.resourceVersion === resourceVersion);
  return name;
}

async function drainWest(): Promise<void> {
  room.api.edit('/api/v1/nodes/west', { spec: { taints: [{ key: 'spillway.dev/drain', effect: 'NoSchedule' }] } });
  await room.seen('it is known', () => room.process.placed.members().some(({ drained }) => drained.has('west')));
  room.letWrite();
}

test('one that was released and is being deleted, in a member where it never ends, takes the turn of none', async () => {
  await release({ deletionTimestamp: new Date(room.now).toISOString(), deletionGracePeriodSeconds: 30 });
  await drainWest();
  await room.seen('the next one is released', () => released() === 1);
});

test('one that waits for its turn says so in an Event once none of its ReplicaSet has had one for a minute', async () => {
  const name = await release();
  await drainWest();
  const began = room.now;
  for (let beat = 0; room.told('DrainedPodHeld').length === 0; beat += 1) {
    if (beat === 150) throw new Error('nothing is told');
    await sleep(100);
    room.now += MINUTE_MS / 6;
    room.editMember('west', { metadata: { labels: { beat: `b${String(beat)}` } } });
  }
  expect(room.now - began).toBeGreaterThanOrEqual(MINUTE_MS);
  expect(room.told('DrainedPodHeld')).toEqual([
    expect.stringContaining(`as many pods of its ReplicaSet as may be are being replaced now (${name} among them)`),
  ]);
  expect(released()).toBe(0);
});

test('what nobody asked about for a minute was not waited for meanwhile, and a turn ends the wait', () => {
  let now = 0;
  const waits = new WaitsForTurn(() => now);
  const after = (ms: number): boolean => {
    now += ms;
    return waits.isLong('set');
  };
  expect([after(0), after(30_000), after(29_999), after(1)]).toEqual([false, false, false, true]);
  waits.came('set');
  expect([after(1), after(59_999), after(1)]).toEqual([false, false, true]);
  expect([after(60_000), after(59_999), after(1)]).toEqual([false, false, true]);
});
