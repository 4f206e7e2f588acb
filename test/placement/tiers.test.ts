import { describe, expect, it } from 'vitest';
import { avoid } from '../../src/placement/avoided.ts';
import { cluster, Fleet } from './fleet.ts';

const all = [cluster('local'), cluster('a'), cluster('b')];
const overflow = (first: object, ...others: object[]): object => ({
  clusterAffinity: { ...first, overflowAffinities: others },
});
const localThenAThenB = overflow({ clusterNames: ['local'] }, { clusterNames: ['a'], max: 3 }, { clusterNames: ['b'] });

describe('overflow tiers', () => {
  it('fills local, then a up to its maximum, then b', () => {
    const fleet = new Fleet({ placement: localThenAThenB, clusters: all, room: { local: 10 } });
    expect(fleet.scale(10)).toEqual({ local: 10 });
    expect(fleet.scale(12)).toEqual({ a: 2, local: 10 });
    expect(fleet.scale(20)).toEqual({ a: 3, b: 7, local: 10 });
  });

  it('tells each cluster apart in the reasons', () => {
    const fleet = new Fleet({ placement: localThenAThenB, clusters: all, room: { local: 0, b: 0 } });
    fleet.scale(3);
    fleet.replicas = 4;
    expect(fleet.decide().refusals).toEqual([
      { cluster: 'a', reason: 'AtMax', message: 'the policy allows at most 3 pods in a' },
      { cluster: 'b', reason: 'NoRoom', message: 'it has no room for the pod' },
      { cluster: 'local', reason: 'NoRoom', message: 'it has no room for the pod' },
    ]);
    fleet.pods = [];
    expect(fleet.decide()).toMatchObject({
      allowed: [{ cluster: 'a' }],
      refusals: [
        { cluster: 'b', reason: 'LaterTier', message: 'a comes first and has room' },
        { cluster: 'local', reason: 'NoRoom' },
      ],
    });
  });

  it('empties the last tier first', () => {
    const fleet = new Fleet({ placement: localThenAThenB, clusters: all, room: { local: 10 } });
    fleet.scale(20);
    expect(fleet.scale(13)).toEqual({ a: 3, local: 10 });
    expect(fleet.scale(11)).toEqual({ a: 1, local: 10 });
    expect(fleet.scale(2)).toEqual({ local: 2 });
  });

  it('takes a maximum as a percentage of the replicas, rounded down', () => {
    const placement = overflow({ clusterNames: ['local'], max: '30%' }, { clusterNames: ['a', 'b'], max: '50%' });
    const fleet = new Fleet({ placement, clusters: all });
    expect(fleet.scale(19)).toEqual({ a: 9, local: 5 });
    expect(fleet.decide().refusals).toEqual([
      { cluster: 'a', reason: 'AtMax', message: 'the policy allows at most 9 pods in a and b together' },
      { cluster: 'b', reason: 'AtMax', message: 'the policy allows at most 9 pods in a and b together' },
      { cluster: 'local', reason: 'AtMax', message: 'the policy allows at most 5 pods in local' },
    ]);
  });

  it('counts the pods of a revision, so that a roll-out ends as it began', () => {
    const placement = overflow({ clusterNames: ['a'], max: 3 }, { clusterNames: ['b'] });
    const fleet = new Fleet({ placement, clusters: all });
    expect(fleet.scale(8)).toEqual({ a: 3, b: 5 });
    expect(fleet.rollOut(4, () => 0)).toEqual({ a: 3, b: 5 });
    expect(fleet.rollOut(1, (old) => old.length - 1)).toEqual({ a: 3, b: 5 });
  });

  it('lets pods wait for a tier before the next one is tried', () => {
    const placement = overflow(
      { clusterNames: ['local'], tryNextAfter: '90s' },
      { clusterNames: ['a'], tryNextAfter: '1m' },
      { clusterNames: ['b'] },
    );
    const fleet = new Fleet({ placement, clusters: all, room: { local: 0, a: 0 } });
    fleet.replicas = 1;
    fleet.waitedMs = 89_000;
    expect(fleet.decide().refusals).toContainEqual({
      cluster: 'a',
      reason: 'LaterTier',
      message: 'it is tried 90s after the pod came, if the clusters before it still have no room',
    });
    fleet.waitedMs = 90_000;
    expect(fleet.decide().refusals).toContainEqual(expect.objectContaining({ cluster: 'a', reason: 'NoRoom' }));
    expect(fleet.decide().allowed).toEqual([]);
    fleet.waitedMs = 150_000;
    expect(fleet.decide().allowed).toMatchObject([{ cluster: 'b' }]);
  });

  it('does not wait for a tier that cannot be used or may take no more', () => {
    const placement = overflow(
      { clusterNames: ['local'], max: 1, tryNextAfter: '1h' },
      { clusterNames: ['a'], tryNextAfter: '1h' },
      { clusterNames: ['b'] },
    );
    const clusters = [cluster('local'), cluster('a', { unavailable: 'it is not ready' }), cluster('b')];
    expect(new Fleet({ placement, clusters }).scale(3)).toEqual({ b: 2, local: 1 });
  });

  it('divides by room within a tier, tier after tier', () => {
    const placement = {
      ...overflow({ clusterNames: ['local'] }, { clusterNames: ['a', 'b'] }),
      replicaScheduling: { weightPreference: { dynamicWeight: 'AvailableReplicas' } },
    };
    const fleet = new Fleet({ placement, clusters: all, room: { local: 5, a: 10, b: 20 } });
    expect(fleet.scale(11)).toEqual({ a: 2, b: 4, local: 5 });
    expect(fleet.scale(8)).toEqual({ a: 1, b: 2, local: 5 });
    expect(fleet.scale(4)).toEqual({ local: 4 });
  });

  it('leaves out a member that refused a pod until that is forgotten', () => {
    const fleet = new Fleet({ placement: localThenAThenB, clusters: all, room: { local: 0 } });
    const refusal = { cluster: 'a', reason: 'MemberQuotaExceeded', message: 'exceeded quota: pods=10' };
    fleet.avoided = [...avoid([], refusal, fleet.now, 300_000)];
    expect(fleet.scale(1)).toEqual({ b: 1 });
    expect(fleet.decide().refusals).toContainEqual({
      cluster: 'a',
      reason: 'Avoided',
      message: 'it refused a pod of the workload and is avoided until 2026-01-01T00:05:00Z: exceeded quota: pods=10',
    });
    fleet.now += 300_000;
    expect(fleet.scale(2)).toEqual({ a: 1, b: 1 });
  });
});

