import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  costAnnotations,
  DELETION_COST_ANNOTATION,
  deletionCostOf,
  deletionCosts,
  OWN_COST_ANNOTATION,
} from '../../src/placement/deletion-cost.ts';
import type { CostedPod } from '../../src/placement/costed-pod.ts';
import { divideRemainder } from '../../src/placement/remainder-division.ts';
import type { RemainderShare } from '../../src/placement/remainder-division.ts';
import { cluster, Fleet } from './fleet.ts';

/** Pods with their costs, and a count of what was written. */
class Costs {
  pods: CostedPod[] = [];
  readonly writes = new Map<string, number>();

  /** Takes the pods of a fleet, keeps known costs and writes what has to change. */
  follow(fleet: Fleet): void {
    const known = new Map(this.pods.map((pod) => [pod.uid, pod.cost]));
    this.pods = fleet.pods.map(({ uid, cluster }) => ({ uid, cluster, cost: known.get(uid) }));
    const changes = deletionCosts(fleet.removal(), this.pods);
    this.pods = this.pods.map((pod) => ({ ...pod, cost: changes.get(pod.uid) ?? pod.cost }));
    for (const uid of changes.keys()) this.writes.set(uid, (this.writes.get(uid) ?? 0) + 1);
  }

  /** Clusters by cost, the first to go first: what the ReplicaSet controller does with ready pods. */
  order(): string[] {
    return this.pods.toSorted((a, b) => (a.cost ?? 0) - (b.cost ?? 0)).map(({ cluster }) => cluster);
  }
}

const clusters = [cluster('local'), cluster('a'), cluster('b')];
const tiers = {
  clusterAffinity: {
    clusterNames: ['local'],
    overflowAffinities: [{ clusterNames: ['a'], max: 3 }, { clusterNames: ['b'] }],
  },
};
const weights = (...list: number[]): object => ({
  replicaScheduling: {
    weightPreference: {
      staticWeightList: list.map((weight, index) => ({
        targetCluster: { clusterNames: [['local', 'a', 'b'][index]] },
        weight,
      })),
    },
  },
});

describe('tiers', () => {
  it('20 local and 10 burst, scaled to 20: exactly the 10 burst pods go, and only these were written, once each', () => {
    const fleet = new Fleet({ placement: tiers, clusters, room: { local: 20 } });
    const costs = new Costs();
    for (let replicas = 1; replicas <= 30; replicas += 1) {
      fleet.scale(replicas);
      costs.follow(fleet);
    }
    expect(fleet.counts()).toEqual({ a: 3, b: 7, local: 20 });
    expect(costs.order()).toEqual([
      ...Array<string>(7).fill('b'),
      ...Array<string>(3).fill('a'),
      ...Array<string>(20).fill('local'),
    ]);
    expect([...costs.writes.values()]).toEqual(Array(10).fill(1));
  });

  it('puts pods first that are where the policy does not send any', () => {
    const fleet = new Fleet({ placement: tiers, clusters: [...clusters, cluster('c')], room: { local: 2 } });
    fleet.scale(4);
    fleet.pods.push({ uid: 'x', cluster: 'c', revision: 'r1' }, { uid: 'y', cluster: 'gone', revision: 'r1' });
    expect(fleet.removal()).toEqual(['gone', 'c', 'a', 'a', 'local', 'local']);
  });
});

describe('limits while a workload shrinks', () => {
  it('keep to a percentage of what is left at every step', () => {
    const placement = {
      clusterAffinity: { clusterNames: ['local'], max: '30%', overflowAffinities: [{ clusterNames: ['a'] }] },
    };
    const fleet = new Fleet({ placement, clusters });
    for (const replicas of [20, 10, 4]) {
      expect(fleet.scale(replicas)).toEqual({
        a: replicas - Math.floor(replicas * 0.3),
        local: Math.floor(replicas * 0.3),
      });
    }
  });

  it('keep one pod in each group that pods are to be spread over', () => {
    const all = [
      cluster('e', { region: 'eu', price: 1 }),
      cluster('u', { region: 'us', price: 2 }),
      cluster('p', { region: 'ap', price: 3 }),
    ];
    const placement = { spreadConstraints: [{ spreadByField: 'region', minGroups: 2 }] };
    const fleet = new Fleet({ placement, clusters: all });
    fleet.pods = ['e', 'e', 'e', 'u', 'u', 'p'].map((name, index) => ({
      uid: `u${String(index)}`,
      cluster: name,
      revision: 'r1',
    }));
    expect(fleet.removal()).toEqual(['p', 'u', 'e', 'e', 'u', 'e']);
    expect(fleet.scale(2)).toEqual({ e: 1, u: 1 });
  });
});

