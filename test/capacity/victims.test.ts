import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type Candidate,
  compareVictims,
  type RoomWithout,
  victimsAmong,
  type Victims,
} from '../../src/capacity/victims.ts';

interface Sized extends Candidate {
  readonly size: number;
}

/** Room for `free` more than the candidates take now. */
class Room implements RoomWithout<Sized> {
  readonly out = new Set<string>();
  readonly #asked: number;
  #free: number;

  constructor(asked: number, free: number) {
    this.#asked = asked;
    this.#free = free;
  }

  take({ uid, size }: Sized): void {
    expect(this.out.has(uid)).toBe(false);
    this.out.add(uid);
    this.#free += size;
  }

  putBack({ uid, size }: Sized): void {
    expect(this.out.delete(uid)).toBe(true);
    this.#free -= size;
  }

  fits(): boolean {
    return this.#asked <= this.#free;
  }
}

const pod = (uid: string, size: number, priority = 0, more: Partial<Sized> = {}): Sized => ({
  uid,
  size,
  priority,
  since: 0,
  budgets: [],
  ...more,
});
const names = (victims: Victims | undefined): string[] | undefined => victims?.pods.map(({ uid }) => uid);

describe('victims', () => {
  it('are the lowest, and no more than needed', () => {
    const pods = [pod('high', 2, 5), pod('low', 2, 1), pod('young', 1, 1, { since: 9 }), pod('old', 1, 1)];
    expect(names(victimsAmong(pods, new Room(1, 0)))).toEqual(['young']);
    expect(names(victimsAmong(pods, new Room(3, 0)))).toEqual(['low', 'young']);
    expect(names(victimsAmong(pods, new Room(6, 0)))).toEqual(['high', 'low', 'old', 'young']);
    expect(victimsAmong(pods, new Room(7, 0))).toBeUndefined();
  });

  it('are those that no budget protects, as long as others do', () => {
    const pods = [pod('kept', 1, 0, { budgets: [{ key: 'b', allowed: 0 }] }), pod('more', 1, 3), pod('most', 1, 4)];
    expect(victimsAmong(pods, new Room(1, 0))).toMatchObject({ pods: [{ uid: 'more' }], violations: 0 });
    const granted = [pod('kept', 1, 0, { budgets: [{ key: 'b', allowed: 1 }] }), ...pods.slice(1)];
    expect(names(victimsAmong(granted, new Room(1, 0)))).toEqual(['kept']);
    expect(victimsAmong(pods, new Room(3, 0))?.violations).toBe(1);
  });

  it('are told the most important first, as kube-scheduler takes the first one for the highest of a node', () => {
    const pods = [pod('kept', 1, 0, { budgets: [{ key: 'b', allowed: 0 }] }), pod('most', 1, 4), pod('more', 1, 3)];
    expect(names(victimsAmong(pods, new Room(3, 0)))).toEqual(['most', 'more', 'kept']);
  });

  it('of one budget are granted only as many as it says', () => {
    const pods = ['a', 'b', 'c'].map((uid) => pod(uid, 1, 0, { budgets: [{ key: 'b', allowed: 2 }] }));
    expect(victimsAmong(pods, new Room(3, 0))?.violations).toBe(1);
  });

  it('could none of them stay, are of the lowest possible priority, and all is as before in the end', () => {
    const one = fc.record({ size: fc.integer({ min: 1, max: 4 }), priority: fc.nat(3), isKept: fc.boolean() });
    fc.assert(
      fc.property(fc.array(one, { maxLength: 7 }), fc.nat(12), fc.nat(4), fc.nat(2), (list, asked, free, grants) => {
        const pods = list.map(({ size, priority, isKept }, index) =>
          pod(`p${index}`, size, priority, { budgets: isKept ? [{ key: 'b', allowed: grants }] : [], since: index }),
        );
        const room = new Room(asked, free);
        const victims = victimsAmong(pods, room);
        expect(room.out.size).toBe(0);
        const sum = (some: readonly Sized[]): number => some.reduce((all, { size }) => all + size, free);
        expect(victims === undefined).toBe(sum(pods) < asked);
        if (victims === undefined) return;
        const chosen = pods.filter(({ uid }) => names(victims)?.includes(uid));
        expect(sum(chosen)).toBeGreaterThanOrEqual(asked);
        for (const left of chosen) expect(sum(chosen.filter((other) => other !== left))).toBeLessThan(asked);
        // By trying all sets: with no fewer violations there is none whose highest priority is lower.
        if (grants === 0 && !list.some(({ isKept }) => isKept)) {
          const highest = (some: readonly Sized[]): number => Math.max(-1, ...some.map(({ priority }) => priority));
          const best = Math.min(...subsets(pods).flatMap((some) => (sum(some) >= asked ? [highest(some)] : [])));
          expect(highest(chosen)).toBe(best);
        }
      }),
    );
  });

  it('are the same of one pod alone as beside one whose leaving makes no room', () => {
    const budgets = fc.subarray([
      { key: 'b', allowed: 0 },
      { key: 'c', allowed: 1 },
    ]);
    fc.assert(
      fc.property(budgets, fc.nat(3), fc.nat(3), fc.nat(3), (covered, size, asked, free) => {
        const one = pod('one', size, 1, { budgets: covered });
        const alone = victimsAmong([one], new Room(asked, free));
        expect(alone).toEqual(victimsAmong([one, pod('other', 0)], new Room(asked, free)));
      }),
    );
  });
});

function subsets<T>(list: readonly T[]): T[][] {
  return list.reduce<T[][]>((all, one) => [...all, ...all.map((some) => [...some, one])], [[]]);
}

it('of several nodes those that cost least are better', () => {
  const victims = (violations: number, ...pods: Sized[]): Victims => ({ pods, violations });
  const ranked = [
    victims(0, pod('a', 1, 1)),
    victims(0, pod('a', 1, 1), pod('b', 1, 1, { since: 5 })),
    victims(0, pod('a', 1, 2, { since: 7 })),
    victims(0, pod('a', 1, 2)),
    victims(0, pod('a', 1, 2), pod('b', 1, 0)),
    victims(1, pod('a', 1, 0)),
  ];
  expect(ranked.toReversed().toSorted(compareVictims)).toEqual(ranked);
});
