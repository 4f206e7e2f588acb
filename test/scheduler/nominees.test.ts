import { beforeEach, describe, expect, test, vi } from 'vitest';
import type { VirtualNodeCapacity } from '../../src/capacity/virtual-node-capacity.ts';
import type { FitRequest } from '../../src/capacity/fit-request.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { Nominees } from '../../src/scheduler/nominees.ts';
import { HeldRooms } from '../../src/scheduler/held-rooms.ts';
import { countedRoom } from '../fixtures/counted-room.ts';

function pod(name: string, nominatedNodeName?: string): Pod {
  const status = nominatedNodeName === undefined ? {} : { status: { nominatedNodeName } };
  return { metadata: { name, namespace: 'shop', uid: name }, spec: { containers: [], priority: 9 }, ...status };
}

test('pods that the watch never shows to be nominated take nothing from those that are, however many', () => {
  let now = 0;
  const reserved = new Map<string, string>();
  const east = countedRoom('east', () => 1, reserved);
  const capacityOf = (): VirtualNodeCapacity => east;
  const monotonic = (): number => now;
  const heldRooms = new HeldRooms(capacityOf, monotonic);
  const shown = new Set<string>();
  const nominees = new Nominees({
    capacityOf,
    heldRooms,
    isVirtual: () => true,
    podsOn: () => [],
    nominationOf: ({ metadata }) => (shown.has(metadata.name) ? 'east' : undefined),
    monotonic,
  });
  for (let index = 0; index < 2_000; index += 1) nominees.hold(pod(`never-${String(index)}`, 'east'));
  now += 10_000;
  shown.add('a');
  nominees.hold(pod('a', 'east'));
  expect([...reserved.keys()]).toEqual(['a']);
  now += 60_000;
  nominees.whileAside(pod('b'), () => undefined);
  expect([...reserved.keys()]).toEqual(['a']);
  // The scheduler knew of it before the watch did.
  nominees.hold(pod('early', 'east'));
  nominees.podSeen(pod('early', 'east'));
  now += 60_000;
  nominees.whileAside(pod('b'), () => undefined);
  expect([...reserved.keys()]).toEqual(['a', 'early']);
});

test('a nominated pod of a gang holds its room for the gang with its own priority', () => {
  const capacityOf = (): VirtualNodeCapacity => countedRoom('east', () => 1);
  const monotonic = (): number => 0;
  const heldRooms = new HeldRooms(capacityOf, monotonic);
  const options = { capacityOf, heldRooms, isVirtual: () => true, podsOn: () => [], nominationOf: () => 'east' };
  new Nominees({ ...options, monotonic }).hold(pod('a', 'east'));
  heldRooms.holdAlso('gang', 'a', 60_000);
  expect([heldRooms.gangsBelow(9), heldRooms.gangsBelow(10)]).toEqual([[], ['a']]);
});

test('victims are named for the pod that was asked about last and lives, for a moment, and for none that comes after the asking one', () => {
  let now = 0;
  const capacityOf = (): VirtualNodeCapacity => countedRoom('east', () => 1);
  const monotonic = (): number => now;
  const nominees = new Nominees({
    capacityOf,
    heldRooms: new HeldRooms(capacityOf, monotonic),
    isVirtual: () => true,
    podsOn: () => [],
    nominationOf: () => undefined,
    monotonic,
  });
  const named = (asking: Pod): string[] => ['v1', 'v2', 'v3'].filter(nominees.namedForOthers(asking));
  const higher = { ...pod('higher'), spec: { containers: [], priority: 10 } };
  nominees.asked(pod('a'), new Map([['east', ['v1', 'v2']]]));
  nominees.asked(pod('b'), new Map([['east', ['v2']]]));
  expect([named(pod('c')), named(pod('a')), named(higher)]).toEqual([['v1', 'v2'], ['v2'], []]);
  nominees.asked(pod('a'), new Map([['west', ['v3']]]));
  expect(named(pod('c'))).toEqual(['v2', 'v3']);
  nominees.gone('b');
  expect(named(pod('c'))).toEqual(['v3']);
  for (let index = 0; index < 2_000; index += 1) nominees.asked(pod(`other-${String(index)}`), new Map());
  expect(named(pod('c'))).toEqual([]);
  nominees.asked(pod('a'), new Map([['west', ['v3']]]));
  now += 10_001;
  expect(named(pod('c'))).toEqual([]);
});

