import { describe, expect, test } from 'vitest';
import { betterPlace } from '../../src/placement/better-place.ts';
import type { BetterPlace, Displacement } from '../../src/placement/better-place.ts';
import type { Decision } from '../../src/placement/decision.ts';
import { nextPlace } from '../../src/placement/next-place.ts';
import type { RefusalReason } from '../../src/placement/placement-refusal.ts';
import { withoutOne } from '../../src/placement/workload.ts';
import { cluster, Fleet } from './fleet.ts';

const HOME_FIRST = { clusterAffinity: { clusterNames: ['home'], overflowAffinities: [{ clusterNames: ['away'] }] } };
const byWeight = (home: number, away: number): object => ({
  replicaScheduling: {
    replicaSchedulingType: 'Divided',
    replicaDivisionPreference: 'Weighted',
    weightPreference: {
      staticWeightList: [
        { targetCluster: { clusterNames: ['home'] }, weight: home },
        { targetCluster: { clusterNames: ['away'] }, weight: away },
      ],
    },
  },
});
const clusters = [cluster('home'), cluster('away')];

function better(fleet: Fleet, from: string): BetterPlace | undefined {
  const facts = fleet.facts();
  const pods = withoutOne(facts.workload.pods, fleet.revision, from);
  const without = { ...facts, workload: { ...facts.workload, pods } };
  return betterPlace(without, nextPlace(without), from);
}

/** What each reason for which the pod's own cluster would not take it now says of the pod, with a place elsewhere. */
const BY_REASON: Readonly<Record<RefusalReason, Displacement | undefined>> = {
  NotSelected: 'PolicyChanged',
  OtherGroup: 'PolicyChanged',
  NoShare: 'PolicyChanged',
  HasItsShare: 'DivisionDrift',
  AtMax: 'DivisionDrift',
  LaterTier: 'Repatriate',
  Unavailable: undefined,
  Impossible: undefined,
  Tainted: undefined,
  Avoided: undefined,
  Migrating: undefined,
  Spread: undefined,
  LocalFirst: undefined,
  NoRoom: undefined,
};

describe('by the decision about one like it', () => {
  const home = { cluster: 'home', score: 1 };
  const away = { cluster: 'away', score: 0 };
  const REASONS = Object.keys(BY_REASON) as RefusalReason[];
  /** Of a pod in away, which does not take it for that reason. */
  const decided = (
    reason: RefusalReason | undefined,
    allowed: Decision['allowed'] = [home],
    tiers: Readonly<Record<string, number>> = { home: 0, away: 1 },
  ): Decision => ({
    allowed,
    refusals: reason === undefined ? [] : [{ cluster: 'away', reason, message: 'it says why' }],
    plan: { affinityName: undefined, targets: undefined, tiers: new Map(Object.entries(tiers)) },
  });
  const facts = new Fleet({ placement: {}, clusters }).facts();
  const found = (decision: Decision, counts?: (reason: Displacement) => boolean): Displacement | undefined =>
    betterPlace(facts, decision, 'away', counts)?.strategy;

  test.each(Object.entries(BY_REASON) as [RefusalReason, Displacement | undefined][])(
    'away refuses it with %s: %s, with its words',
    (reason, strategy) => {
      const better = strategy && { strategy, cluster: 'home', why: 'it says why' };
      expect(betterPlace(facts, decided(reason), 'away')).toEqual(better);
    },
  );

  test.each<[what: string, allowed: Decision['allowed'], tiers: Readonly<Record<string, number>>]>([
    ['is in the same tier', [home], { home: 0, away: 0 }],
    ['is in a later tier', [home], { home: 2, away: 1 }],
    ['has no tier', [home], { away: 1 }],
    ['is its own', [away], { home: 0, away: 1 }],
  ])('it does not go home where the best place %s', (_, allowed, tiers) => {
    expect(found(decided('LaterTier', allowed, tiers))).toBeUndefined();
  });

  test.each(REASONS)('it stays where no place is left, whatever is said of its own: %s', (reason) => {
    expect(found(decided(reason, []))).toBeUndefined();
  });

  test.each(REASONS)('it stays where its policy does not let that reason count: %s', (reason) => {
    expect(found(decided(reason), (one) => one !== BY_REASON[reason])).toBeUndefined();
  });

  test('it stays where its own cluster would take it, be another one better', () => {
    expect(found(decided(undefined, [home, away]))).toBeUndefined();
  });
});

