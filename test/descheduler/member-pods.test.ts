import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { TypedObject } from '../../src/placement/owner-chain.ts';
import { countedRoom } from '../fixtures/counted-room.ts';
import { SchedulerRoom } from '../fixtures/scheduler-room.ts';

/** Pods of Deployment shop/web in member east, which is lost; members west and north have room. */

let room: SchedulerRoom;
let set: TypedObject;
let names: string[];
/** When east was lost. */
const SINCE = Date.parse('2026-01-01T00:00:00Z');

beforeEach(async () => {
  room = await SchedulerRoom.start(['east', 'west', 'north']);
  ({ set } = await room.deploy('web', 4));
  roomIn('west', 100);
  roomIn('north', 0);
  roomIn('local', 0);
  room.place('p', {});
  await room.seen('the policy is known', () => room.process.view.policies.get('shop/p') !== undefined);
  for (const name of ['east', 'west', 'north']) await say(name, 'True');
  names = await room.run(set, { east: 4 });
});
afterEach(async () => {
  await room.close();
});

function roomIn(member: string, slots: number): void {
  room.capacities.set(
    member,
    countedRoom(member, () => slots),
  );
}

async function say(member: string, reachable: 'True' | 'False'): Promise<void> {
  const since = { lastTransitionTime: '2026-01-01T00:00:00Z' };
  const conditions = [
    { type: 'Ready', status: reachable, reason: 'Ready', message: '', ...since },
    { type: 'Reachable', status: reachable, reason: 'Probe', message: '', ...since },
  ];
  room.editMember(member, { status: { conditions } });
  await room.seen(`${member} is known as it is`, () =>
    room.process.placed.members().some((one) => one.name === member && one.reachable === (reachable === 'True')),
  );
}

const evictions = (): string[] => room.api.requests('POST', '/eviction').map(({ path }) => path.split('/')[6] ?? '');
const resync = async (): Promise<unknown> =>
  await room.process.members.bringUpToDate('east', new AbortController().signal);
const told = (reason: string): string[] =>
  room.events.filter((event) => event.reason === reason).map(({ about, message }) => `${about}: ${message}`);

test('nothing is moved out of a member that answers', async () => {
  room.now = SINCE + 9e9;
  expect(await resync()).toBeUndefined();
  expect(evictions()).toEqual([]);
});

test('what a former process said of the member is no reason for a moment: it may have been asked again', async () => {
  await say('east', 'False');
  room.now = SINCE + 9e9;
  expect(await resync()).toEqual({ requeueAfterMs: 5_000 });
  room.now += 14_000;
  expect(await resync()).toEqual({ requeueAfterMs: 1_000 });
  expect(evictions()).toEqual([]);
  room.now += 1_000;
  await resync();
  expect(evictions()).toHaveLength(4);
});

describe('lost', () => {
  beforeEach(async () => {
    await say('east', 'False');
    room.now = SINCE;
    await resync();
  });

  test('nothing is moved before its time, and all then, as the version that was looked at', async () => {
    room.now = SINCE + 299_000;
    expect(await resync()).toEqual({ requeueAfterMs: 1_000 });
    expect(evictions()).toEqual([]);
    room.now = SINCE + 300_000;
    await resync();
    expect(evictions().toSorted()).toEqual(names.toSorted());
    for (const { body } of room.api.requests('POST', '/eviction')) {
      const version = expect.stringMatching(/^\d+$/) as string;
      expect(body).toMatchObject({
        deleteOptions: { preconditions: { uid: expect.anything() as string, resourceVersion: version } },
      });
    }
    expect(told('PodOfLostMemberReplaced')).toHaveLength(8);
    expect(told('PodOfLostMemberReplaced')).toContainEqual(
      expect.stringMatching(
        /^Deployment web: pod web-1-1: member east has not answered since 2026-01-01T00:00:00Z; it was evicted, so that ReplicaSet web-1 /,
      ),
    );
    await resync();
    expect(evictions()).toHaveLength(4);
  });

  test('no more are moved than have room elsewhere, those on their way counted in', async () => {
    roomIn('west', 2);
    room.now = SINCE + 300_000;
    await resync();
    expect(evictions()).toHaveLength(2);
    expect(told('PodOfLostMemberHeld')).toEqual([
      expect.stringContaining('the room elsewhere is for pods that were moved before it'),
    ]);
    // One of those that come instead has its place, and so has less room left.
    roomIn('west', 2);
    const [next] = await room.run(set, { west: 1 });
    for (const one of room.pods()) if (one.metadata.name === next) room.process.mover.underWay.came(one);
    room.now += 15_000;
    await resync();
    expect(evictions()).toHaveLength(3);
  });

  test('a member that answers again in the middle keeps the others', async () => {
    room.now = SINCE + 300_000;
    room.api.fault = ({ method, path }) => {
      if (method === 'POST' && path.endsWith('/eviction')) {
        room.editMember('east', { status: { conditions: [] } });
        return { code: 429, reason: 'TooManyRequests' };
      }
      return undefined;
    };
    await resync();
    await room.seen('it is known', () => room.process.placed.members().every(({ reachable }) => reachable !== false));
    room.api.fault = undefined;
    room.now += 60_000;
    expect(await resync()).toBeUndefined();
    expect(evictions()).toHaveLength(1);
  });

  test('a disruption budget holds, and is asked again', async () => {
    room.now = SINCE + 300_000;
    room.api.fault = ({ path }) => (path.endsWith('/eviction') ? { code: 429, reason: 'TooManyRequests' } : undefined);
    await resync();
    expect(evictions()).toHaveLength(1);
    expect(told('PodOfLostMemberHeld')).toEqual([
      expect.stringContaining('its disruption budget allows no eviction now'),
    ]);
    await resync();
    room.api.fault = undefined;
    room.now += 5_000;
    await resync();
    expect(evictions().length).toBeGreaterThanOrEqual(5);
  });

  test('nothing is moved while most members are lost; a taint of the administrator moves them all the same', async () => {
    await say('north', 'False');
    room.now = SINCE + 9e9;
    expect(await resync()).toBeUndefined();
    expect(evictions()).toEqual([]);
    room.editMember('east', { spec: { clusterTaints: [{ key: 'gone', effect: 'NoExecute' }] } });
    await room.seen('it is known', () =>
      room.process.placed.members().some(({ clusterTaints }) => clusterTaints.length > 0),
    );
    await resync();
    expect(evictions().toSorted()).toEqual(names.toSorted());
    expect(told('TaintedPodMoved')[0]).toMatch(/member east has taints that it does not tolerate \(gone:NoExecute\)/);
  });
});
