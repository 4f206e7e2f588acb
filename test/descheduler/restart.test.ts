import { afterEach, beforeEach, expect, test } from 'vitest';
import { ownerKeyOf } from '../../src/kube/owner-references.ts';
import type { TypedObject } from '../../src/placement/owner-chain.ts';
import { SchedulerRoom } from '../fixtures/scheduler-room.ts';

/** Four pods of Deployment shop/web in member east, which is to be emptied. One may be moved within an hour, and one was. */
let room: SchedulerRoom;
let deployment: TypedObject;
const { signal } = new AbortController();

beforeEach(async () => {
  room = await SchedulerRoom.start(['east', 'west']);
  room.perPodPerHour = 0.25;
  await room.restart();
  let set: TypedObject;
  ({ deployment, set } = await room.deploy('web', 4));
  await room.run(set, { east: 4 });
  room.setRoom('local', 0);
  room.setRoom('west', 9);
  room.place('p', {});
  await room.seen('the policy is known', () => room.process.view.policies.get('shop/p') !== undefined);
  await room.process.placements.bringUpToDate(deployment.metadata.uid ?? '', signal);
  room.api.edit('/api/v1/nodes/east', { spec: { taints: [{ key: 'spillway.dev/drain', effect: 'NoSchedule' }] } });
  await isDrained();
  await look();
  const version = (): string | undefined => room.placementOf('web')?.metadata.resourceVersion;
  await room.seen('it is known', () => room.process.placed.recordOf(deployment)?.resourceVersion === version());
  await room.process.records.bringUpToDate(ownerKeyOf(deployment), signal);
  expect(room.evictions()).toHaveLength(1);
});
afterEach(async () => {
  await room.close();
});

const isDrained = async (): Promise<void> =>
  await room.seen('it is known', () => room.process.placed.members().some(({ drained }) => drained.has('east')));
const look = async (): Promise<unknown> => await room.process.members.bringUpToDate('east', signal);
const isOfPlacements = (path: string): boolean => path.endsWith('/workloadplacements');

