import { beforeEach, describe, expect, test } from 'vitest';
import type { FitRequest } from '../../src/capacity/fit-request.ts';
import type { VirtualNodeCapacity } from '../../src/capacity/virtual-node-capacity.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { HeldRooms } from '../../src/scheduler/held-rooms.ts';

function room() {
  const kept = new Map<string, FitRequest>();
  const aside = new Map<string, FitRequest>();
  const capacity = {
    reserve: (uid: string, request: FitRequest) => {
      aside.delete(uid);
      kept.set(uid, request);
    },
    release: (uid: string) => {
      aside.delete(uid);
      kept.delete(uid);
    },
    lift: (uid: string) => {
      const request = kept.get(uid);
      if (request !== undefined) aside.set(uid, request);
      return kept.delete(uid);
    },
    putBack: (uid: string) => {
      const request = aside.get(uid);
      if (request !== undefined) kept.set(uid, request);
      aside.delete(uid);
    },
  } as VirtualNodeCapacity;
  return { kept, capacity };
}

const request = { key: 'a' } as FitRequest;
let now: number;
let rooms: Map<string, ReturnType<typeof room>>;
let heldRooms: HeldRooms;
const keptIn = (node: string): string[] => [...(rooms.get(node)?.kept.keys() ?? [])];

beforeEach(() => {
  now = 0;
  rooms = new Map(['east', 'west'].map((name) => [name, room()]));
  heldRooms = new HeldRooms(
    (name) => rooms.get(name)?.capacity,
    () => now,
  );
});

test('what is set aside moves to the room that takes the place of another, for the time that is left', () => {
  const [observed, acting] = [rooms.get('east'), room()];
  heldRooms.hold('told', 'a', { node: 'east', request }, 10_000);
  heldRooms.hold('told', 'b', { node: 'east', request }, 60_000);
  expect(keptIn('east')).toEqual(['a', 'b']);
  rooms.set('east', acting);
  now = 9_000;
  heldRooms.expire();
  expect(observed?.kept.size).toBe(0);
  expect(keptIn('east')).toEqual(['a', 'b']);
  now = 10_000;
  heldRooms.expire();
  expect(keptIn('east')).toEqual(['b']);
  // For a moment there is none at all.
  rooms.delete('east');
  heldRooms.expire();
  expect(acting.kept.size).toBe(0);
  rooms.set('east', acting);
  expect(heldRooms.heldFor('told', 'b')).toEqual({ node: 'east', forMs: 50_000 });
  expect(keptIn('east')).toEqual(['b']);
});

