import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { releasedText } from '../../src/api/released.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { replicasOf } from '../../src/placement/owner-chain.ts';
import { SchedulerRoom } from '../fixtures/scheduler-room.ts';

/** Pods of one ReplicaSet under a policy with three tiers. */

let room: SchedulerRoom;
let setUid: string;
let run: (counts: Record<string, number>, annotations?: object) => Promise<string[]>;

const COST = 'controller.kubernetes.io/pod-deletion-cost';
const OWN = 'spillway.dev/deletion-cost';
const LOWEST = '-2147483648';

beforeEach(async () => {
  room = await SchedulerRoom.start(['east', 'west']);
  const overflowAffinities = [{ clusterNames: ['east'] }, { clusterNames: ['west'] }];
  room.place('p', { clusterAffinity: { clusterNames: ['local'], overflowAffinities } });
  const { set } = await room.deploy('web', 6);
  setUid = set.metadata.uid ?? '';
  run = async (counts, annotations) => await room.run(set, counts, annotations);
  await room.seen('the policy is known', () => room.process.view.policies.get('shop/p') !== undefined);
});
afterEach(async () => {
  await room.close();
});

const bringUpToDate = async (): Promise<void> =>
  await room.process.costs.bringUpToDate(setUid, new AbortController().signal);
const writes = (): number => room.api.requests('PATCH').length;
const pathOf = (pod: string): string => `/api/v1/namespaces/shop/pods/${pod}`;
const costs = (cost: string): Record<string, string> => ({ [COST]: cost, [OWN]: cost });
const costOf = (pod: string): string | undefined =>
  room.pods().find(({ metadata }) => metadata.name === pod)?.metadata.annotations?.[COST];
const ownCost = ({ metadata }: Pod): string | undefined => metadata.annotations?.[OWN];

test('the last tier goes first; the first one needs no costs', async () => {
  await run({ 'local-1': 2, east: 2, west: 2 });
  await bringUpToDate();
  expect(room.goingOrder()).toEqual(['west', 'west', 'east', 'east', 'local-1', 'local-1']);
  expect(writes()).toBe(4);
});

test('what was written is known before the caches show it', async () => {
  await run({ 'local-1': 4, east: 3 });
  await bringUpToDate();
  await bringUpToDate();
  expect(writes()).toBe(3);
  await room.seen('the caches show it', () => [...room.process.view.pods.values()].filter(ownCost).length === 3);
  await bringUpToDate();
  expect(writes()).toBe(3);
});

test('with division by room a pod more of many is about a write more, though the exact order is another one then', async () => {
  const weightPreference = { dynamicWeight: 'AvailableReplicas' };
  room.place('p', { replicaScheduling: { replicaDivisionPreference: 'Weighted', weightPreference } });
  const { policies, pods } = room.process.view;
  await room.seen('it is known', () => policies.get('shop/p')?.compiled?.placement.division.kind === 'dynamic');
  await run({ 'local-1': 40, east: 33, west: 27 });
  await bringUpToDate();
  const before = writes();
  for (const node of ['east', 'west', 'local-1', 'east', 'west']) {
    const [came = ''] = await run({ [node]: 1 });
    await room.seen('it is known', () => pods.get(`shop/${came}`) !== undefined);
    await bringUpToDate();
  }
  expect(writes() - before).toBeLessThanOrEqual(10);
});

test('costs that somebody else gave are left alone, and the others are in order among themselves', async () => {
  await run({ 'local-1': 2, east: 1, west: 1 });
  const [foreign] = await run({ east: 1 }, { [COST]: '7' });
  // Ours once, and edited by somebody else since.
  const [edited] = await run({ west: 1 }, { [COST]: '50', [OWN]: '-1000' });
  await bringUpToDate();
  await run({ west: 1 });
  await bringUpToDate();
  const costs = new Map(room.pods().map(({ metadata }) => [metadata.name, metadata.annotations?.[COST]]));
  expect([costs.get(foreign ?? ''), costs.get(edited ?? '')]).toEqual(['7', '50']);
  const others = new Set([foreign, edited]);
  const order = room
    .pods()
    .filter(({ metadata }) => !others.has(metadata.name))
    .toSorted((a, b) => Number(ownCost(a) ?? 0) - Number(ownCost(b) ?? 0));
  expect(order.map(({ spec }) => spec.nodeName)).toEqual(['west', 'west', 'east', 'local-1', 'local-1']);
  expect(room.api.requests('PATCH', `/${foreign ?? ''}`)).toEqual([]);
  expect(room.api.requests('PATCH', `/${edited ?? ''}`)).toEqual([]);
});