describe('without division', () => {
  it('empties the dearest first, then the farthest, and local last', () => {
    const all = [
      cluster('local', { region: 'eu' }),
      cluster('dear', { price: 9 }),
      cluster('near', { price: 1, region: 'eu' }),
      cluster('far', { price: 1, region: 'us' }),
    ];
    const fleet = new Fleet({ placement: {}, clusters: all });
    fleet.pods = ['local', 'near', 'far', 'dear', 'local', 'dear'].map((name, index) => ({
      uid: `u${String(index)}`,
      cluster: name,
      revision: 'r1',
    }));
    expect(fleet.removal()).toEqual(['dear', 'dear', 'far', 'near', 'local', 'local']);
  });
});

describe('divided workloads', () => {
  it('goes down through the exact division of every size, with one write for each pod', () => {
    const fleet = new Fleet({ placement: weights(1, 2, 3), clusters });
    const costs = new Costs();
    for (let replicas = 1; replicas <= 24; replicas += 1) {
      fleet.scale(replicas);
      costs.follow(fleet);
    }
    expect(Math.max(...costs.writes.values())).toBe(1);
    fleet.scale(12);
    costs.follow(fleet);
    fleet.scale(24);
    costs.follow(fleet);
    expect(Math.max(...costs.writes.values())).toBe(1);
    const order = costs.order();
    for (let replicas = 23; replicas > 0; replicas -= 1) {
      const left = order.slice(24 - replicas);
      const counts = Object.fromEntries(
        [...new Set(left)].toSorted().map((name) => [name, left.filter((one) => one === name).length]),
      );
      expect(counts).toEqual(new Fleet({ placement: weights(1, 2, 3), clusters }).scale(replicas));
    }
  });
});

describe("KubeFed's arithmetic on the way down", () => {
  const limits = fc.record(
    {
      weight: fc.integer({ min: 1, max: 20 }),
      minReplicas: fc.nat(5),
      maxReplicas: fc.integer({ min: 5, max: 20 }),
    },
    { requiredKeys: ['weight', 'minReplicas'] },
  );
  const remainder = (clusters: object, rebalance: boolean): object => ({
    replicaScheduling: { clusterPreferences: { clusters, rebalance, division: 'Remainder' } },
  });

  it.each([true, false])('is the division of every size, for two clusters (rebalance %s)', (rebalance) => {
    fc.assert(
      fc.property(limits, limits, fc.integer({ min: 1, max: 40 }), (a, b, replicas) => {
        const placement = remainder({ a, b }, rebalance);
        const fleet = new Fleet({ placement, clusters, uid: 'u' });
        const full = fleet.scale(replicas);
        const shares = Object.entries({ a, b }).map(
          ([name, { weight, minReplicas: min, maxReplicas: max }]): RemainderShare => {
            return { name, weight, first: 0, min, max, current: full[name] ?? 0, capacity: undefined };
          },
        );
        for (let left = fleet.pods.length - 1; left > 0; left -= 1) {
          const wanted = divideRemainder(left, shares, { rebalance, key: 'u' }).counts;
          const counts = fleet.scale(left);
          expect({ a: 0, b: 0, ...counts }).toEqual(Object.fromEntries(wanted));
        }
      }),
    );
  });

  it('leaves one pod in each group that pods are to be spread over, whatever the minimums', () => {
    const spreadConstraints = [{ spreadByField: 'cluster', minGroups: 3 }];
    const heavy = { local: { weight: 10, minReplicas: 3 }, a: { weight: 1 }, b: { weight: 1 } };
    const fleet = new Fleet({ placement: { ...remainder(heavy, true), spreadConstraints }, clusters });
    expect(fleet.scale(3)).toEqual({ a: 1, b: 1, local: 1 });
    fleet.scale(24);
    expect(fleet.scale(3)).toEqual({ a: 1, b: 1, local: 1 });
  });
});

