import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Pod } from '../../src/kube/core-v1.ts';
import type { TypedObject } from '../../src/placement/owner-chain.ts';
import { SchedulerRoom } from '../fixtures/scheduler-room.ts';

/** Pods of a ReplicaSet that makes none before one has gone; east is to be emptied. */
let room: SchedulerRoom;
let deployment: TypedObject;
let set: TypedObject;
const PODS = '/api/v1/namespaces/shop/pods';

beforeEach(async () => {
  room = await SchedulerRoom.start(['east', 'west']);
  ({ deployment, set } = await room.deploy('web', 4));
  await ready(await room.run(set, { east: 4 }));
  room.setRoom('local', 0);
  room.setRoom('west', 1);
  room.api.edit('/api/v1/nodes/east', { spec: { taints: [{ key: 'spillway.dev/drain', effect: 'NoSchedule' }] } });
  await room.seen('it is known', () => room.process.placed.members().some(({ drained }) => drained.has('east')));
});
afterEach(async () => {
  await room.close();
});

async function ready(names: readonly string[]): Promise<void> {
  const conditions = [{ type: 'Ready', status: 'True' }];
  for (const name of names) room.api.edit(`${PODS}/${name}`, { status: { phase: 'Running', conditions } });
  const isKnown = (name: string): boolean =>
    cached(name)?.metadata.resourceVersion === room.api.objects.get(`${PODS}/${name}`)?.metadata.resourceVersion;
  await room.seen('they are Ready', () => names.every(isKnown));
}

const cached = (name: string): Pod | undefined => room.process.view.pods.get(`shop/${name}`);

/** Instead of the one that was evicted; it has no node. */
async function comes(name: string, of: TypedObject = set): Promise<void> {
  const { name: setName, uid } = of.metadata;
  const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: setName, uid, controller: true };
  room.make(PODS, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'shop', labels: { ...of.metadata.labels }, ownerReferences: [owner] },
    spec: { containers: [{ name: 'main' }] },
    status: { phase: 'Pending' },
  });
  await room.seen('it came', () => cached(name) !== undefined);
  const pod = cached(name);
  if (pod !== undefined) room.process.mover.underWay.came(pod);
}

async function bound(name: string): Promise<void> {
  room.api.edit(`${PODS}/${name}`, { spec: { nodeName: 'west' } });
  await room.seen('it is bound', () => cached(name)?.spec.nodeName === 'west');
}

const look = async (): Promise<unknown> =>
  await room.process.members.bringUpToDate('east', new AbortController().signal);

test('while one that came has found no node, no other one that serves goes', async () => {
  await look();
  expect(room.evictions()).toHaveLength(1);
  await comes('next');
  // Beside its own place, which nobody else gets, there is room for many.
  room.setRoom('west', 100);
  for (let minutes = 0; minutes < 5; minutes += 1) {
    room.now += 61_000;
    await look();
  }
  expect(room.evictions()).toHaveLength(1);
  expect(room.told('DrainedPodHeld')).toContainEqual(
    expect.stringMatching(/: another pod of its workload has found no node \(next\)$/),
  );
  await bound('next');
  room.setRoom('west', 1);
  room.now += 5_000;
  await look();
  expect(room.evictions()).toHaveLength(2);
});

test('while a place is kept for it, others go to other places', async () => {
  await look();
  await comes('next');
  room.setRoom('west', 2);
  room.now += 15_000;
  await look();
  expect(room.evictions()).toHaveLength(2);
});

test('one of another revision that finds no node holds none: what comes in their places asks for something else', async () => {
  room.setRoom('west', 5);
  await comes('next', await room.rollOut(deployment, 'two', '2'));
  room.now += 61_000;
  await look();
  expect(room.evictions()).toHaveLength(4);
});
