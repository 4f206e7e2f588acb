import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { refreshPlan } from '../../src/placement/next-place.ts';
import { countsOf, KNOWN_DIVISIONS, rolledOutAfter } from '../fixtures/divisions.ts';
import { cluster, Fleet } from './fleet.ts';

const three = [cluster('a'), cluster('b'), cluster('c')];
const weights = (...list: number[]): object => ({
  replicaScheduling: {
    weightPreference: {
      staticWeightList: list.map((weight, index) => ({
        targetCluster: { clusterNames: [String.fromCodePoint(97 + index)] },
        weight,
      })),
    },
  },
});
const dynamic = { replicaScheduling: { weightPreference: { dynamicWeight: 'AvailableReplicas' } } };
const aggregated = { replicaScheduling: { replicaDivisionPreference: 'Aggregated' } };
const preferences = (clusters: object, more: object = {}): object => ({
  replicaScheduling: { clusterPreferences: { clusters, ...more } },
});
/** UIDs by which ties follow the alphabet, and go against it. */
const [EVEN, ODD] = ['uid-0', 'uid-1'];

describe('known divisions, pod by pod', () => {
  it.each(KNOWN_DIVISIONS)('$name', ({ clusters: names, down = [], placement, steps }) => {
    const clusters = names.map((name) => cluster(name, down.includes(name) ? { unavailable: 'it is not ready' } : {}));
    for (const uid of [EVEN, ODD]) {
      const fleet = new Fleet({ placement, clusters, uid });
      for (const [index, step] of steps.entries()) {
        fleet.room = { ...fleet.room, ...step.room };
        if (step.placement !== undefined) fleet.edit(step.placement);
        const counts = countsOf(step, uid);
        expect(fleet.scale(step.replicas)).toEqual(counts);
        if (index === rolledOutAfter(steps)) expect(fleet.rollOut(3, (old) => old.length * 7)).toEqual(counts);
      }
    }
  });
});

describe('static weights, pod by pod', () => {
  it('takes the largest weight that matches, and drops clusters that none matches', () => {
    const rules = [
      { targetCluster: { clusterNames: ['a', 'b'] }, weight: 1 },
      { targetCluster: { clusterNames: ['b'] }, weight: 3 },
    ];
    const placement = { replicaScheduling: { weightPreference: { staticWeightList: rules } } };
    const fleet = new Fleet({ placement, clusters: three });
    expect(fleet.scale(8)).toEqual({ a: 2, b: 6 });
    expect(fleet.decide().refusals).toContainEqual({
      cluster: 'c',
      reason: 'NoShare',
      message: 'the policy gives it no share',
    });
  });

  it('weighs all the same when no rule matches, and when there are no rules', () => {
    const rules = [{ targetCluster: { clusterNames: ['elsewhere'] }, weight: 7 }];
    const none = { replicaScheduling: { weightPreference: { staticWeightList: rules } } };
    expect(new Fleet({ placement: none, clusters: three }).scale(6)).toEqual({ a: 2, b: 2, c: 2 });
    expect(new Fleet({ placement: { replicaScheduling: {} }, clusters: three }).scale(6)).toEqual({ a: 2, b: 2, c: 2 });
  });

  it('waits for a full cluster, so that the division stays exact', () => {
    const fleet = new Fleet({ placement: weights(1, 1), clusters: three.slice(0, 2), room: { a: 2 } });
    expect(fleet.scale(10)).toEqual({ a: 2, b: 5 });
    expect(fleet.decide().refusals).toEqual([
      { cluster: 'a', reason: 'NoRoom', message: 'it has no room for the pod' },
      { cluster: 'b', reason: 'HasItsShare', message: 'it has its share of 10 replicas (5 of 5)' },
    ]);
    fleet.room = { a: 100 };
    expect(fleet.scale(10)).toEqual({ a: 5, b: 5 });
  });

  it('goes on to others with TryNext', () => {
    const placement = {
      replicaScheduling: { ...(weights(1, 1) as { replicaScheduling: object }).replicaScheduling, whenFull: 'TryNext' },
    };
    const fleet = new Fleet({ placement, clusters: three.slice(0, 2), room: { a: 2 } });
    expect(fleet.scale(10)).toEqual({ a: 2, b: 8 });
  });

  it('does not wait for a cluster that cannot be used, and comes back to it when it grows', () => {
    const fleet = new Fleet({ placement: weights(1, 1), clusters: three.slice(0, 2) });
    expect(fleet.scale(4)).toEqual({ a: 2, b: 2 });
    fleet.clusters = [cluster('a', { unavailable: 'it is not ready' }), cluster('b')];
    expect(fleet.scale(8)).toEqual({ a: 2, b: 6 });
    fleet.clusters = three.slice(0, 2);
    expect(fleet.scale(16)).toEqual({ a: 8, b: 8 });
  });

  it('gives no seats to a cluster that the pods themselves rule out', () => {
    const fleet = new Fleet({ placement: weights(1, 1), clusters: three.slice(0, 2) });
    fleet.impossible = { a: 'no node has label gpu=yes' };
    expect(fleet.scale(4)).toEqual({ b: 4 });
    expect(fleet.decide().refusals[0]).toEqual({
      cluster: 'a',
      reason: 'Impossible',
      message: 'no node has label gpu=yes',
    });
  });

  it('repairs a hole where a pod was lost out of order', () => {
    const fleet = new Fleet({ placement: weights(1, 2), clusters: three.slice(0, 2) });
    fleet.scale(9);
    fleet.pods = fleet.pods.filter((pod, index) => pod.cluster !== 'a' || index % 2 === 0);
    expect(fleet.scale(9)).toEqual({ a: 3, b: 6 });
  });
});

