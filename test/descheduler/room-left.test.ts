import { beforeEach, describe, expect, test } from 'vitest';
import { RoomLeft } from '../../src/descheduler/room-left.ts';
import type { Pod } from '../../src/kube/core-v1.ts';

const MINUTE = 60_000;
let now = 0;
let wallAheadMs = 0;
let room: RoomLeft;
let owned: Pod[];
let released: Pod[];

const pod = (name: string, metadata: object = {}): Pod => ({
  metadata: { name, uid: name, ...metadata },
  spec: { containers: [] },
});
/** It is evicted; its grace period, in s, ends so many ms from now. */
const going = (name: string, endsInMs = 0, deletionGracePeriodSeconds = 0): Pod =>
  pod(name, { deletionTimestamp: new Date(now + endsInMs).toISOString(), deletionGracePeriodSeconds });
const look = (missing = 8): number => room.look('web', { released, owned, missing }).mayGo;
/** So many go. */
const evict = (...names: string[]): void => {
  released = released.map((one) => (names.includes(one.metadata.name) ? going(one.metadata.name) : one));
};

beforeEach(() => {
  [now, wallAheadMs] = [0, 0];
  room = new RoomLeft({ clock: () => now + wallAheadMs, monotonic: () => now });
  owned = [];
  released = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].map((name) => pod(name));
});

describe('how many pods may go so that a ReplicaSet can make others', () => {
  test('one, and the next when one came or that has had its time', () => {
    expect(look()).toBe(1);
    evict('a');
    expect(look()).toBe(0);
    now += 10 * MINUTE - 1;
    expect(look()).toBe(0);
    now += 1;
    expect(look()).toBe(1);
    evict('a', 'b');
    expect(look()).toBe(0);
    owned = [pod('x')];
    expect(look()).toBe(1);
    // It goes on to end for as long as its member does not answer.
    now += MINUTE;
    expect(look()).toBe(1);
  });

  test('as many at once as came one after the other, and one again when one was for nothing', () => {
    look();
    evict('a');
    look();
    owned = [pod('w')];
    expect(look()).toBe(1);
    evict('a', 'b');
    expect(look()).toBe(0);
    owned.push(pod('x'));
    expect(look()).toBe(2);
    // Not more than it lacks.
    expect(look(1)).toBe(1);
    evict('a', 'b', 'c', 'd');
    expect(look()).toBe(0);
    expect(room.look('web', { released, owned, missing: 8 }).open).toBe(2);
    owned.push(pod('y'));
    expect(look()).toBe(2);
    owned.push(pod('z'));
    expect(look()).toBe(4);
    evict('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h');
    expect(look()).toBe(0);
    now += 10 * MINUTE;
    expect(look()).toBe(1);
  });

  test('no more for one that comes before one goes, is given back, or was there', () => {
    owned = [pod('x')];
    look();
    owned = [pod('x'), pod('y')];
    look();
    evict('a');
    look();
    owned = [...owned, pod('b')];
    released = released.filter(({ metadata }) => metadata.name !== 'b');
    expect(look()).toBe(0);
  });

  test('it is for nothing any more, as the ReplicaSet has all that it wants', () => {
    evict('a');
    expect(look()).toBe(0);
    expect(look(0)).toBe(0);
    expect(look()).toBe(1);
  });

  test('one that is gone at once leaves its room for as long', () => {
    const [a = pod('a')] = released;
    look();
    released = released.slice(1);
    room.gone('web', a);
    expect(look()).toBe(0);
    now += 10 * MINUTE - 1;
    expect(look()).toBe(0);
    now += 1;
    expect(look()).toBe(1);
    room.forget('web');
    room.gone('web', a);
    expect(look()).toBe(1);
  });

  test.each([
    ['and is yet to be counted no more', -60 * MINUTE, 3_600, 10 * MINUTE],
    ['and a quota counts it until its grace period has passed twice', 60 * MINUTE, 3_600, 130 * MINUTE],
    ['and was long ago', -10 * MINUTE, 0, 0],
  ])('one was going when this process began, %s', (_, endsInMs, graceSeconds, forMs) => {
    released = [going('a', endsInMs, graceSeconds)];
    expect(look()).toBe(forMs === 0 ? 1 : 0);
    now += Math.max(0, forMs - 1);
    expect(look()).toBe(forMs === 0 ? 1 : 0);
    now += 1;
    expect(look()).toBe(1);
  });

  test('whatever the clock says by which one was to end', () => {
    released = [going('a', 30_000, 30)];
    wallAheadMs = -24 * 60 * MINUTE;
    expect(look()).toBe(0);
    now += 11 * MINUTE - 1;
    expect(look()).toBe(0);
    now += 1;
    expect(look()).toBe(1);
  });
});
