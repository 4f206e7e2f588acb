import { expect, test } from 'vitest';
import type { VirtualNodeCapacity } from '../../src/capacity/virtual-node-capacity.ts';
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
