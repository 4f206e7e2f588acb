import { describe, expect, it } from 'vitest';
import { forPlacedGang, gangOrder } from '../../src/placement/gang-order.ts';
import { nextPlace } from '../../src/placement/next-place.ts';
import { cluster, Fleet } from './fleet.ts';

const clusters = [cluster('local'), cluster('a', { price: 2 }), cluster('b', { price: 1 }), cluster('c', { price: 3 })];
const fleet = (placement: object, room?: Record<string, number>): Fleet =>
  new Fleet({
    placement: { scoreWeights: { locality: 0, freeRoom: 0, images: 0 }, ...placement },
    clusters,
    ...(room && { room }),
  });
const order = (one: Fleet, count: number): readonly string[] => gangOrder(one.facts(), count).order;
const why = (one: Fleet, count: number, name: string): string | undefined =>
  gangOrder(one.facts(), count).refusals.find((refusal) => refusal.cluster === name)?.message;
const tier = (name: string, more: object = {}): object => ({ clusterNames: [name], ...more });

describe('where a gang may go', () => {
  it('is the host, then the members by score', () => {
    expect(order(fleet({}), 4)).toEqual(['local', 'b', 'a', 'c']);
  });
  it('is tier after tier, without those that may not have as many', () => {
    const one = fleet({
      clusterAffinity: { ...tier('c'), overflowAffinities: [tier('a', { max: 3 }), tier('b')] },
    });
    expect(order(one, 3)).toEqual(['c', 'a', 'b']);
    expect(order(one, 4)).toEqual(['c', 'b']);
    expect(why(one, 4, 'a')).toBe('the policy allows at most 3 pods in a');
    one.pods = [{ uid: 'x', cluster: 'a', revision: 'r1' }];
    expect(order(one, 3)).toEqual(['c', 'b']);
  });
  it('waits as long as pods do before it looks at the next tier', () => {
    const one = fleet({
      clusterAffinity: { ...tier('c', { tryNextAfter: '30s' }), overflowAffinities: [tier('b')] },
    });
    expect(order(one, 2)).toEqual(['c']);
    one.waitedMs = 30_000;
    expect(order(one, 2)).toEqual(['c', 'b']);
  });
  it('has nothing to do with shares, but with limits and with who has none', () => {
    const weights = {
      staticWeightList: [
        { targetCluster: tier('a'), weight: 1 },
        { targetCluster: tier('b'), weight: 1 },
      ],
    };
    expect(order(fleet({ replicaScheduling: { weightPreference: weights } }), 9)).toEqual(['b', 'a']);
    const limits = { clusters: { a: { weight: 1, maxReplicas: 8 }, c: { weight: 1 } } };
    expect(order(fleet({ replicaScheduling: { clusterPreferences: limits } }), 9)).toEqual(['c']);
    expect(order(fleet({ replicaScheduling: { clusterPreferences: limits } }), 8)).toEqual(['a', 'c']);
  });
  it('leaves out what has no room at all', () => {
    const one = fleet({}, { local: 0, b: 0 });
    expect(order(one, 2)).toEqual(['a', 'c']);
    expect(why(one, 2, 'b')).toBe('it has no room for the pod');
  });
});

describe('a pod whose gang has its place', () => {
  it('is not kept out by numbers, but by what the policy does not choose', () => {
    const one = fleet({ clusterAffinity: { ...tier('a', { max: 1 }), overflowAffinities: [tier('b', { max: 1 })] } });
    one.replicas = 9;
    one.pods = [
      { uid: 'x', cluster: 'a', revision: 'r1' },
      { uid: 'y', cluster: 'b', revision: 'r1' },
    ];
    one.impossible = { local: 'x', b: 'pinned elsewhere', c: 'x' };
    expect(one.decide().allowed).toEqual([]);
    const facts = one.facts();
    expect(
      nextPlace({ ...facts, placement: forPlacedGang(facts.placement) }).allowed.map((place) => place.cluster),
    ).toEqual(['a']);
    one.impossible = { local: 'x', a: 'x', b: 'x' };
    const elsewhere = one.facts();
    expect(nextPlace({ ...elsewhere, placement: forPlacedGang(elsewhere.placement) }).allowed).toEqual([]);
  });
});
