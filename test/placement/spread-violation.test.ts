import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { betterPlace } from '../../src/placement/better-place.ts';
import type { BetterPlace } from '../../src/placement/better-place.ts';
import type { Cluster } from '../../src/api/cluster.ts';
import { nextPlace } from '../../src/placement/next-place.ts';
import { spreadToMend } from '../../src/placement/spread-violation.ts';
import { withoutOne } from '../../src/placement/workload.ts';
import { cluster, Fleet } from './fleet.ts';

const EU_1 = cluster('eu-1', { region: 'eu', zones: ['a'], labels: { rack: 'r1' } });
const EU_2 = cluster('eu-2', { region: 'eu', zones: ['b'], labels: { rack: 'r1' } });
const US_1 = cluster('us-1', { region: 'us', zones: ['c'], labels: { rack: 'r2' } });
const ANYWHERE = cluster('anywhere');
const EVENLY = { replicaScheduling: {} };

/** A workload whose pods of revision r1 are so, whoever put them there. */
function fleetOf(
  counts: Record<string, number>,
  spread: object[],
  o: { clusters?: Cluster[]; more?: object; room?: Record<string, number> } = {},
): Fleet {
  const { clusters = [EU_1, EU_2, US_1], more = {}, room } = o;
  const fleet = new Fleet({
    placement: { spreadConstraints: spread, ...more },
    clusters,
    ...(room === undefined ? {} : { room }),
  });
  for (const [name, count] of Object.entries(counts)) {
    for (let index = 0; index < count; index += 1)
      fleet.pods.push({ uid: `${name}-${index}`, cluster: name, revision: 'r1' });
  }
  fleet.replicas = fleet.pods.length;
  fleet.refresh();
  return fleet;
}

function better(fleet: Fleet, from: string, counts?: (strategy: string) => boolean): BetterPlace | undefined {
  const facts = fleet.facts();
  const pods = withoutOne(facts.workload.pods, fleet.revision, from);
  const without = { ...facts, workload: { ...facts.workload, pods } };
  return betterPlace(without, nextPlace(without), from, counts);
}

/** By cluster that has pods where one of them would go, and why. */
const all = (fleet: Fleet): Record<string, string> =>
  Object.fromEntries(
    Object.keys(fleet.counts()).flatMap((from) => {
      const found = better(fleet, from, (strategy) => strategy === 'SpreadViolation');
      return found === undefined ? [] : [[from, `${found.cluster}: ${found.why}`]];
    }),
  );

const SOFT = { whenUnsatisfiable: 'ScheduleAnyway' };

