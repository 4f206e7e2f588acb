import { pino } from 'pino';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { NodeRetirement } from '../../src/manager/node-retirement.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';

let isWanted: boolean;
let remains: { pods: number; daemonPods: number };
let removing: () => Promise<boolean>;
let removed: number[];
let dropped: number[];
let told: string[];
let retirement: NodeRetirement;
let stop: AbortController;
let running: Promise<void>;

beforeEach(() => {
  vi.useFakeTimers();
  [isWanted, remains, removing] = [true, { pods: 0, daemonPods: 0 }, () => Promise.resolve(true)];
  [removed, dropped, told] = [[], [], []];
  const began = Date.now();
  const now = (): number => Date.now() - began;
  const retiree = {
    bound: { remains: () => remains, size: 0 },
    undeleted: () => ({ count: 0, first: [] }),
    creationsOpenMs: () => 0,
    removeNode: async () => {
      removed.push(now());
      return await removing();
    },
    giveUpNode: () => Promise.resolve(false),
  };
  retirement = new NodeRetirement({
    host: new MemoryApi().client('host'),
    member: 'east',
    memberPods: { hasSynced: true, indexValues: () => [].values(), byIndex: () => [] },
    isWanted: () => isWanted,
    othersWant: () => false,
    refusalOf: () => undefined,
    running: () => [['east-cpu', retiree]],
    serve: () => undefined,
    drop: () => void dropped.push(now()),
    mayWrite: () => true,
    givenUp: () => false,
    event: (_, reason) => void told.push(reason),
    logger: pino({ level: 'silent' }),
    monotonic: now,
  });
  stop = new AbortController();
  running = retirement.run(stop.signal);
});
afterEach(async () => {
  stop.abort();
  await running;
  vi.useRealTimers();
});

const pass = async (ms: number): Promise<void> => void (await vi.advanceTimersByTimeAsync(ms));
function edit(wanted: boolean): void {
  isWanted = wanted;
  retirement.specChanged();
}

it('a virtual node that is put back and taken out again has to be empty for as long as any other', async () => {
  edit(false);
  await pass(4_000);
  edit(true);
  await pass(3_600_000);
  edit(false);
  await pass(4_000);
  expect([removed, dropped]).toEqual([[], []]);
  await pass(6_000);
  expect([removed.length, dropped.length, told]).toEqual([1, 1, ['VirtualNodeRemoved']]);
});

it('also when it was put back for less than a look', async () => {
  edit(false);
  await pass(4_500);
  edit(true);
  await pass(500);
  edit(false);
  await pass(4_000);
  expect(removed).toEqual([]);
});

it('has its Node removed again, and is told of again', async () => {
  edit(false);
  remains = { pods: 1, daemonPods: 1 };
  await pass(10_000);
  remains = { pods: 0, daemonPods: 1 };
  await pass(10_000);
  expect([removed.length, dropped, told]).toEqual([1, [], ['VirtualNodeRetiring']]);
  edit(true);
  await pass(10_000);
  edit(false);
  remains = { pods: 1, daemonPods: 1 };
  await pass(10_000);
  remains = { pods: 0, daemonPods: 0 };
  await pass(10_000);
  const both = ['VirtualNodeRetiring', 'VirtualNodeRetiring', 'VirtualNodeRemoved'];
  expect([removed.length, dropped.length, told]).toEqual([2, 1, both]);
});

it('goes on to be served when it is put back while its Node is removed', async () => {
  let answer: (value: boolean) => void = () => undefined;
  removing = async () => await new Promise((resolve) => (answer = resolve));
  edit(false);
  await pass(10_000);
  expect(removed).toHaveLength(1);
  edit(true);
  answer(true);
  await pass(20_000);
  expect([dropped, told]).toEqual([[], []]);
});
