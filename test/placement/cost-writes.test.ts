import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { commonSequence } from '../../src/placement/common-sequence.ts';
import { deletionCosts } from '../../src/placement/deletion-cost.ts';
import type { CostedPod } from '../../src/placement/costed-pod.ts';
import { EXACT_UP_TO, steadyOrder } from '../../src/placement/steady-order.ts';
import { cluster, Fleet } from './fleet.ts';

/** How many writes deletion costs take while a workload grows, shrinks and loses pods. */

const clusters = ['local', 'east', 'west', 'north'].map((name) =>
  cluster(name, { region: name === 'local' || name === 'east' ? 'eu' : 'us' }),
);
const weights = (list: Record<string, number>): object => ({
  weightPreference: {
    staticWeightList: Object.entries(list).map(([name, weight]) => ({
      targetCluster: { clusterNames: [name] },
      weight,
    })),
  },
});
const preferences = {
  clusters: { local: { weight: 3, minReplicas: 10 }, east: { weight: 2, maxReplicas: 60 }, '*': { weight: 1 } },
};
const PLACEMENTS: Record<string, object> = {
  tiers: {
    clusterAffinity: { clusterNames: ['local'], overflowAffinities: [{ clusterNames: ['east', 'west', 'north'] }] },
  },
  percentages: {
    clusterAffinity: {
      clusterNames: ['local'],
      max: '60%',
      overflowAffinities: [{ clusterNames: ['east'], max: '30%' }, { clusterNames: ['west', 'north'] }],
    },
  },
  'even weights': { replicaScheduling: weights({ local: 2, east: 1, west: 1, north: 1 }) },
  'odd weights': { replicaScheduling: weights({ local: 333, east: 222, west: 111, north: 7 }) },
  spread: {
    spreadConstraints: [{ spreadByField: 'cluster', minGroups: 3 }],
    replicaScheduling: weights({ local: 5, east: 1, west: 1, north: 1 }),
  },
  dynamic: { replicaScheduling: { weightPreference: { dynamicWeight: 'AvailableReplicas' } } },
  aggregated: { replicaScheduling: { replicaDivisionPreference: 'Aggregated' } },
  'preferences Total': { replicaScheduling: { clusterPreferences: { ...preferences, rebalance: true } } },
  'preferences Remainder': { replicaScheduling: { clusterPreferences: { ...preferences, division: 'Remainder' } } },
};

/** A workload, the costs of its pods, and a ReplicaSet that heeds them. */
class CostedFleet {
  readonly fleet: Fleet;
  readonly byRoom: boolean;
  writes = 0;
  readonly came = new Set<string>();
  #pods: CostedPod[] = [];

  constructor(placement: object, room: Record<string, number>) {
    this.fleet = new Fleet({ placement, clusters, uid: 'u', room });
    this.byRoom = ['dynamic', 'aggregated'].includes(this.fleet.placement.division.kind);
  }

  scale(replicas: number): void {
    const costs = this.#costs();
    const { fleet } = this;
    const tooMany = Math.max(0, fleet.pods.length - replicas);
    if (tooMany > 0) {
      const first = fleet.pods.toSorted((a, b) => (costs.get(a.uid) ?? 0) - (costs.get(b.uid) ?? 0)).slice(0, tooMany);
      fleet.pods = fleet.pods.filter((pod) => !first.includes(pod));
      fleet.replicas = replicas;
      fleet.refresh();
    } else {
      fleet.scale(replicas);
    }
    this.#write();
  }

  lose(pods: readonly number[]): void {
    for (const one of pods) this.fleet.pods.splice(one % Math.max(1, this.fleet.pods.length), 1);
  }

  /** The cluster of each pod, the first to go first. */
  order(): string[] {
    return this.#pods.toSorted((a, b) => (a.cost ?? 0) - (b.cost ?? 0)).map((pod) => pod.cluster);
  }

  #costs(): Map<string, number | undefined> {
    return new Map(this.#pods.map(({ uid, cost }) => [uid, cost]));
  }