describe('without tiers and division', () => {
  it('goes local while there is room, then to the best cluster', () => {
    const fleet = new Fleet({ placement: {}, clusters: all, room: { local: 2, a: 5, b: 50 } });
    expect(fleet.scale(4)).toEqual({ b: 2, local: 2 });
  });

  it('does not go local where that is not chosen', () => {
    const fleet = new Fleet({
      placement: { clusterAffinity: { exclude: ['local'] } },
      clusters: all,
      room: { a: 1, b: 50 },
    });
    expect(fleet.scale(2)).toEqual({ b: 2 });
    expect(fleet.decide().refusals).toContainEqual({
      cluster: 'local',
      reason: 'NotSelected',
      message: 'the policy excludes it',
    });
  });

  it('stays with the cluster it has pods in while no other is much better', () => {
    const clusters = [cluster('a', { price: 1 }), cluster('b', { price: 1 })];
    const fleet = new Fleet({ placement: {}, clusters, room: { a: 100, b: 99 } });
    fleet.scale(1);
    fleet.room = { a: 100, b: 120 };
    expect(fleet.scale(2)).toEqual({ a: 2 });
    fleet.room = { a: 30, b: 1_000 };
    expect(fleet.scale(3)).toEqual({ a: 2, b: 1 });
  });
});

describe('ordered groups', () => {
  const groups = (...list: object[]): object => ({ clusterAffinities: list });
  const two = groups({ affinityName: 'main', clusterNames: ['a'] }, { affinityName: 'backup', clusterNames: ['b'] });

  it('lives in the first group that has room for all', () => {
    const fleet = new Fleet({ placement: two, clusters: all, room: { a: 5, b: 50 } });
    expect(fleet.scale(5)).toEqual({ a: 5 });
    const other = new Fleet({ placement: two, clusters: all, room: { a: 5, b: 50 } });
    expect(other.scale(6)).toEqual({ b: 6 });
    expect(other.plan?.affinityName).toBe('backup');
    expect(other.decide().refusals).toContainEqual({
      cluster: 'a',
      reason: 'OtherGroup',
      message: 'the workload lives in group backup, not main',
    });
  });

  it('stays in its group when that is full', () => {
    const fleet = new Fleet({ placement: two, clusters: all, room: { a: 5, b: 50 } });
    fleet.scale(5);
    expect(fleet.scale(9)).toEqual({ a: 5 });
    fleet.plan = undefined;
    expect(fleet.scale(9)).toEqual({ a: 5 });
  });

  it('goes on to a later group when none of its clusters can be used, and does not come back by itself', () => {
    const fleet = new Fleet({ placement: two, clusters: all });
    fleet.scale(2);
    fleet.clusters = [cluster('a', { unavailable: 'it is not ready' }), cluster('b')];
    expect(fleet.scale(3)).toEqual({ a: 2, b: 1 });
    fleet.clusters = all;
    expect(fleet.scale(4)).toEqual({ a: 2, b: 2 });
    fleet.scale(0);
    expect(fleet.scale(1)).toEqual({ a: 1 });
  });

  it('takes the first with any room when none has room for all', () => {
    const fleet = new Fleet({ placement: two, clusters: all, room: { a: 0, b: 3 } });
    expect(fleet.scale(9)).toEqual({ b: 3 });
  });

  it('can have tiers of its own', () => {
    const placement = groups(
      { affinityName: 'main', clusterNames: ['a'], overflowAffinities: [{ clusterNames: ['b'], max: 2 }] },
      { affinityName: 'home', clusterNames: ['local'] },
    );
    expect(new Fleet({ placement, clusters: all, room: { a: 3 } }).scale(5)).toEqual({ a: 3, b: 2 });
    expect(new Fleet({ placement, clusters: all, room: { a: 3 } }).scale(6)).toEqual({ local: 6 });
  });
});