describe('pods that are spread otherwise than their policy asks', () => {
  test.each<[string, Fleet, Record<string, string>]>([
    ['without constraints', fleetOf({ 'eu-1': 3 }, []), {}],
    ['as they are to be', fleetOf({ 'eu-1': 2, 'us-1': 1 }, [{ spreadByField: 'region', minGroups: 2 }]), {}],
    [
      'in too few regions',
      fleetOf({ 'eu-1': 2, 'eu-2': 1 }, [{ spreadByField: 'region', minGroups: 2 }]),
      {
        'eu-1': 'us-1: its pods are in 1 values of region and not in 2',
        'eu-2': 'us-1: its pods are in 1 values of region and not in 2',
      },
    ],
    [
      'in too few zones, when that is only wished for',
      fleetOf({ 'eu-1': 3 }, [{ spreadByField: 'zone', minGroups: 2, ...SOFT }]),
      { 'eu-1': 'eu-2: its pods are in 1 values of zone and not in 2' },
    ],
    ['in fewer than can be, as there is but one pod', fleetOf({ 'eu-1': 1 }, [{ minGroups: 2 }]), {}],
    [
      'in too few, and the others have no room',
      fleetOf({ 'eu-1': 3 }, [{ minGroups: 2, ...SOFT }], { room: { 'eu-2': 0, 'us-1': 0 } }),
      {},
    ],
    [
      'in too many clusters: the few go to the many',
      fleetOf({ 'eu-1': 3, 'us-1': 1 }, [{ maxGroups: 1 }]),
      { 'us-1': 'eu-1: its pods are in 2 clusters and not in 1 at most' },
    ],
    [
      'with a label that is there no more',
      fleetOf({ 'eu-1': 2, anywhere: 1 }, [{ spreadByLabel: 'rack', minGroups: 1 }], { clusters: [EU_1, ANYWHERE] }),
      { anywhere: 'eu-1: its pods are to be spread over values of label rack, and some are where there is none' },
    ],
    [
      'in too few when divided',
      fleetOf({ 'eu-1': 4 }, [{ spreadByField: 'region', minGroups: 2 }], { more: EVENLY }),
      { 'eu-1': 'eu-2: its pods are in 1 values of region and not in 2' },
    ],
    [
      'where one rule would be mended, and another one broken',
      fleetOf(
        { 'eu-1': 2 },
        [
          { minGroups: 2, ...SOFT },
          { spreadByField: 'region', maxGroups: 1 },
        ],
        { clusters: [EU_1, US_1] },
      ),
      {},
    ],
    [
      'where one rule can be mended within the other',
      fleetOf({ 'eu-1': 2 }, [
        { minGroups: 2, ...SOFT },
        { spreadByField: 'region', maxGroups: 1 },
      ]),
      { 'eu-1': 'eu-2: its pods are in 1 clusters and not in 2' },
    ],
  ])('%s', (_, fleet, expected) => {
    expect(all(fleet)).toEqual(expected);
  });

  test('are mended within a division by as many moves as it takes to fill the seats', () => {
    const fleet = fleetOf({ 'eu-1': 4 }, [{ spreadByField: 'region', minGroups: 2 }], { more: EVENLY });
    for (const to of ['eu-2', 'us-1']) {
      expect(all(fleet)['eu-1']).toMatch(to);
      fleet.pods.splice(0, 1);
      fleet.pods.push({ uid: `to-${to}`, cluster: to, revision: 'r1' });
    }
    expect(fleet.counts()).toEqual({ 'eu-1': 2, 'eu-2': 1, 'us-1': 1 });
    expect(all(fleet)).toEqual({});
  });

  test('are no reason where that does not count', () => {
    const fleet = fleetOf({ 'eu-1': 3 }, [{ minGroups: 2 }]);
    expect(better(fleet, 'eu-1', () => true)?.strategy).toBe('SpreadViolation');
    expect(better(fleet, 'eu-1', (strategy) => strategy === 'Repatriate')).toBeUndefined();
  });

  test('are a reason beside another one that does not count', () => {
    const fleet = fleetOf({ 'eu-1': 4 }, [{ spreadByField: 'region', minGroups: 2 }], { more: EVENLY });
    fleet.plan = undefined;
    expect(better(fleet, 'eu-1', (strategy) => strategy === 'SpreadViolation')?.strategy).toBe('SpreadViolation');
  });

  const CLUSTERS_AND_REGION = [
    { minGroups: 2, ...SOFT },
    { spreadByField: 'region', maxGroups: 1 },
  ];
  const AB = cluster('ab', { zones: ['a', 'b'] });
  test.each<[string, Fleet, string, string[], boolean]>([
    ['one place that mends it', fleetOf({ 'eu-1': 2 }, [{ minGroups: 2 }]), 'eu-1', ['eu-2'], true],
    ['none', fleetOf({ 'eu-1': 2 }, [{ minGroups: 2 }]), 'eu-1', [], false],
    ['a place that breaks another rule', fleetOf({ 'eu-1': 2 }, CLUSTERS_AND_REGION), 'eu-1', ['us-1'], false],
    [
      'such a place beside one that does not',
      fleetOf({ 'eu-1': 2 }, CLUSTERS_AND_REGION, { more: EVENLY }),
      'eu-1',
      ['eu-2', 'us-1'],
      false,
    ],
    [
      'places of which one mends nothing',
      fleetOf({ 'eu-1': 2 }, [{ spreadByField: 'region', minGroups: 2 }]),
      'eu-1',
      ['us-1', 'eu-2'],
      false,
    ],
    [
      'seats of which one mends nothing',
      fleetOf({ 'eu-1': 2 }, [{ spreadByField: 'region', minGroups: 2 }], { more: EVENLY }),
      'eu-1',
      ['us-1', 'eu-2'],
      true,
    ],
    [
      'a seat where it is, too',
      fleetOf({ 'eu-1': 2 }, [{ minGroups: 2 }], { more: EVENLY }),
      'eu-1',
      ['us-1', 'eu-1'],
      false,
    ],
    ['the few, and it is of the many', fleetOf({ 'eu-1': 3, 'us-1': 1 }, [{ maxGroups: 1 }]), 'eu-1', ['us-1'], false],
    ['the many, and it is of the few', fleetOf({ 'eu-1': 3, 'us-1': 1 }, [{ maxGroups: 1 }]), 'us-1', ['eu-1'], true],
    [
      'more groups than it needs',
      fleetOf({ 'eu-1': 1 }, [{ spreadByField: 'zone', minGroups: 2 }], { clusters: [EU_1, AB] }),
      'eu-1',
      ['ab'],
      false,
    ],
    [
      'a group that is only wished for',
      fleetOf({ 'eu-1': 1, anywhere: 1 }, [{ spreadByLabel: 'rack', ...SOFT }], { clusters: [EU_1, ANYWHERE] }),
      'anywhere',
      ['eu-1'],
      false,
    ],
  ])('may go to %s', (_, fleet, from, places, isMended) => {
    const facts = fleet.facts();
    const pods = withoutOne(facts.workload.pods, fleet.revision, from);
    const without = { ...facts, workload: { ...facts.workload, pods } };
    const allowed = places.map((name) => ({ cluster: name, score: 0, why: '' }));
    const found = spreadToMend(without, { ...fleet.decide(), allowed }, from);
    expect(found !== undefined).toBe(isMended);
  });

  test('whatever clusters, rules and pods: moves mend, and after some there is nothing left to do', () => {
    const zones = fc.subarray(['a', 'b', 'c']);
    const regions = fc.constantFrom('eu', 'us', undefined);
    const anyCluster = fc.record({ region: regions, zones, room: fc.constantFrom(0, 2, 9) });
    const rule = fc.record({
      spreadByField: fc.constantFrom('cluster', 'region', 'zone'),
      minGroups: fc.integer({ min: 1, max: 3 }),
      more: fc.constantFrom(undefined, 0, 1),
      whenUnsatisfiable: fc.constantFrom('DoNotSchedule', 'ScheduleAnyway'),
    });
    const division = fc.constantFrom({}, EVENLY, { replicaScheduling: { replicaDivisionPreference: 'Aggregated' } });
    fc.assert(
      fc.property(
        fc.array(anyCluster, { minLength: 1, maxLength: 5 }),
        fc.array(rule, { minLength: 1, maxLength: 3 }),
        fc.array(fc.nat(4), { maxLength: 8 }),
        division,
        (given, rules, places, more) => {
          const names = given.map((_, index) => `c${index}`);
          const clusters = given.map(({ region, zones: own }, index) =>
            cluster(`c${index}`, { zones: own, ...(region === undefined ? {} : { region }) }),
          );
          const spread = rules.map(({ more: above, ...one }) => ({
            ...one,
            ...(above === undefined ? {} : { maxGroups: one.minGroups + above }),
          }));
          const counts: Record<string, number> = {};
          for (const place of places) {
            const name = names[place % names.length] ?? 'c0';
            counts[name] = (counts[name] ?? 0) + 1;
          }
          const room = Object.fromEntries(
            given.map((one, index) => [`c${index}`, one.room + (counts[`c${index}`] ?? 0)]),
          );
          const fleet = fleetOf(counts, spread, { clusters, more, room });
          let moves = 0;
          for (;;) {
            const found = Object.keys(fleet.counts())
              .map((from) => ({ from, place: better(fleet, from, (strategy) => strategy === 'SpreadViolation') }))
              .find(({ place }) => place !== undefined);
            if (found?.place === undefined) break;
            moves += 1;
            // No rule asks for more than that many of the pods to be elsewhere.
            expect(moves).toBeLessThanOrEqual(places.length + spread.length * (places.length + 3));
            fleet.pods.splice(
              fleet.pods.findIndex((one) => one.cluster === found.from),
              1,
            );
            fleet.pods.push({ uid: `m${moves}`, cluster: found.place.cluster, revision: 'r1' });
          }
        },
      ),
    );
  });
});