test('pods that are gone, or others of that name, are no failure; an API server that fails is one', async () => {
  await run({ 'local-1': 3, east: 2 });
  const answers = [
    { code: 404, reason: 'NotFound' },
    { code: 422, reason: 'Invalid', message: 'Pod "a" is invalid: metadata.uid: Invalid value: field is immutable' },
  ];
  room.api.fault = ({ method }) => (method === 'PATCH' ? answers.pop() : undefined);
  await bringUpToDate();
  expect(writes()).toBe(2);
  expect(room.pods().filter(ownCost)).toEqual([]);
  room.api.fault = ({ method }) => (method === 'PATCH' ? { code: 400, reason: 'BadRequest' } : undefined);
  await expect(bringUpToDate()).rejects.toThrow('made to fail');
  room.api.fault = undefined;
  await bringUpToDate();
  expect(room.pods().filter(ownCost)).toHaveLength(2);
});

test('what a policy of the host refuses of one pod is a failure, and the others get their costs all the same', async () => {
  await run({ 'local-1': 3, east: 3 });
  for (const code of [422, 403]) {
    const message = `ValidatingAdmissionPolicy 'theirs' denied request: only others write this (${String(code)})`;
    const answers = [{ code, reason: code === 422 ? 'Invalid' : 'Forbidden', message }];
    room.api.fault = ({ method }) => (method === 'PATCH' ? answers.pop() : undefined);
    const before = writes();
    await expect(bringUpToDate()).rejects.toThrow(`(${String(code)})`);
    // The refused one comes first again the next time.
    expect(writes() - before).toBe(code === 422 ? 3 : 1);
  }
  room.api.fault = undefined;
  await bringUpToDate();
  expect(room.pods().filter(ownCost)).toHaveLength(3);
});

test('of several refusals the first is told', async () => {
  await run({ 'local-1': 3, east: 3 });
  let asked = 0;
  room.api.fault = ({ method }) =>
    method === 'PATCH' ? { code: 422, reason: 'Invalid', message: `refused ${String((asked += 1))}` } : undefined;
  await expect(bringUpToDate()).rejects.toThrow('refused 1');
  expect(asked).toBe(3);
});

test('what would befall the next write as well ends the look: a right that is missing', async () => {
  await run({ 'local-1': 3, east: 3 });
  const message = 'pods "a" is forbidden: User "spillway" cannot patch resource "pods"';
  room.api.fault = ({ method }) => (method === 'PATCH' ? { code: 403, reason: 'Forbidden', message } : undefined);
  await expect(bringUpToDate()).rejects.toThrow('cannot patch');
  expect(writes()).toBe(1);
});

test('other news of a pod at the same moment is no reason to write twice', async () => {
  const [, east = ''] = await run({ 'local-1': 1, east: 1 });
  room.api.fault = ({ method }) => {
    if (method === 'PATCH') room.api.edit(pathOf(east), { status: { message: 'news' } });
    return undefined;
  };
  await bringUpToDate();
  expect([writes(), room.pods().filter(ownCost).length]).toEqual([1, 1]);
});

test('what somebody else wrote after the last write counts', async () => {
  const [, east = ''] = await run({ 'local-1': 1, east: 1 });
  await bringUpToDate();
  room.api.edit(pathOf(east), { metadata: { annotations: costs('5') } });
  const { pods } = room.process.view;
  await room.seen('it is known', () => pods.get(`shop/${east}`)?.metadata.annotations?.[COST] === '5');
  await bringUpToDate();
  expect(room.goingOrder()).toEqual(['east', 'local-1']);
});