describe('a pod would be elsewhere if it came now', () => {
  test('at home, once that has room again', () => {
    const fleet = new Fleet({ placement: HOME_FIRST, clusters, room: { home: 2, away: 9 } });
    expect(fleet.scale(4)).toEqual({ home: 2, away: 2 });
    expect(better(fleet, 'away')).toBeUndefined();
    fleet.room['home'] = 3;
    expect(better(fleet, 'away')).toEqual({
      strategy: 'Repatriate',
      cluster: 'home',
      why: 'home comes first and has room',
    });
    expect(better(fleet, 'home')).toBeUndefined();
  });

  test('not at home while that may take no more, is out of reach, avoided, or closed', () => {
    const limited = { clusterAffinity: { ...HOME_FIRST.clusterAffinity, max: 2 } };
    const fleet = new Fleet({ placement: limited, clusters, room: { home: 9, away: 9 } });
    fleet.scale(4);
    expect(better(fleet, 'away')).toBeUndefined();
    fleet.edit(HOME_FIRST);
    expect(better(fleet, 'away')).toMatchObject({ strategy: 'Repatriate' });
    fleet.clusters = [cluster('home', { unavailable: 'it does not answer' }), cluster('away')];
    expect(better(fleet, 'away')).toBeUndefined();
    fleet.clusters = clusters;
    fleet.avoided = [{ cluster: 'home', reason: 'r', message: 'm', since: fleet.now, until: fleet.now + 9 }];
    expect(better(fleet, 'away')).toBeUndefined();
  });

  test('where it has no share any more, or too many', () => {
    const fleet = new Fleet({ placement: byWeight(1, 1), clusters });
    expect(fleet.scale(8)).toEqual({ home: 4, away: 4 });
    expect(better(fleet, 'home')).toBeUndefined();
    expect(better(fleet, 'away')).toBeUndefined();
    fleet.edit(byWeight(3, 1));
    expect(better(fleet, 'away')).toEqual({
      strategy: 'DivisionDrift',
      cluster: 'home',
      why: 'it has its share of 8 replicas (3 of 2)',
    });
    expect(better(fleet, 'home')).toBeUndefined();
  });

  test('where its tier may take less now, without division, too', () => {
    const { clusterAffinity } = HOME_FIRST;
    const fleet = new Fleet({ placement: HOME_FIRST, clusters });
    expect(fleet.scale(4)).toEqual({ home: 4 });
    expect(better(fleet, 'home')).toBeUndefined();
    fleet.edit({ clusterAffinity: { ...clusterAffinity, max: 2 } });
    expect(better(fleet, 'home')).toMatchObject({ strategy: 'DivisionDrift', cluster: 'away' });
  });

  test('in an earlier tier by a division, where both lack pods and it would have to wait for its own', () => {
    const placement = {
      clusterAffinity: { ...HOME_FIRST.clusterAffinity, tryNextAfter: '5m' },
      replicaScheduling: { replicaDivisionPreference: 'Aggregated' },
    };
    const fleet = new Fleet({ placement, clusters, room: { home: 2, away: 9 } });
    fleet.waitedMs = 300_000;
    expect(fleet.scale(4)).toEqual({ away: 2, home: 2 });
    fleet.pods = fleet.pods.filter(({ uid }) => uid !== 'p1');
    expect(fleet.counts()).toEqual({ away: 2, home: 1 });
    expect(better(fleet, 'away')).toBeUndefined();
    fleet.waitedMs = 0;
    expect(better(fleet, 'away')).toMatchObject({ strategy: 'Repatriate', cluster: 'home' });
  });

  test('by shares of today, when a member came', () => {
    const fleet = new Fleet({ placement: byWeight(1, 1), clusters: [cluster('away')] });
    expect(fleet.scale(4)).toEqual({ away: 4 });
    expect(better(fleet, 'away')).toBeUndefined();
    fleet.clusters = clusters;
    expect(better(fleet, 'away')).toMatchObject({ strategy: 'DivisionDrift', cluster: 'home' });
  });

  test('where the policy chooses now', () => {
    const fleet = new Fleet({ placement: { clusterAffinity: { clusterNames: ['away'] } }, clusters });
    fleet.scale(2);
    fleet.edit({ clusterAffinity: { clusterNames: ['home'] } });
    expect(better(fleet, 'away')).toMatchObject({ strategy: 'PolicyChanged', cluster: 'home' });
    fleet.clusters = [cluster('away'), cluster('home', { unavailable: 'it does not answer' })];
    expect(better(fleet, 'away')).toBeUndefined();
  });

  test('not for a better score, nor for a taint that keeps new pods away', () => {
    const fleet = new Fleet({ placement: {}, clusters });
    fleet.scale(1);
    const [pod] = fleet.pods;
    const from = pod?.cluster ?? '';
    fleet.clusters = clusters.map((one) =>
      one.name === from ? cluster(from, { taints: [{ key: 'k', effect: 'NoSchedule' }] }) : one,
    );
    expect(better(fleet, from)).toBeUndefined();
    fleet.clusters = clusters;
    fleet.room = { home: 1_000, away: 1_000, [from]: 1 };
    expect(better(fleet, from)).toBeUndefined();
  });
});