describe('preferences of clusters, as KubeFed has them', () => {
  it('50; A has 10, B has 70, rebalance off: A10 B40, the most over-served shrinks first', () => {
    const fleet = new Fleet({ placement: preferences({ '*': { weight: 1 } }), clusters: three.slice(0, 2) });
    fleet.pods = Array.from({ length: 80 }, (_, index) => ({
      uid: `q${String(index)}`,
      cluster: index < 10 ? 'a' : 'b',
      revision: 'r1',
    }));
    expect(fleet.scale(50)).toEqual({ a: 10, b: 40 });
    expect(fleet.scale(70)).toEqual({ a: 30, b: 40 });
  });

  it('says which limit holds', () => {
    const fleet = new Fleet({ placement: preferences({ a: { weight: 1, maxReplicas: 3 } }), clusters: three });
    expect(fleet.scale(9)).toEqual({ a: 3 });
    expect(fleet.decide().refusals).toEqual([
      { cluster: 'a', reason: 'AtMax', message: 'the policy allows at most 3 pods in a' },
      { cluster: 'b', reason: 'NoShare', message: 'the policy gives it no share' },
      { cluster: 'c', reason: 'NoShare', message: 'the policy gives it no share' },
    ]);
  });

  it('counts the host as one of the clusters', () => {
    const placement = preferences({ local: { weight: 2 }, a: { weight: 1 } });
    expect(new Fleet({ placement, clusters: [cluster('local'), ...three] }).scale(9)).toEqual({ a: 3, local: 6 });
  });
});

describe('dynamic weights', () => {
  it('leaves the division to the first pod that asks while nobody knows what room there is', () => {
    const fleet = new Fleet({ placement: dynamic, clusters: three, room: { a: 6, b: 12, c: 18 } });
    fleet.replicas = 12;
    // What a WorkloadPlacement is written from before any pod was asked about.
    fleet.plan = refreshPlan({ ...fleet.facts(), rooms: new Map() }, false);
    expect(fleet.plan.targets).toBeUndefined();
    expect(fleet.scale(12)).toEqual({ a: 2, b: 4, c: 6 });
    fleet.replicas = 5;
    const shrunk = refreshPlan({ ...fleet.facts(), rooms: new Map() }, false);
    expect(Object.fromEntries(shrunk.targets ?? [])).toEqual({ a: 1, b: 2, c: 2 });
  });

  it('after it shrank, growth starts from what is left', () => {
    const fleet = new Fleet({ placement: dynamic, clusters: three, room: { a: 6, b: 12, c: 18 } });
    fleet.scale(12);
    expect(fleet.scale(5)).toEqual({ a: 1, b: 2, c: 2 });
    fleet.room = { a: 1, b: 2, c: 20 };
    expect(fleet.scale(8)).toEqual({ a: 1, b: 2, c: 5 });
  });

  it('places what fits, tells why the rest waits, and goes on when room comes', () => {
    const fleet = new Fleet({ placement: dynamic, clusters: three.slice(0, 2), room: { a: 2, b: 3 } });
    expect(fleet.scale(9)).toEqual({ a: 2, b: 3 });
    expect(fleet.decide().refusals.map(({ reason }) => reason)).toEqual(['NoRoom', 'NoRoom']);
    fleet.room = { a: 10, b: 3 };
    expect(fleet.scale(9)).toEqual({ a: 6, b: 3 });
  });

  it('works the division out anew when the room for planned seats is gone', () => {
    const fleet = new Fleet({ placement: dynamic, clusters: three.slice(0, 2), room: { a: 50, b: 50 } });
    fleet.replicas = 10;
    fleet.place();
    fleet.room = { a: 0, b: 50 };
    expect(fleet.scale(10).b).toBe(fleet.counts()['a'] === undefined ? 10 : 9);
  });

  it('keeps the division through a roll-out, whatever room is left in between', () => {
    const fleet = new Fleet({ placement: dynamic, clusters: three, room: { a: 20, b: 40, c: 60 } });
    const before = fleet.scale(12);
    expect(fleet.rollOut(3, (old) => old.length * 7)).toEqual(before);
  });

  it('goes on after a restart from the pods alone', () => {
    const fleet = new Fleet({ placement: dynamic, clusters: three, room: { a: 6, b: 12, c: 18 } });
    fleet.scale(12);
    fleet.plan = undefined;
    expect(fleet.scale(12)).toEqual({ a: 2, b: 4, c: 6 });
    fleet.plan = undefined;
    expect(fleet.scale(5)).toEqual({ a: 1, b: 2, c: 2 });
  });
});

