import { expect, test } from 'vitest';
import type { WorkloadMigration } from '../../src/api/workload-migration.ts';
import type { PlacementFacts } from '../../src/placement/decision.ts';
import { isUnderWay, type Migrating, whyNotOnTheWay } from '../../src/placement/migrating.ts';
import { nextPlace } from '../../src/placement/next-place.ts';
import { cluster, Fleet } from './fleet.ts';

/** Where the next pod goes while its workload is migrated: its way and its policy both have a say. */
const CLUSTERS = ['east', 'west', 'north'].map((name) => cluster(name));
const TO_WEST: Migrating = { from: 'east', to: 'west', by: 'shop/now' };
const OUT: Migrating = { from: 'east', to: undefined, by: 'shop/now' };
const weighted = (weights: Record<string, number>): object => ({
  replicaScheduling: {
    replicaSchedulingType: 'Divided',
    replicaDivisionPreference: 'Weighted',
    weightPreference: {
      staticWeightList: Object.entries(weights).map(([name, weight]) => ({
        targetCluster: { clusterNames: [name] },
        weight,
      })),
    },
  },
});
const groups = (...names: string[]): object => ({
  clusterAffinities: names.map((name) => ({ affinityName: name, clusterNames: [name] })),
});
const tiers = (first: string, ...later: string[]): object => ({
  clusterAffinity: { clusterNames: [first], overflowAffinities: later.map((name) => ({ clusterNames: [name] })) },
});

/** Three pods in east; the clusters that take the one that comes instead of one of them, or why west does not. */
function next(placement: object, migrating: Migrating, more: Partial<PlacementFacts> = {}): string {
  const fleet = new Fleet({ placement, clusters: CLUSTERS, room: { east: 9, west: 9, north: 9 }, uid: 'w' });
  fleet.replicas = 3;
  fleet.pods = ['a', 'b'].map((uid) => ({ uid, cluster: 'east', revision: fleet.revision }));
  const { allowed, refusals } = nextPlace({ ...fleet.facts(), migrating, ...more });
  if (allowed.length > 0)
    return allowed
      .map((one) => one.cluster)
      .toSorted()
      .join();
  const west = refusals.find((one) => one.cluster === 'west');
  return `${west?.reason}: ${west?.message}`;
}

test.each([
  ['a tier that comes later', tiers('east', 'west'), TO_WEST, 'west'],
  ['any of a tier', { clusterAffinity: { clusterNames: ['east', 'west', 'north'] } }, TO_WEST, 'west'],
  ['anywhere but there', { clusterAffinity: { clusterNames: ['east', 'west', 'north'] } }, OUT, 'north,west'],
  ['weights that would have it elsewhere', weighted({ east: 3, west: 1 }), TO_WEST, 'west'],
  ['a policy that does not choose it', tiers('east', 'north'), TO_WEST, 'NotSelected: the policy does not name it'],
  [
    'a division that gives it nothing',
    weighted({ east: 1, north: 1 }),
    TO_WEST,
    'NoShare: the policy gives it no share',
  ],
  ['the group after its own', groups('east', 'west'), TO_WEST, 'west'],
  ['the group before its own, by the word of somebody', groups('west', 'east', 'north'), TO_WEST, 'west'],
  ['out of its group, the first that has room, as if it came now', groups('north', 'east', 'west'), OUT, 'north'],
  [
    'a group that it stays in',
    {
      clusterAffinities: [
        { affinityName: 'main', clusterNames: ['north'] },
        { affinityName: 'both', clusterNames: ['east', 'west'] },
      ],
    },
    OUT,
    'west',
  ],
])('%s', (_, placement, way, expected) => {
  expect(next(placement, way)).toBe(expected);
});

test('out of its group pods go to the first one that has room for all of them', () => {
  const fleet = new Fleet({
    placement: groups('north', 'east', 'west'),
    clusters: CLUSTERS,
    room: { north: 2, east: 9, west: 9 },
    uid: 'w',
  });
  fleet.replicas = 3;
  fleet.pods = ['a', 'b'].map((uid) => ({ uid, cluster: 'east', revision: fleet.revision }));
  const { allowed, plan } = nextPlace({ ...fleet.facts(), migrating: OUT });
  expect([allowed.map((one) => one.cluster), plan.affinityName]).toEqual([['west'], 'west']);
});

test('without room where it leads the pod waits, though there is room elsewhere', () => {
  const fleet = new Fleet({
    placement: tiers('east', 'west'),
    clusters: CLUSTERS,
    room: { east: 9, west: 0 },
    uid: 'w',
  });
  fleet.replicas = 1;
  expect(nextPlace({ ...fleet.facts(), migrating: TO_WEST }).allowed).toEqual([]);
  expect(nextPlace(fleet.facts()).allowed).toHaveLength(1);
});

test('others are told by whose wish', () => {
  expect(whyNotOnTheWay('north', TO_WEST)).toBe(
    'pods of the workload are being moved to member west (WorkloadMigration shop/now)',
  );
  expect(whyNotOnTheWay('east', OUT)).toBe(
    'pods of the workload are being moved out of member east (WorkloadMigration shop/now)',
  );
  expect(whyNotOnTheWay('north', OUT)).toBeUndefined();
});

const fits = { type: 'Fits', status: 'True', observedGeneration: 2, reason: 'AllFit', message: '' } as const;
const lastTransitionTime = '2026-01-01T00:00:00Z';
const migration = (
  spec: object = {},
  status: object = {},
  metadata: object = {},
  condition: object = {},
): WorkloadMigration => ({
  metadata: { name: 'now', namespace: 'shop', generation: 2, ...metadata },
  spec: { all: true, from: 'east', unmovable: 'Refuse', dryRun: false, suspend: false, ...spec },
  status: { observedGeneration: 2, conditions: [{ ...fits, lastTransitionTime, ...condition }], ...status },
});

test.each([
  ['what fits', migration(), true],
  ['what does not fit', migration({}, {}, {}, { status: 'False' }), false],
  ['what fitted as it was asked for before', migration({}, {}, {}, { observedGeneration: 1 }), false],
  ['what was edited since', migration({}, {}, { generation: 3 }), false],
  ['what is stopped', migration({ suspend: true }), false],
  ['what is only asked', migration({ dryRun: true }), false],
  ['what is over', migration({}, { finishTime: lastTransitionTime }), false],
  ['what is being deleted', migration({}, {}, { deletionTimestamp: lastTransitionTime }), false],
  ['what nobody has looked at', migration({}, { conditions: [] }), false],
])('%s is under way or not', (_, one, expected) => {
  expect(isUnderWay(one)).toBe(expected);
});
