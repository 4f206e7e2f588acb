import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Pod } from '../../src/kube/core-v1.ts';
import { SchedulerRoom } from '../fixtures/scheduler-room.ts';

/** Pods of one ReplicaSet under a policy with three tiers. */

let room: SchedulerRoom;
let setUid: string;
let run: (counts: Record<string, number>, annotations?: object) => Promise<string[]>;

const COST = 'controller.kubernetes.io/pod-deletion-cost';
const OWN = 'spillway.dev/deletion-cost';

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
