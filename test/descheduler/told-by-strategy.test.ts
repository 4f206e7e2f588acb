import { afterEach, beforeEach, expect, test } from 'vitest';
import { STRATEGIES, type Strategy } from '../../src/descheduler/strategies.ts';
import type { Recheck, WantedMove } from '../../src/descheduler/wanted-move.ts';
import { ownerKeyOf } from '../../src/kube/owner-references.ts';
import type { TypedObject } from '../../src/placement/owner-chain.ts';
import { SchedulerRoom } from '../fixtures/scheduler-room.ts';

/** Literally, as alerts and people look for these: reason of the Event of a pod that is moved, and of one that stays. */
const TOLD: Readonly<Record<Strategy, readonly [string, string]>> = {
  RefusedInMember: ['RefusedPodReplaced', 'RefusedPodStays'],
  UnschedulableInMember: ['UnschedulablePodReplaced', 'UnschedulablePodStays'],
  UnhealthyInMember: ['UnhealthyPodReplaced', 'UnhealthyPodStays'],
  MemberLost: ['PodOfLostMemberReplaced', 'PodOfLostMemberHeld'],
  OutOfService: ['OutOfServicePodReplaced', 'OutOfServicePodHeld'],
  TaintNoExecute: ['TaintedPodMoved', 'TaintedPodHeld'],
  Drain: ['DrainedPodMoved', 'DrainedPodHeld'],
  Repatriate: ['PodRepatriated', 'PodNotRepatriated'],
  DivisionDrift: ['PodRedivided', 'PodNotRedivided'],
  SpreadViolation: ['PodSpread', 'PodNotSpread'],
  PolicyChanged: ['PodMovedByPolicy', 'PodNotMovedByPolicy'],
  Rebalance: ['PodRebalanced', 'PodNotRebalanced'],
  Migrate: ['PodMigrated', 'PodNotMigrated'],
  GangTimedOut: ['GangPodGivenBack', 'GangPodHeld'],
};

const { signal } = new AbortController();
let room: SchedulerRoom;
let deployment: TypedObject;
let name = '';

beforeEach(async () => {
  room = await SchedulerRoom.start(['east', 'west']);
  const made = await room.deploy('web', 1);
  ({ deployment } = made);
  room.setRoom('west', 1);
  room.setRoom('local', 0);
  room.place('p', {});
  [name = ''] = await room.run(made.set, { east: 1 });
  await room.seen('the policy is known', () => room.process.view.policies.get('shop/p') !== undefined);
  await room.process.placements.bringUpToDate(deployment.metadata.uid ?? '', signal);
  await room.seen('it is stored', () => room.process.store.get(deployment) !== undefined);
});
afterEach(async () => {
  await room.close();
});

/** The strategy wants the pod elsewhere, and says so. */
async function move(strategy: Strategy, recheck: Recheck): Promise<void> {
  const [pod] = room.pods();
  if (pod === undefined) throw new Error('there is no pod');
  const words = { cause: 'there is a cause', outcome: 'which goes elsewhere', stays: 'it is to go' };
  const wanted: WantedMove = { strategy, pod, from: 'east', recheck: () => recheck, ...words };
  await room.process.mover.move(wanted, signal);
}

/** The counters, as `/metrics` has them. */
async function counted(): Promise<unknown[]> {
  const { name: metric, values } = await room.process.moves.moves.get();
  return values.map(({ labels, value }) => [metric, labels, value]);
}

test('each strategy has words of its own', () => {
  const all = Object.values(TOLD).flat();
  expect(new Set(all).size).toBe(all.length);
  expect(Object.keys(STRATEGIES)).toEqual(Object.keys(TOLD));
});

test.each(Object.entries(TOLD) as [Strategy, readonly [string, string]][])(
  '%s says that a pod stays, and that it is moved, on pod and workload, counts both, and writes the move down',
  async (strategy, [moved, stays]) => {
    const counter = 'spillway_descheduler_moves_total';
    const held = [counter, { strategy, member: 'east', outcome: 'held' }, 1];
    const { records } = room.process;
    await move(strategy, { why: 'it is busy' });
    expect(room.evictions()).toEqual([]);
    expect(room.events).toEqual([
      { about: `Pod ${name}`, type: 'Warning', reason: stays, message: 'it is to go: it is busy' },
    ]);
    expect(await counted()).toEqual([held]);
    await records.bringUpToDate(ownerKeyOf(deployment), signal);
    expect(room.placementOf('web')?.status?.moves ?? []).toEqual([]);

    await move(strategy, undefined);
    expect(room.evictions()).toEqual([name]);
    expect(room.events.slice(1)).toEqual([
      { about: `Pod ${name}`, type: 'Normal', reason: moved, message: expect.stringMatching(/^there is a cause; /) },
      {
        about: 'Deployment web',
        type: 'Normal',
        reason: moved,
        message: expect.stringMatching(new RegExp(`^pod ${name}: there is a cause; .*, which goes elsewhere$`)),
      },
    ]);
    expect(await counted()).toEqual([held, [counter, { strategy, member: 'east', outcome: 'moved' }, 1]]);
    await records.bringUpToDate(ownerKeyOf(deployment), signal);
    expect(room.placementOf('web')?.status?.moves).toMatchObject([
      { strategy, from: 'east', count: 1, pod: name, message: 'there is a cause' },
    ]);
  },
);