describe('a pod that is to go next, as another one comes back,', () => {
  /** Both were in west when that was lost, from which pods go first. */
  let [back, waiting] = ['', ''];
  /** What came in place of the second one. */
  let instead = '';

  beforeEach(async () => {
    await replicas(2);
    [back = ''] = await run({ west: 1 }, costs('1'));
    [waiting = ''] = await run({ west: 1 }, costs('2'));
    [instead = ''] = await run({ east: 1 }, costs(LOWEST));
    await release();
  });

  async function replicas(count: number): Promise<void> {
    room.editSet('web-1', { spec: { replicas: count, selector: { matchLabels: { 'pod-template-hash': 'one' } } } });
    await room.seen('it is known', () => {
      const known = room.process.view.owners.byUid(setUid);
      return known !== undefined && replicasOf(known) === count;
    });
  }

  /** Changes the one that waits, and lets the caches catch up. */
  async function edit(patch: object): Promise<void> {
    room.api.edit(pathOf(waiting), { ...patch });
    const version = room.api.objects.get(pathOf(waiting))?.metadata.resourceVersion;
    const { pods } = room.process.view;
    await room.seen('it is known', () => pods.get(`shop/${waiting}`)?.metadata.resourceVersion === version);
  }

  const ready = (status: string): object => ({ status: { conditions: [{ type: 'Ready', status }] } });

  async function release(): Promise<void> {
    const from = { hash: 'one', replicaSet: 'web-1', uid: setUid, at: '2026-01-01T00:00:00Z', ready: 2 };
    const annotations = { 'spillway.dev/released': releasedText({ ...from, lost: true }) };
    await edit({
      metadata: { labels: { 'pod-template-hash': null }, annotations, ownerReferences: null },
      ...ready('True'),
    });
  }

  async function giveBack(): Promise<void> {
    const annotations = { 'spillway.dev/released': null };
    await edit({ metadata: { labels: { 'pod-template-hash': 'one' }, annotations } });
  }

  async function adopt(): Promise<void> {
    const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-1', uid: setUid, controller: true };
    await edit({ metadata: { ownerReferences: [owner] } });
  }

  /** Those in west go before the one in east. */
  const isInOrder = (): boolean => Number(costOf(back)) < Number(costOf(instead));

  test('has its cost until it is gone', async () => {
    await bringUpToDate();
    await giveBack();
    await bringUpToDate();
    await adopt();
    await bringUpToDate();
    expect([writes(), costOf(instead)]).toEqual([0, LOWEST]);
    room.endPods([instead]);
    await room.seen('it is gone', () => room.process.view.podsOfKey(`shop/${setUid}`).length === 2);
    await bringUpToDate();
    expect(writes()).toBe(0);
  });

  test('is not overwritten with what was decided before it had that cost', async () => {
    await edit(ready('False'));
    room.api.fault = ({ method }) => {
      if (method === 'PATCH') room.api.edit(pathOf(instead), { metadata: { annotations: costs('-5') } });
      return undefined;
    };
    await bringUpToDate();
    expect([room.api.requests('PATCH', `/${instead}`).length, costOf(instead)]).toEqual([1, '-5']);
  });

  test('has its place in the order when it does not go after all, as there is room for it', async () => {
    await giveBack();
    await adopt();
    await replicas(3);
    await bringUpToDate();
    expect(room.goingOrder()).toEqual(['west', 'west', 'east']);
  });

  test.each<[string, () => Promise<void>]>([
    ['is not Ready any more', async () => await edit(ready('False'))],
    ['ends', async () => await edit({ metadata: { deletionTimestamp: '2026-01-01T00:00:10Z' } })],
  ])('has its place in the order when the one that waits %s', async (_, happens) => {
    const ended = new AbortController();
    const running = room.process.writers.run(ended.signal);
    try {
      await room.quiet();
      expect(costOf(instead)).toBe(LOWEST);
      await happens();
      await room.seen('the costs are in order', isInOrder);
    } finally {
      ended.abort();
      await running;
    }
  });
});
