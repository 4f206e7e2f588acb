import { expect, test } from 'vitest';
import type { FitRequest } from '../../src/capacity/fit-request.ts';
import type { VirtualNodeCapacity } from '../../src/capacity/virtual-node-capacity.ts';
import { Reservations } from '../../src/scheduler/reservations.ts';

function room() {
  const kept = new Map<string, FitRequest>();
  const capacity = {
    reserve: (uid: string, request: FitRequest) => void kept.set(uid, request),
    release: (uid: string) => void kept.delete(uid),
  } as VirtualNodeCapacity;
  return { kept, capacity };
}

test('what is set aside moves to the room that takes the place of another, for the time that is left', () => {
  let now = 0;
  const [observed, acting] = [room(), room()];
  let current: VirtualNodeCapacity | undefined = observed.capacity;
  const reservations = new Reservations(
    (name) => (name === 'east' ? current : undefined),
    () => now,
  );
  const request = { key: 'a' } as FitRequest;
  reservations.reserve('a', 'east', request, 10_000);
  reservations.reserve('b', 'east', request, 60_000);
  expect([...observed.kept.keys()]).toEqual(['a', 'b']);
  current = acting.capacity;
  now = 9_000;
  reservations.expire();
  expect(observed.kept.size).toBe(0);
  expect([...acting.kept]).toEqual([
    ['a', request],
    ['b', request],
  ]);
  now = 10_000;
  reservations.expire();
  expect([...acting.kept.keys()]).toEqual(['b']);
  // For a moment there is none at all.
  current = undefined;
  reservations.expire();
  expect(acting.kept.size).toBe(0);
  current = observed.capacity;
  expect(reservations.has('b')).toBe(true);
  expect([...observed.kept.keys()]).toEqual(['b']);
});