test('where no scheduler heard of the victims that were named last, those that one heard of before count again', () => {
  const capacityOf = (): VirtualNodeCapacity => countedRoom('east', () => 1);
  const monotonic = (): number => 0;
  const heldRooms = new HeldRooms(capacityOf, monotonic);
  const options = { capacityOf, heldRooms, isVirtual: () => true, podsOn: () => [], nominationOf: () => undefined };
  const nominees = new Nominees({ ...options, monotonic });
  const named = (): string[] => ['v1', 'v2', 'v3'].filter(nominees.namedForOthers(pod('c')));
  const name = (victim: string): (() => void) => nominees.asked(pod('a'), new Map([['east', [victim]]]));
  const takeBackFirst = name('v1');
  const takeBackSecond = name('v2');
  takeBackSecond();
  expect(named()).toEqual(['v1']);
  const takeBackThird = name('v2');
  const takeBackLast = name('v3');
  takeBackThird();
  expect(named()).toEqual(['v3']);
  takeBackLast();
  expect(named()).toEqual(['v1']);
  takeBackFirst();
  expect(named()).toEqual([]);
  const takeBackOfGone = name('v1');
  nominees.gone('a');
  takeBackOfGone();
  expect(named()).toEqual([]);
});

describe('gangs that hold room for so many pods that to lift them takes long', () => {
  let now: number;
  let heldRooms: HeldRooms;
  let nominees: Nominees;
  const request = { key: 'x' } as FitRequest;
  const asking = (priority: number, name = 'a'): Pod => ({ ...pod(name), spec: { containers: [], priority } });
  const ask = (priority: number): string | undefined =>
    nominees.whileGangsAside(asking(priority), () => {
      // However dear the question itself is, it is asked with or without them.
      now += 1_000;
      return 'asked';
    });

  beforeEach(() => {
    now = 1_000;
    const lifted = new Set<string>();
    const room = {
      ...countedRoom('east', () => 1),
      lift: (uid: string) => {
        now += 100;
        lifted.add(uid);
        return true;
      },
      putBack: (uid: string) => lifted.delete(uid),
    };
    const capacityOf = (): VirtualNodeCapacity => room;
    const monotonic = (): number => now;
    heldRooms = new HeldRooms(capacityOf, monotonic);
    const options = {
      capacityOf,
      heldRooms,
      isVirtual: () => true,
      podsOn: () => [],
      nominationOf: () => undefined,
    };
    nominees = new Nominees({ ...options, monotonic });
    heldRooms.hold('told', 't', { node: 'east', request, priority: 0 }, 60_000);
    expect(ask(9)).toBeUndefined();
    heldRooms.hold('gang', 'g', { node: 'east', request, priority: 9 }, 60_000);
  });

  test('are lifted for a fifth of the time only', () => {
    expect(ask(9)).toBeUndefined();
    expect(ask(10)).toBe('asked');
    now += 399;
    expect(ask(10)).toBeUndefined();
    now += 1;
    expect(ask(10)).toBe('asked');
  });

  test('are lifted whenever others may be evicted, which a scheduler asks seldom', () => {
    expect(ask(10)).toBe('asked');
    const lift = vi.spyOn(heldRooms, 'whileLifted');
    expect(nominees.whileAllAside(asking(10), () => 'asked')).toBe('asked');
    expect(lift.mock.calls[0]?.[0]).toContain('g');
  });

  test('are worth another look as soon as they may be lifted, once, for pods that may have what they hold', () => {
    expect(nominees.restOfGangs(asking(10, 'b'))).toBeUndefined();
    expect(ask(10)).toBe('asked');
    now += 100;
    expect(nominees.restOfGangs(asking(10, 'b'))).toBe(300);
    expect(nominees.restOfGangs(asking(9, 'b'))).toBeUndefined();
    // It had its turn.
    expect(nominees.restOfGangs(asking(10))).toBeUndefined();
    now += 300;
    expect(nominees.restOfGangs(asking(10, 'b'))).toBeUndefined();
  });
});
