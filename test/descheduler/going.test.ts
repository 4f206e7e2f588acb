import { afterEach, beforeEach, expect, test } from 'vitest';
import type { WantedMove } from '../../src/descheduler/wanted-move.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { CAUGHT_UP_MS } from '../../src/kube/reflector-timings.ts';
import { AGAINST_BUDGET } from '../fixtures/eviction-refusals.ts';
import { SchedulerRoom } from '../fixtures/scheduler-room.ts';

/** One pod is in member east, and west has room. */
let room: SchedulerRoom;
let pod: Pod;
const { signal } = new AbortController();

beforeEach(async () => {
  room = await SchedulerRoom.start(['east', 'west']);
  room.setRoom('local', 0);
  room.setRoom('west', 9);
  room.place('p', {});
  await room.seen('the policy is known', () => room.process.view.policies.get('shop/p') !== undefined);
  await room.run((await room.deploy('web', 1)).set, { east: 1 });
  const [first] = room.process.placed.inMember('east');
  if (first === undefined) throw new Error('no pod is in east');
  pod = first;
});
afterEach(async () => {
  await room.close();
});

const move = async (until: AbortSignal = signal): Promise<string> => {
  const wanted: WantedMove = {
    strategy: 'Drain',
    pod,
    from: 'east',
    recheck: () => undefined,
    cause: 'its node is drained',
    outcome: 'as it is drained',
    stays: 'and it stays',
  };
  return await room.process.mover.move(wanted, until);
};

test('a pod that is being sent is not sent by another strategy, whose answer would say nothing of the first', async () => {
  const { mover } = room.process;
  const end = new AbortController();
  room.api.fault = ({ path }) => (path.endsWith('/eviction') ? 'hang' : undefined);
  const first = move(end.signal);
  await room.seen('it is sent', () => room.evictions().length === 1);
  room.api.fault = ({ path }) => (path.endsWith('/eviction') ? AGAINST_BUDGET : undefined);
  expect(await move()).toBe('notWanted');
  expect([room.evictions().length, mover.isGoing(pod)]).toEqual([1, true]);
  end.abort();
  await expect(first).rejects.toThrow();
});

test('one that nobody answered about counts as going from then on, until caches must show what became of it', async () => {
  const { mover } = room.process;
  room.api.fault = ({ path }) => {
    if (!path.endsWith('/eviction')) return undefined;
    room.now += 30_000;
    return 'reset-after';
  };
  await move().catch(() => undefined);
  room.now += CAUGHT_UP_MS;
  expect(mover.isGoing(pod)).toBe(true);
  room.now += 1;
  expect(mover.isGoing(pod)).toBe(false);
});