describe('Aggregated', () => {
  it('grows where it has pods already', () => {
    const fleet = new Fleet({ placement: aggregated, clusters: three, room: { a: 10, b: 30, c: 60 } });
    fleet.pods = [{ uid: 'x', cluster: 'a', revision: 'r1' }];
    expect(fleet.scale(9)).toEqual({ a: 9 });
    expect(fleet.scale(12)).toEqual({ a: 9, c: 3 });
  });
});

describe('a cluster that is away for a while', () => {
  const away = [cluster('a'), cluster('b'), cluster('c', { unavailable: 'it is not ready' })];
  const targets = ({ plan }: Fleet): object =>
    Object.fromEntries([...(plan?.targets ?? [])].filter(([, count]) => count > 0));

  it.each([
    ['static weights', weights(1, 2, 3)],
    ['preferences', preferences({ '*': { weight: 1 } })],
    ['preferences that move nothing', preferences({ a: { weight: 9 }, '*': { weight: 1 } }, { rebalance: false })],
    ['Remainder', preferences({ a: { weight: 3 }, '*': { weight: 1 } }, { division: 'Remainder' })],
    ['dynamic weights', dynamic],
    ['Aggregated', aggregated],
  ])('changes nothing about %s when no pod came meanwhile', (_what, placement) => {
    const fleet = new Fleet({ placement, clusters: three, room: { a: 5, b: 6, c: 30 } });
    const counts = fleet.scale(12);
    expect(targets(fleet)).toEqual(counts);
    fleet.clusters = away;
    fleet.plan = refreshPlan(fleet.facts());
    const { c: _, ...others } = counts;
    expect(targets(fleet)).toEqual(others);
    fleet.clusters = three;
    fleet.plan = refreshPlan(fleet.facts());
    expect(targets(fleet)).toEqual(counts);
  });

  it('is not needed for spread that can give way to hold while all pods have their places', () => {
    const softly = { spreadByField: 'cluster', minGroups: 1, maxGroups: 2, whenUnsatisfiable: 'ScheduleAnyway' };
    const fleet = new Fleet({ placement: { ...weights(1, 1, 1), spreadConstraints: [softly] }, clusters: three });
    const counts = fleet.scale(6);
    expect(Object.values(counts)).toEqual([3, 3]);
    fleet.plan = refreshPlan(fleet.facts());
    expect(targets(fleet)).toEqual(counts);
  });

  it('gets its share of the pods that come when it is back', () => {
    const fleet = new Fleet({ placement: weights(1, 1, 1), clusters: away });
    expect(fleet.scale(6)).toEqual({ a: 3, b: 3 });
    fleet.clusters = three;
    fleet.plan = refreshPlan(fleet.facts());
    expect(targets(fleet)).toEqual({ a: 2, b: 2, c: 2 });
    expect(fleet.counts()).toEqual({ a: 3, b: 3 });
    fleet.pods.splice(0, 1);
    expect(fleet.place()).toBe('c');
    expect(fleet.scale(9)).toEqual({ a: 3, b: 3, c: 3 });
  });

  it('keeps what it has in a division by room, and growth alone is divided', () => {
    const fleet = new Fleet({ placement: dynamic, clusters: three, room: { a: 1_000, b: 1_000, c: 1_000 } });
    expect(fleet.scale(6)).toEqual({ a: 2, b: 2, c: 2 });
    fleet.clusters = away;
    fleet.scale(8);
    expect(fleet.counts()).toEqual({ a: 3, b: 3, c: 2 });
    fleet.clusters = three;
    expect(fleet.scale(11)).toEqual({ a: 4, b: 4, c: 3 });
  });

  it('leaves pods that other replicas placed meanwhile where they are', () => {
    const fleet = new Fleet({ placement: dynamic, clusters: three, room: { a: 10, b: 10, c: 10 } });
    fleet.scale(6);
    const before = fleet.plan;
    fleet.scale(9);
    fleet.plan = before;
    fleet.plan = refreshPlan(fleet.facts());
    expect(targets(fleet)).toEqual({ a: 3, b: 3, c: 3 });
    // Those that are still to come are divided when they ask.
    fleet.replicas = 12;
    fleet.plan = refreshPlan(fleet.facts());
    expect(targets(fleet)).toEqual({ a: 3, b: 3, c: 3 });
    expect(fleet.scale(12)).toEqual({ a: 4, b: 4, c: 4 });
  });
});

