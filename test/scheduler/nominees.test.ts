import { expect, test } from 'vitest';
import type { VirtualNodeCapacity } from '../../src/capacity/virtual-node-capacity.ts';
import type { FitRequest } from '../../src/capacity/fit-request.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { Nominees } from '../../src/scheduler/nominees.ts';
import { Reservations } from '../../src/scheduler/reservations.ts';
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
  const reservations = new Reservations(capacityOf, monotonic);
  const shown = new Set<string>();
  const nominees = new Nominees({
    capacityOf,
    reservations,
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
  const reservations = new Reservations(capacityOf, monotonic);
  const options = { capacityOf, reservations, isVirtual: () => true, podsOn: () => [], nominationOf: () => 'east' };
  new Nominees({ ...options, monotonic }).hold(pod('a', 'east'));
  reservations.holdAlso('gang', 'a', 60_000);
  expect([reservations.gangsBelow(9), reservations.gangsBelow(10)]).toEqual([[], ['a']]);
});

test('gangs of so many pods that a question takes long are lifted for a fifth of the time only', () => {
  let now = 1_000;
  const capacityOf = (): VirtualNodeCapacity => countedRoom('east', () => 1);
  const monotonic = (): number => now;
  const reservations = new Reservations(capacityOf, monotonic);
  const options = { capacityOf, reservations, isVirtual: () => true, podsOn: () => [], nominationOf: () => undefined };
  const nominees = new Nominees({ ...options, monotonic });
  const ask = (priority: number): string | undefined =>
    nominees.whileGangsAside({ ...pod('a'), spec: { containers: [], priority } }, () => {
      now += 100;
      return 'asked';
    });
  expect(ask(9)).toBeUndefined();
  const request = { key: 'x' } as FitRequest;
  reservations.hold('gang', 'g', { node: 'east', request, priority: 9 }, 60_000);
  reservations.hold('told', 't', { node: 'east', request, priority: 0 }, 60_000);
  expect(ask(9)).toBeUndefined();
  expect(ask(10)).toBe('asked');
  now += 399;
  expect(ask(10)).toBeUndefined();
  now += 1;
  expect(ask(10)).toBe('asked');
});