describe('deletion costs', () => {
  const pods = (...list: [string, number | undefined][]): CostedPod[] =>
    list.map(([cluster, cost], index) => ({ uid: `u${String(index)}`, cluster, cost }));

  it('writes nothing when the order is kept already', () => {
    expect(deletionCosts(['b', 'a', 'a'], pods(['a', undefined], ['a', undefined], ['b', -5]))).toEqual(new Map());
    expect(deletionCosts([], [])).toEqual(new Map());
  });

  it('puts a pod between two others', () => {
    expect(deletionCosts(['c', 'b', 'a'], pods(['a', 0], ['b', undefined], ['c', -1_000]))).toEqual(
      new Map([['u1', -111]]),
    );
  });

  it('moves a neighbour when there is no number left between', () => {
    expect(deletionCosts(['c', 'b', 'a'], pods(['a', 0], ['b', undefined], ['c', -1]))).toEqual(
      new Map([
        ['u1', -10_000],
        ['u2', -20_000],
      ]),
    );
    const limit = -(2 ** 31) + 2;
    expect(deletionCosts(['b', 'a'], pods(['a', limit], ['b', undefined])).get('u1')).toBeGreaterThan(limit);
  });

  it('makes the wanted order of whatever was there, and leaves it alone then', () => {
    const some = fc.array(
      fc.record({
        cluster: fc.constantFrom('a', 'b', 'c'),
        cost: fc.option(fc.integer({ min: -4_000, max: 4_000 }), { nil: undefined }),
      }),
      { maxLength: 25 },
    );
    fc.assert(
      fc.property(some, fc.nat(), (list, seed) => {
        const all = list.map((one, index) => ({ ...one, uid: `u${String(index)}` }));
        const order = all
          .map(({ cluster }) => cluster)
          .toSorted((a, b) => ((a.charCodeAt(0) * seed) % 7) - ((b.charCodeAt(0) * seed) % 7));
        if (seed % 2 === 0) order.reverse();
        const changes = deletionCosts(order, all);
        const after = all.map((pod) => ({ ...pod, cost: changes.get(pod.uid) ?? pod.cost ?? 0 }));
        const sorted = after.toSorted((a, b) => a.cost - b.cost);
        // Whatever stands in for whom: clusters come in the wanted order, and different neighbours have different costs.
        expect(sorted.map(({ cluster }) => cluster)).toEqual(order);
        for (const [index, pod] of sorted.entries()) {
          const next = sorted[index + 1];
          if (next !== undefined && next.cluster !== pod.cluster) expect(next.cost).toBeGreaterThan(pod.cost);
          expect(Number.isInteger(pod.cost)).toBe(true);
        }
        expect(deletionCosts(order, after)).toEqual(new Map());
      }),
    );
  });

  it('tells its own values from those of others', () => {
    const pod = (annotations?: Record<string, string>) => ({
      metadata: { name: 'p', ...(annotations ? { annotations } : {}) },
    });
    expect(costAnnotations(5)).toEqual({
      'controller.kubernetes.io/pod-deletion-cost': '5',
      [OWN_COST_ANNOTATION]: '5',
    });
    expect(deletionCostOf(pod())).toEqual({ cost: undefined, foreign: false });
    expect(deletionCostOf(pod(costAnnotations(-1_000)))).toEqual({ cost: -1_000, foreign: false });
    expect(deletionCostOf(pod({ [DELETION_COST_ANNOTATION]: '7' }))).toEqual({
      cost: undefined,
      foreign: true,
    });
    const edited = { ...costAnnotations(-1_000), [DELETION_COST_ANNOTATION]: '6' };
    expect(deletionCostOf(pod(edited))).toEqual({ cost: undefined, foreign: true });
    for (const text of ['1e999', 'NaN', '', '0x10', '99999999999']) {
      const forged = { [DELETION_COST_ANNOTATION]: text, [OWN_COST_ANNOTATION]: text };
      expect(deletionCostOf(pod(forged))).toEqual({ cost: undefined, foreign: true });
    }
  });
});
