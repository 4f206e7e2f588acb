import { pino } from 'pino';
import { Registry } from 'prom-client';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { gangEvictions } from '../../src/manager/gang-evictions.ts';
import { movesMetrics } from '../../src/descheduler/moves-metrics.ts';
import { MovesStop } from '../../src/descheduler/moves-stop.ts';
import { ToldHalts } from '../../src/descheduler/told-halts.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import type { Lease } from '../../src/kube/lease.ts';
import type { TypedObject } from '../../src/placement/owner-chain.ts';
import { AGAINST_BUDGET } from '../fixtures/eviction-refusals.ts';
import { SchedulerRoom } from '../fixtures/scheduler-room.ts';

const PODS = '/api/v1/namespaces/shop/pods/';
const ANNOTATION = 'spillway.dev/moves-stopped';
const STOPPED = 'all moves are stopped (annotation spillway.dev/moves-stopped of Lease spillway-descheduler: INC-7)';

function lease(said?: string): Lease {
  return {
    metadata: { name: 'spillway-descheduler', uid: 'l', annotations: said === undefined ? {} : { [ANNOTATION]: said } },
  };
}

describe('what the Lease says', () => {
  let now: number;
  let stop: MovesStop;
  let told: (string | undefined)[];
  beforeEach(() => {
    now = 0;
    stop = new MovesStop(() => now);
    told = [];
    stop.on(() => told.push(stop.said));
  });

  test('counts as long as the annotation is there, whatever its value, and each change is told once', () => {
    stop.seen(lease());
    expect([stop.why, stop.said]).toEqual([undefined, undefined]);
    for (const said of ['INC-7', 'INC-7', '', 'false']) stop.seen(lease(said));
    expect(stop.why).toContain('all moves are stopped (');
    stop.seen(lease('INC-7'));
    expect(stop.why).toBe(STOPPED);
    stop.seen(lease());
    expect(stop.why).toBeUndefined();
    expect(told).toEqual(['INC-7', '', 'false', 'INC-7', undefined]);
  });

  test('a stop outlasts that it cannot be read; that there is none is believed for as long as nobody else can hold the Lease', () => {
    expect(stop.why).toContain('it is not known whether all moves are stopped');
    stop.seen(lease());
    now += 14_999;
    expect(stop.why).toBeUndefined();
    now += 1;
    expect([stop.why, stop.said]).toEqual([expect.stringContaining('it is not known'), undefined]);
    stop.seen(lease('INC-7'));
    now += 9e9;
    expect(stop.why).toBe(STOPPED);
  });

  test('is one short line of plain text', () => {
    stop.seen(lease(`a\u001b[31m\nb${'c'.repeat(9_000)}`));
    expect(stop.why).not.toContain('\u001B');
    expect(stop.why).not.toContain('\n');
    expect((stop.why ?? '').length).toBeLessThan(400);
  });
});