  #write(): void {
    const costs = this.#costs();
    const pods = this.fleet.pods.map(({ uid, cluster: name }) => ({ uid, cluster: name, cost: costs.get(uid) }));
    for (const { uid } of pods) this.came.add(uid);
    const exact = this.fleet.removal();
    const order = this.byRoom ? steadyOrder(exact, pods, false) : exact;
    const changes = deletionCosts(order, pods);
    this.writes += changes.size;
    this.#pods = pods.map((pod) => ({ ...pod, cost: changes.get(pod.uid) ?? pod.cost }));
    expect(this.order()).toEqual(order);
    if (this.byRoom) expectNear(order, exact);
  }
}

/** At every size each cluster has its exact number of pods, but for one, and one in fifty and one in twenty of those that went, rounded up. */
function expectNear(order: readonly string[], exact: readonly string[]): void {
  const all = new Map<string, number>();
  for (const name of exact) all.set(name, (all.get(name) ?? 0) + 1);
  const [have, want] = [new Map<string, number>(), new Map<string, number>()];
  for (let index = exact.length - 1; index >= 0; index -= 1) {
    for (const [counts, name = ''] of [[have, order[index]] as const, [want, exact[index]] as const])
      counts.set(name, (counts.get(name) ?? 0) + 1);
    for (const [name, wanted] of want) {
      const off = (have.get(name) ?? 0) - wanted;
      if (Math.abs(off) > 1 + Math.ceil(wanted / 50 + ((all.get(name) ?? 0) - wanted) / 20)) {
        throw new Error(`${name} has ${String(off)} more than ${String(wanted)} of ${String(exact.length - index)}`);
      }
    }
  }
}

const steps = fc.array(
  fc.record({
    by: fc.oneof({ weight: 4, arbitrary: fc.integer({ min: -8, max: 8 }) }, fc.integer({ min: -90, max: 90 })),
    lost: fc.array(fc.nat(), { maxLength: 2 }),
  }),
  { minLength: 5, maxLength: 15 },
);

