import { describe, expect, it } from 'vitest';
import { gangOrder, placementFor } from '../../src/placement/gang-order.ts';
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
  const marks = {
    name: 'p',
    labels: { 'spillway.dev/gang': 'ring' },
    annotations: { 'spillway.dev/gang-placed-at': '2026-01-01T00:00:00Z' },
  };
  const allowed = (one: Fleet, metadata: object = marks): string[] => {
    const facts = one.facts();
    const placement = placementFor({ metadata: metadata as typeof marks }, facts);
    return nextPlace({ ...facts, placement }).allowed.map((place) => place.cluster);
  };

  it('is not kept out by how the workload is divided, nor by what other tiers wait for', () => {
    const weights = {
      staticWeightList: [
        { targetCluster: tier('a'), weight: 9 },
        { targetCluster: tier('b'), weight: 1 },
      ],
    };
    const divided = fleet({ replicaScheduling: { weightPreference: weights, whenFull: 'Wait' } });
    divided.replicas = 4;
    divided.impossible = { a: 'pinned elsewhere' };
    divided.pods = [1, 2, 3].map((uid) => ({ uid: String(uid), cluster: 'b', revision: 'r1' }));
    expect(allowed(divided)).toEqual(['b']);
    divided.impossible = { a: 'x', b: 'x' };
    expect(allowed(divided)).toEqual([]);
    const waits = fleet({ clusterAffinity: { ...tier('a', { tryNextAfter: '1h' }), overflowAffinities: [tier('b')] } });
    waits.impossible = { a: 'pinned elsewhere' };
    waits.room = { local: 9, a: 9, b: 9, c: 9 };
    expect(allowed(waits)).toEqual(['b']);
  });

  it('is kept out by what the policy does not choose, and by limits, whoever wrote that it has a place', () => {
    const one = fleet({ clusterAffinity: { ...tier('a', { max: 2 }), overflowAffinities: [tier('b', { max: 1 })] } });
    one.replicas = 9;
    one.pods = [{ uid: 'x', cluster: 'a', revision: 'r1' }];
    one.impossible = { local: 'x', b: 'pinned elsewhere', c: 'x' };
    expect(allowed(one)).toEqual(['a']);
    one.pods.push({ uid: 'y', cluster: 'a', revision: 'r1' });
    expect(allowed(one)).toEqual([]);
    one.pods = [];
    one.impossible = { local: 'x', a: 'x', b: 'x' };
    expect(allowed(one)).toEqual([]);
    const limits = { clusters: { a: { weight: 1, maxReplicas: 1 } } };
    const preferred = fleet({ replicaScheduling: { clusterPreferences: limits } });
    expect(allowed(preferred)).toEqual(['a']);
    preferred.pods = [{ uid: 'x', cluster: 'a', revision: 'r1' }];
    expect(allowed(preferred)).toEqual([]);
  });

  it('has to be of a gang', () => {
    const one = fleet({ clusterAffinity: { ...tier('a', { tryNextAfter: '1h' }), overflowAffinities: [tier('b')] } });
    one.room = { a: 0, b: 9 };
    expect(allowed(one)).toEqual(['b']);
    expect(allowed(one, { ...marks, labels: {} })).toEqual([]);
  });
});