describe('moves', () => {
  let room: SchedulerRoom;
  let set: TypedObject;
  let names: string[];
  const { signal } = new AbortController();

  beforeEach(async () => {
    room = await SchedulerRoom.start(['east', 'west']);
    ({ set } = await room.deploy('web', 4));
    room.setRoom('west', 100);
    room.setRoom('local', 0);
    room.place('p', {});
    await room.seen('the policy is known', () => room.process.view.policies.get('shop/p') !== undefined);
    names = await room.run(set, { east: 4 });
  });
  afterEach(async () => {
    await room.close();
  });

  async function drain(): Promise<void> {
    const taints = [{ key: 'spillway.dev/drain', effect: 'NoSchedule' }];
    room.api.edit('/api/v1/nodes/east', { spec: { taints } });
    await room.seen('it is known', () => room.process.placed.members().some(({ drained }) => drained.has('east')));
  }
  const look = async (): Promise<unknown> => await room.process.members.bringUpToDate('east', signal);
  const ready = (pods: readonly string[]): void => {
    const status = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
    for (const name of pods) room.api.edit(`${PODS}${name}`, { status });
  };
  const released = (): string[] =>
    room.api
      .requests('PATCH')
      .filter(({ body }) => JSON.stringify(body).includes('spillway.dev/released'))
      .map(({ path }) => path.slice(PODS.length));

  test('none begins while they are stopped, without a request; one pod of the workload says why; then they go on', async () => {
    room.stopMoves('INC-7');
    await drain();
    const { length } = room.api.seen;
    expect(await look()).toEqual({ requeueAfterMs: 5_000 });
    // A change of the member wakes it in between.
    room.now += 2_000;
    expect(await look()).toEqual({ requeueAfterMs: 3_000 });
    room.now += 60_000;
    await look();
    expect(room.api.seen).toHaveLength(length);
    const held = room.told('DrainedPodHeld');
    expect(held).toHaveLength(1);
    expect(held[0]).toContain(STOPPED);
    room.stopMoves(undefined);
    room.now += 5_000;
    await look();
    expect(room.evictions()).toHaveLength(4);
  });

  test('many workloads are worked out once, each of them with its word', async () => {
    for (let index = 0; index < 60; index += 1)
      await room.run((await room.deploy(`other-${String(index)}`, 1)).set, { east: 1 });
    room.stopMoves('INC-7');
    await drain();
    expect(await look()).toEqual({ requeueAfterMs: 5_000 });
    expect(room.told('DrainedPodHeld')).toHaveLength(61);
    // Those of whom it was not known are not left out when they may go.
    room.stopMoves(undefined);
    room.now += 5_000;
    await look();
    expect(room.evictions().length).toBeGreaterThan(0);
  });

  test('a stop that comes while the pod is read for the last time counts', async () => {
    await drain();
    let reads = 0;
    room.api.fault = ({ method, path }) => {
      if (method !== 'GET' || !path.startsWith(PODS)) return undefined;
      reads += 1;
      room.stopMoves('INC-7');
      return undefined;
    };
    await look();
    expect([reads, room.evictions()]).toEqual([1, []]);
    expect(room.told('DrainedPodHeld')).toHaveLength(1);
  });

  test('a pod of a gang that gives up stays, too', async () => {
    room.stopMoves('INC-7');
    const [pod] = room.pods() as [Pod];
    const gangs = gangEvictions(room.process.mover, room.stop);
    expect(await gangs.giveBack(pod, 'east', () => true, signal)).toBe('stopped');
    expect(room.evictions()).toEqual([]);
    expect(room.told('GangPodHeld')[0]).toContain(STOPPED);
    room.stopMoves(undefined);
    room.now += 5_000;
    expect(await gangs.giveBack(pod, 'east', () => false, signal)).toBe('notWanted');
    room.now += 5_000;
    room.api.fault = ({ path }) => (path.endsWith('/eviction') ? AGAINST_BUDGET : undefined);
    expect(await gangs.giveBack(pod, 'east', () => true, signal)).toBe('controllerHeld');
    room.api.fault = undefined;
    room.now += 5_000;
    expect(await gangs.giveBack(pod, 'east', () => true, signal)).toBe('gone');
  });

  test('a move that has begun is finished by whoever has the Lease then, and no other one begins', async () => {
    ready(names);
    room.editSet('web-1', { spec: { replicas: 4, selector: { matchLabels: { 'pod-template-hash': 'one' } } } });
    const known = (): boolean => room.pods().every((pod) => room.process.placed.surgingSetOf(pod) !== undefined);
    await room.seen('the ReplicaSet is known', known);
    await drain();
    await look();
    expect(released()).toHaveLength(1);
    // Its ReplicaSet lets go of it.
    room.api.edit(`${PODS}${released()[0] ?? ''}`, { metadata: { ownerReferences: null } });
    room.stopMoves('INC-7');
    await room.restart();
    room.letWrite();
    ready(await room.run(set, { west: 1 }));
    room.editSet('web-1', { status: { readyReplicas: 4 } });
    await vi.waitFor(() => expect(room.evictions()).toEqual(released()), { timeout: 10_000 });
    await room.quiet();
    expect([released().length, room.evictions().length]).toEqual([1, 1]);
    expect(room.told('DrainedPodHeld')[0]).toContain(STOPPED);
    room.stopMoves(undefined);
    room.now += 5_000;
    await vi.waitFor(() => expect(released()).toHaveLength(2), { timeout: 10_000 });
  });

  test('each replica has it in its metric, whoever moves pods', async () => {
    const stopped = async (): Promise<unknown> => (await room.process.moves.stopped.get()).values[0]?.value;
    room.stopMoves('INC-7');
    const ended = new AbortController();
    const watching = room.process.descheduler.watch(ended.signal);
    expect(await stopped()).toBe(1);
    // It held the Lease for a while.
    const held = new AbortController();
    const moving = room.process.descheduler.run(held.signal);
    await vi.waitFor(() => expect(room.told('MovesStopped')).toHaveLength(1), { timeout: 10_000 });
    held.abort();
    await moving;
    expect(await stopped()).toBe(1);
    room.stopMoves(undefined);
    expect(await stopped()).toBe(0);
    ended.abort();
    await watching;
  });

  test('the replica that moves pods says on the Lease that they are stopped, and that they go on', async () => {
    room.letWrite();
    room.stopMoves('INC-7');
    await vi.waitFor(() => expect(room.told('MovesStopped')).not.toEqual([]), { timeout: 10_000 });
    expect(room.told('MovesStopped')).toEqual([expect.stringContaining(`Lease spillway-descheduler: ${STOPPED}`)]);
    expect(room.told('MovesStopped')[0]).toContain(
      `kubectl annotate lease spillway-descheduler -n spillway-system ${ANNOTATION}-`,
    );
    room.stopMoves(undefined);
    await vi.waitFor(() => expect(room.told('MovesResumed')).toHaveLength(1), { timeout: 10_000 });
  });
});

test('a stop that lasts is told anew every twenty minutes, with other words at once, and by the replica that takes over', () => {
  let now = 0;
  const said: string[] = [];
  const stop = new MovesStop(() => now);
  const told = new ToldHalts({
    placed: { members: () => [] },
    stop,
    namespace: 'spillway-system',
    events: {
      record: (about, type, reason) =>
        said.push(`${about.namespace ?? ''}/${about.name} ${about.uid ?? ''} ${type} ${reason}`),
    },
    metrics: movesMetrics(new Registry()),
    logger: pino({ level: 'silent' }),
    monotonic: () => now,
  });
  const event = 'spillway-system/spillway-descheduler l Warning MovesStopped';
  stop.seen(lease());
  expect(told.look()).toBeUndefined();
  stop.seen(lease('INC-7'));
  expect(told.look()).toEqual({ requeueAfterMs: 60_000 });
  now += 19 * 60_000;
  told.look();
  expect(said).toEqual([event]);
  now += 60_000;
  told.look();
  expect(said).toEqual([event, event]);
  stop.seen(lease('INC-8'));
  told.look();
  expect(said).toHaveLength(3);
  told.end();
  told.look();
  expect(said).toHaveLength(4);
  told.end();
  stop.seen(lease());
  told.look();
  expect(said).toHaveLength(4);
});