describe('about one write for each pod that comes', () => {
  it.each(Object.keys(PLACEMENTS))('%s, whatever the sizes', (name) => {
    fc.assert(
      fc.property(steps, fc.integer({ min: 20, max: 80 }), (list, room) => {
        const one = new CostedFleet(PLACEMENTS[name] ?? {}, { local: room, east: 70, west: 90, north: 50 });
        let [replicas, lost] = [60, 0];
        one.scale(replicas);
        for (const step of list) {
          replicas = Math.max(1, Math.min(180, replicas + step.by));
          one.lose(step.lost);
          lost += step.lost.length;
          one.scale(replicas);
        }
        // One that is lost in the middle may leave others where they should not be.
        const bound = (one.byRoom ? 1.5 : 1.1) * one.came.size + 4 * lost + 20;
        if (one.writes > bound)
          throw new Error(`${one.writes} writes for ${one.came.size} pods that came, ${lost} were lost`);
      }),
      { numRuns: 12 },
    );
  });

  it.each(Object.keys(PLACEMENTS))('%s, a thousand pods that grow and shrink by one', (name) => {
    const one = new CostedFleet(PLACEMENTS[name] ?? {}, { local: 600, east: 300, west: 300, north: 300 });
    for (const replicas of [300, 640, 1_000]) one.scale(replicas);
    const [writes, came] = [one.writes, one.came.size];
    for (let round = 0; round < 10; round += 1) {
      one.scale(1_001);
      one.scale(1_000);
    }
    // Of some divisions all of one cluster are the last, and need none.
    expect(one.writes - writes).toBeLessThanOrEqual(one.byRoom ? 50 : one.came.size - came);
  });

  it.each(Object.keys(PLACEMENTS))('%s, a long way up and down by ones, as autoscalers go it', (name) => {
    for (const [low, high] of [
      [15, 25],
      [60, 100],
      [300, 400],
    ] as const) {
      const one = new CostedFleet(PLACEMENTS[name] ?? {}, { local: 600, east: 300, west: 300, north: 300 });
      one.scale(high);
      for (let round = 0; round < 3; round += 1) {
        const [writes, came] = [one.writes, one.came.size];
        for (let size = high - 1; size >= low; size -= 1) one.scale(size);
        if (round === 0) expect(one.writes - writes).toBe(0);
        for (let size = low + 1; size <= high; size += 1) one.scale(size);
        expect(one.writes - writes).toBeLessThanOrEqual(1.5 * (one.came.size - came));
      }
    }
  });

  it.each(['dynamic', 'aggregated'])('%s, in proportion to what each had when it began to shrink', (name) => {
    const [slow, fast] = [0, 1].map(
      () => new CostedFleet(PLACEMENTS[name] ?? {}, { local: 60, east: 30, west: 30, north: 30 }),
    );
    slow?.scale(100);
    fast?.scale(100);
    for (let size = 99; size >= 60; size -= 1) slow?.scale(size);
    fast?.scale(60);
    expect(slow?.fleet.counts()).toEqual(fast?.fleet.counts());
    expect(slow?.fleet.plan?.targets).toEqual(fast?.fleet.plan?.targets);
  });

  it.each(['dynamic', 'aggregated'])('%s, and up to twenty pods in the exact order', (name) => {
    const list = fc.array(fc.integer({ min: -8, max: 8 }), { minLength: 5, maxLength: 15 });
    fc.assert(
      fc.property(list, fc.integer({ min: 4, max: 30 }), (changes, room) => {
        const one = new CostedFleet(PLACEMENTS[name] ?? {}, { local: room, east: 7, west: 9, north: 5 });
        let replicas = 10;
        for (const by of changes) {
          replicas = Math.max(1, Math.min(EXACT_UP_TO, replicas + by));
          one.scale(replicas);
          expect(one.order()).toEqual(one.fleet.removal());
        }
        expect(one.writes).toBeLessThanOrEqual(2 * one.came.size + EXACT_UP_TO);
      }),
    );
  });

  it('keeps tiers and last pods where an order must', () => {
    const list = fc.array(
      fc.record({ cluster: fc.constantFrom('a', 'b', 'c'), cost: fc.option(fc.nat(9), { nil: undefined }) }),
      {
        minLength: 1,
        maxLength: 30,
      },
    );
    fc.assert(
      fc.property(list, fc.infiniteStream(fc.nat()), (some, chance) => {
        const pods = some.map((one, index) => ({ ...one, uid: `u${String(index)}` }));
        const exact = pods
          .map(({ cluster: name }) => ({ name, at: chance.next().value ?? 0 }))
          .toSorted((a, b) => a.at - b.at)
          .map(({ name }) => name);
        const order = steadyOrder(exact, pods, true);
        expectNear(order, exact);
        for (const index of exact.keys()) expect(new Set(order.slice(index))).toEqual(new Set(exact.slice(index)));
      }),
    );
  });

  it('keeps what it has of any sequence', () => {
    const list = fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 30 });
    fc.assert(
      fc.property(list, list, (a, b) => {
        const pairs = [...(commonSequence(a, b) ?? [])].toSorted(([x], [y]) => x - y);
        for (const [index, [x, y]] of pairs.entries()) {
          expect(a[x]).toBe(b[y]);
          if (index > 0) expect(y).toBeGreaterThan(pairs[index - 1]?.[1] ?? -1);
        }
        expect(pairs.length).toBe(longest(a, b));
      }),
    );
    const [many, others] = [Array<string>(2_000).fill('a'), Array<string>(2_000).fill('b')];
    expect(commonSequence([...many, 'c', ...others], [...others, 'c', ...many])).toBeUndefined();
  });
});

/** By the book. */
function longest(a: readonly string[], b: readonly string[]): number {
  let before = [0, ...b.map(() => 0)];
  for (const one of a) {
    const row = [0];
    for (const [index, other] of b.entries()) {
      row.push(one === other ? (before[index] ?? 0) + 1 : Math.max(before[index + 1] ?? 0, row[index] ?? 0));
    }
    before = row;
  }
  return before.at(-1) ?? 0;
}