test('what was moved before is waited for: nothing moves while it cannot be read, whatever the reason, and pods say so', async () => {
  room.api.fault = ({ path }) =>
    isOfPlacements(path) ? { code: 404, reason: 'NotFound', message: 'no such kind' } : undefined;
  await room.restart(({ view }) => view.hasSynced);
  const { placed, store } = room.process;
  // Not for ever: pods would be held without a word.
  await placed.whenSynced(signal);
  expect(store.informer.hasSynced).toBe(false);
  await look();
  room.now += 60_000;
  await look();
  expect(room.evictions()).toHaveLength(1);
  expect(room.told('DrainedPodHeld')).toContainEqual(
    expect.stringMatching(
      /: the host cannot be followed now \(WorkloadPlacements, which say what was moved before: .*no such kind/,
    ),
  );
  room.api.fault = undefined;
  await room.seen('they are read', () => placed.problem === undefined);
  room.now += 60_000;
  await look();
  expect(room.evictions()).toHaveLength(1);
  expect(room.told('DrainedPodHeld')).toContainEqual(
    expect.stringMatching(/: pods of its workload were moved too often \(1 times within an hour/),
  );
});

test('moves begin when they are read, and not before', async () => {
  room.api.fault = ({ path }) => (isOfPlacements(path) ? 'hang' : undefined);
  await room.restart(({ view }) => view.hasSynced);
  const { placed } = room.process;
  const patience = new AbortController();
  let isOver = false;
  const synced = placed.whenSynced(patience.signal).then(() => (isOver = true));
  await look();
  expect(isOver).toBe(false);
  expect(placed.problem).toBe('WorkloadPlacements, which say what was moved before: the caches are not complete yet');
  expect(room.evictions()).toHaveLength(1);
  patience.abort();
  await synced;
});

test('a move is written down also when the object for that is made only afterwards', async () => {
  const path = '/apis/spillway.dev/v1alpha1/namespaces/shop/workloadplacements/deployment-web';
  const { records, placements, placed } = room.process;
  const uid = deployment.metadata.uid ?? '';
  const isKnown = (): boolean => placed.recordOf(deployment) !== undefined;
  // The cache does not know yet that it has gone.
  room.api.fault = ({ method }) => (method === 'PATCH' ? { code: 404, reason: 'NotFound' } : undefined);
  expect(await records.bringUpToDate(`shop/${uid}`, signal)).toEqual({ requeueAfterMs: 2_000 });
  room.api.fault = undefined;
  room.api.delete(path);
  await room.seen('it is gone', () => !isKnown());
  expect(await records.bringUpToDate(`shop/${uid}`, signal)).toEqual({ requeueAfterMs: 10_000 });
  room.now += 60_000;
  await placements.bringUpToDate(uid, signal);
  const version = (): string | undefined => room.placementOf('web')?.metadata.resourceVersion;
  await room.seen('it is there again', () => placed.recordOf(deployment)?.resourceVersion === version());
  expect(await records.bringUpToDate(`shop/${uid}`, signal)).toBeUndefined();
  expect(room.placementOf('web')?.status?.moves).toHaveLength(1);
});

test('without an object, as of a workload without a policy, it is waited for as long as moves count', async () => {
  const { records, placed } = room.process;
  const uid = deployment.metadata.uid ?? '';
  room.api.delete('/apis/spillway.dev/v1alpha1/namespaces/shop/workloadplacements/deployment-web');
  await room.seen('it is gone', () => placed.recordOf(deployment) === undefined);
  expect(await records.bringUpToDate(`shop/${uid}`, signal)).toEqual({ requeueAfterMs: 10_000 });
  room.now += 3_600_000;
  expect(await records.bringUpToDate(`shop/${uid}`, signal)).toBeUndefined();
});

test('moves are known still where a policy is made anew, also by a process that comes only then, and go when they count no more', async () => {
  const uid = deployment.metadata.uid ?? '';
  const { placements, store } = room.process;
  const status = (): object => room.placementOf('web')?.status ?? {};
  const isStored = async (): Promise<void> => {
    const version = room.placementOf('web')?.metadata.resourceVersion;
    await room.seen('it is known', () => room.process.store.get(deployment)?.metadata.resourceVersion === version);
  };
  await isStored();
  room.unplace('p');
  await room.seen('there is no policy', () => room.process.view.policies.get('shop/p') === undefined);
  expect(await placements.bringUpToDate(uid, signal)).toEqual({ requeueAfterMs: 3_600_000 });
  // What the plan was nobody is to take for what it is.
  expect(Object.keys(status()).toSorted()).toEqual(['moves', 'updatedAt']);
  const writes = (): number =>
    ['PATCH', 'DELETE'].flatMap((method) => room.api.requests(method, 'deployment-web')).length;
  await isStored();
  room.now += 60_000;
  const before = writes();
  expect(await placements.bringUpToDate(uid, signal)).toEqual({ requeueAfterMs: 3_540_000 });
  expect([store.get(deployment)?.status?.moves?.length, writes()]).toEqual([1, before]);
  room.place('p', {});
  await room.restart();
  await room.process.placements.bringUpToDate(uid, signal);
  expect(status()).toMatchObject({ policy: { name: 'p' }, moves: [{ count: 1 }] });
  await isStored();
  await isDrained();
  await look();
  expect(room.evictions()).toHaveLength(1);
  expect(room.told('DrainedPodHeld').at(-1)).toMatch(/: pods of its workload were moved too often \(1 times within/);
  room.unplace('p');
  await room.seen('there is no policy', () => room.process.view.policies.get('shop/p') === undefined);
  room.now += 3_600_000;
  expect(await room.process.placements.bringUpToDate(uid, signal)).toBeUndefined();
  expect(room.placementOf('web')).toBeUndefined();
});

test('nor does the object go that was given a move while its rules went', async () => {
  const uid = deployment.metadata.uid ?? '';
  room.now += 3_600_000;
  room.unplace('p');
  await room.seen('there is no policy', () => room.process.view.policies.get('shop/p') === undefined);
  room.api.fault = ({ method }) => (method === 'DELETE' ? { code: 409, reason: 'Conflict' } : undefined);
  expect(await room.process.placements.bringUpToDate(uid, signal)).toEqual({ requeueAfterMs: 2_000 });
  const [sent] = room.api.requests('DELETE', '/workloadplacements/deployment-web');
  expect(sent?.body).toMatchObject({ preconditions: { resourceVersion: expect.any(String) } });
});

test('it goes without pods, too, when its moves count no more', async () => {
  const uid = deployment.metadata.uid ?? '';
  const { placements, view, store, placed } = room.process;
  const isNamed = (): boolean => store.get(deployment)?.status?.policy !== undefined;
  await room.seen('its move is known', () => placed.recordOf(deployment)?.moves.length === 1);
  room.unplace('p');
  await room.seen('there is no policy', () => view.policies.get('shop/p') === undefined);
  await placements.bringUpToDate(uid, signal);
  await room.seen('it is of moves alone', () => !isNamed());
  const all = room.pods().map(({ metadata }) => metadata.name);
  room.endPods(all);
  await room.seen('the pods are gone', () => all.every((name) => view.pods.get(`shop/${name}`) === undefined));
  expect(await placements.bringUpToDate(uid, signal)).toEqual({ requeueAfterMs: 3_600_000 });
  room.now += 3_600_000;
  await placements.bringUpToDate(uid, signal);
  expect(room.placementOf('web')).toBeUndefined();
});