describe('over time', () => {
  const steps = [3, 6, 12, 24, 30, 21, 9, 3];

  it.each([
    ['1:2', [1, 2]],
    ['1:1:1', [1, 1, 1]],
    ['2:3:5', [2, 3, 5]],
  ])('HPA steps 3 -> 30 -> 3 are exact at each step: %s', (_name, list) => {
    const clusters = three.slice(0, list.length);
    const fleet = new Fleet({ placement: weights(...list), clusters, uid: ODD });
    const exact = (replicas: number) => new Fleet({ placement: weights(...list), clusters, uid: ODD }).scale(replicas);
    for (const replicas of steps) expect(fleet.scale(replicas)).toEqual(exact(replicas));
  });

  it.each([false, true])('and with limits, rebalance %s', (rebalance) => {
    const clusters = {
      a: { weight: 1, minReplicas: 1 },
      b: { weight: 3, maxReplicas: 9 },
      c: { weight: 2, minReplicas: 4 },
    };
    const placement = preferences(clusters, { rebalance });
    const fleet = new Fleet({ placement, clusters: three });
    for (const replicas of steps) {
      expect(fleet.scale(replicas)).toEqual(new Fleet({ placement, clusters: three }).scale(replicas));
    }
  });

  it('a roll-out ends on the exact division, whatever the surge and whichever old pods go first', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 2, maxLength: 3 }),
        fc.integer({ min: 1, max: 25 }),
        fc.integer({ min: 1, max: 9 }),
        fc.nat(1_000),
        (list, replicas, surge, pick) => {
          const fleet = new Fleet({ placement: weights(...list), clusters: three.slice(0, list.length) });
          const before = fleet.scale(replicas);
          expect(fleet.rollOut(surge, (old) => pick * old.length + pick)).toEqual(before);
        },
      ),
      { numRuns: 60 },
    );
  });

  it('growing keeps every seat, in any order of the clusters', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 3, maxLength: 3 }),
        fc.integer({ min: 0, max: 30 }),
        fc.integer({ min: 0, max: 10 }),
        (list, replicas, more) => {
          const fleet = new Fleet({ placement: weights(...list), clusters: three });
          const before = fleet.scale(replicas);
          const after = fleet.scale(replicas + more);
          for (const [name, count] of Object.entries(before)) expect(after[name]).toBeGreaterThanOrEqual(count);
          const turned = new Fleet({ placement: weights(...list), clusters: three.toReversed() });
          expect(turned.scale(replicas + more)).toEqual(after);
        },
      ),
      { numRuns: 60 },
    );
  });

  it('never overfills a cluster and never places more than asked, by room', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(dynamic, aggregated, preferences({ '*': { weight: 1, maxReplicas: 9 } })),
        fc.record({ a: fc.nat(12), b: fc.nat(12), c: fc.nat(12) }),
        fc.array(fc.nat(30), { minLength: 1, maxLength: 5 }),
        (placement, room, sizes) => {
          const fleet = new Fleet({ placement, clusters: three, room });
          for (const size of sizes) {
            const counts = fleet.scale(size);
            expect(fleet.pods.length).toBeLessThanOrEqual(size);
            for (const [name, all] of Object.entries(room)) expect(counts[name] ?? 0).toBeLessThanOrEqual(all);
            const possible = Object.values(room).reduce(
              (sum, all) => sum + (placement === dynamic || placement === aggregated ? all : Math.min(9, all)),
              0,
            );
            expect(fleet.pods.length).toBe(Math.min(size, possible));
          }
        },
      ),
      { numRuns: 100 },
    );
  });
});