describe('what room is set aside for', () => {
  test('ends by itself: the room stays for the other purposes', () => {
    heldRooms.hold('gang', 'a', { node: 'east', request }, 60_000);
    heldRooms.hold('told', 'a', { node: 'east', request }, 10_000);
    heldRooms.release('a', 'told');
    expect(keptIn('east')).toEqual(['a']);
    heldRooms.hold('told', 'a', { node: 'east', request }, 10_000);
    now = 10_000;
    heldRooms.expire();
    expect(keptIn('east')).toEqual(['a']);
    expect(heldRooms.heldFor('told', 'a')).toBeUndefined();
    heldRooms.release('a', 'nomination');
    expect(keptIn('east')).toEqual(['a']);
    heldRooms.release('a', 'gang');
    expect(keptIn('east')).toEqual([]);
    heldRooms.hold('gang', 'a', { node: 'east', request }, 60_000);
    heldRooms.hold('nomination', 'a', { node: 'east', request }, 60_000);
    heldRooms.release('a');
    expect(keptIn('east')).toEqual([]);
  });

  test('takes room once: at the place that was told, and where others leave for the pod when it is not told any other', () => {
    heldRooms.hold('nomination', 'a', { node: 'east', request }, 60_000);
    heldRooms.hold('told', 'a', { node: 'west', request }, 10_000);
    expect([keptIn('east'), keptIn('west')]).toEqual([[], ['a']]);
    heldRooms.release('a', 'told');
    expect([keptIn('east'), keptIn('west')]).toEqual([['a'], []]);
  });

  test('a gang has its room on whichever node a scheduler was told', () => {
    heldRooms.hold('gang', 'a', { node: 'east', request }, 60_000);
    heldRooms.hold('told', 'a', { node: 'west', request }, 10_000);
    heldRooms.release('a', 'told');
    expect([keptIn('east'), keptIn('west')]).toEqual([[], ['a']]);
    expect(heldRooms.heldFor('gang', 'a')).toEqual({ node: 'west', forMs: 60_000 });
  });

  test('is added to what is held, and lasts as long as anybody said', () => {
    expect(heldRooms.holdAlso('gang', 'a', 60_000)).toBe(false);
    heldRooms.hold('told', 'a', { node: 'east', request }, 10_000);
    expect(heldRooms.holdAlso('gang', 'a', 60_000)).toBe(true);
    now = 50_000;
    expect(keptIn('east')).toEqual(['a']);
    expect(heldRooms.holdAlso('gang', 'a', 5_000)).toBe(true);
    now = 59_000;
    expect(heldRooms.heldFor('gang', 'a')?.forMs).toBe(1_000);
    heldRooms.holdAlso('gang', 'a', 60_000);
    now = 100_000;
    heldRooms.expire();
    expect(keptIn('east')).toEqual(['a']);
  });
});

describe('while a question is asked', () => {
  const during = (...uids: string[]): string[] => heldRooms.whileLifted(uids, () => keptIn('east'));

  test('what is held for a gang or a nomination counts as free, what was told does not, and all of it is back after it', () => {
    heldRooms.hold('told', 'told', { node: 'east', request }, 10_000);
    heldRooms.hold('nomination', 'told', { node: 'east', request }, 10_000);
    heldRooms.hold('gang', 'gang', { node: 'east', request }, 10_000);
    heldRooms.hold('nomination', 'nominated', { node: 'east', request }, 10_000);
    expect(during('told', 'gang', 'nominated', 'nobody')).toEqual(['told']);
    expect(keptIn('east')).toEqual(['told', 'gang', 'nominated']);
    expect(() =>
      heldRooms.whileLifted(['gang'], () => {
        throw new Error('it failed');
      }),
    ).toThrow('it failed');
    expect(keptIn('east')).toContain('gang');
  });

  test('the place that comes of it is the one that was held', () => {
    heldRooms.hold('gang', 'a', { node: 'east', request }, 60_000);
    heldRooms.whileLifted(['a'], () => heldRooms.hold('told', 'a', { node: 'west', request }, 10_000));
    expect([keptIn('east'), keptIn('west')]).toEqual([[], ['a']]);
  });
});

test('nothing is kept of pods and nodes behind which nobody holds room any more', () => {
  const pod = (uid: string, nodeName?: string): Pod => ({
    metadata: { name: uid, uid, ...(nodeName === undefined ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}) },
    spec: { containers: [], ...(nodeName === undefined ? {} : { nodeName }) },
  });
  for (let node = 0; node < 50; node += 1) {
    for (const purpose of ['told', 'gang', 'nomination'] as const)
      heldRooms.hold(purpose, `${String(node)}-${purpose}`, { node: `node-${String(node)}`, request }, 60_000);
  }
  expect(heldRooms.size).toEqual({ pods: 150, nodes: 50 });
  for (let node = 0; node < 50; node += 1) {
    heldRooms.podSeen(pod(`${String(node)}-told`));
    heldRooms.podSeen(pod(`${String(node)}-gang`, `node-${String(node)}`));
    heldRooms.release(`${String(node)}-nomination`);
  }
  expect(heldRooms.size).toEqual({ pods: 50, nodes: 50 });
  now = 10_000;
  heldRooms.expire();
  expect(heldRooms.size).toEqual({ pods: 0, nodes: 0 });
});
