import { readFileSync } from 'node:fs';
import { Session } from 'node:inspector';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Plan } from '../../src/placement/decision.ts';
import { HighestAverages } from '../../src/placement/highest-averages.ts';
import { divideRemainder } from '../../src/placement/remainder-division.ts';
import { cluster, Fleet } from './fleet.ts';

/**
 * Every number of a tenant that placement computes with, at the largest that Kubernetes or the schema takes: no answer may keep
 * the event loop, and with it every scheduler, for longer than a moment.
 */
const MOST = 2 ** 31 - 1;
const MOST_WEIGHT = 1_000_000;
/** Of a test. Most take a tenth of it, the longest half; one step for each of so many replicas would be a thousand times as many. */
const MOST_STEPS = 3_000_000;

const names = ['local', ...Array.from({ length: 60 }, (_, index) => `m${String(index).padStart(2, '0')}`)];
const clusters = names.map((name) => cluster(name, { region: `r${String(name.length % 3)}` }));

const session = new Session();

/** How often blocks of the code of placement were run since the last call: much the same on every machine, however busy it is. */
function steps(): number {
  let sum = 0;
  session.post('Profiler.takePreciseCoverage', (_, { result }) => {
    const own = result.filter(({ url }) => url.includes('/src/placement/'));
    for (const { ranges } of own.flatMap(({ functions }) => functions)) for (const { count } of ranges) sum += count;
  });
  return sum;
}

beforeAll(() => {
  session.connect();
  session.post('Profiler.enable');
  session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
});
beforeEach(() => {
  steps();
});
afterEach(() => {
  const taken = steps();
  // Else nobody counts any more.
  expect(taken).toBeGreaterThan(0);
  expect(taken).toBeLessThan(MOST_STEPS);
});
afterAll(() => {
  session.disconnect();
});

const preferences = (limits: object, more: object = {}, whenFull = 'Wait'): object => ({
  replicaScheduling: { whenFull, clusterPreferences: { clusters: limits, ...more } },
});
const PLACEMENTS: Record<string, object> = {
  'static weights': {
    replicaScheduling: {
      weightPreference: {
        staticWeightList: [
          { targetCluster: { clusterNames: ['local'] }, weight: MOST_WEIGHT },
          { targetCluster: {}, weight: 1 },
        ],
      },
    },
  },
  'dynamic weights': { replicaScheduling: { weightPreference: { dynamicWeight: 'AvailableReplicas' } } },
  Aggregated: { replicaScheduling: { replicaDivisionPreference: 'Aggregated' } },
  preferences: preferences({ '*': { weight: 1 } }),
  'preferences that try the next': preferences({ '*': { weight: 1 } }, {}, 'TryNext'),
  'a maximum beside a weight': preferences({ local: { weight: MOST_WEIGHT, maxReplicas: 1 }, '*': { weight: 1 } }),
  'minimums above all replicas': preferences({ '*': { minReplicas: MOST_WEIGHT, weight: 1 } }),
  'minimums without weight': preferences({ '*': { minReplicas: MOST_WEIGHT } }),
  'minimums that are rebalanced': preferences({ '*': { minReplicas: MOST_WEIGHT, weight: 3 } }, { rebalance: true }),
  Remainder: preferences({ local: { weight: 3 }, '*': { weight: 1 } }, { division: 'Remainder' }),
  'Remainder that is rebalanced': preferences({ '*': { weight: 1 } }, { division: 'Remainder', rebalance: true }),
  'tiers with the largest maximum': {
    clusterAffinity: { clusterNames: ['local'], max: MOST, overflowAffinities: [{ clusterNames: names.slice(1) }] },
  },
  'a percentage': {
    clusterAffinity: { clusterNames: ['local'], max: '99%', overflowAffinities: [{ clusterNames: names.slice(1) }] },
  },
  'spread constraints': {
    spreadConstraints: [
      { spreadByField: 'cluster', minGroups: 60 },
      { spreadByField: 'region', minGroups: 3 },
    ],
    replicaScheduling: {},
  },
};

describe('2147483647 replicas', () => {
  describe.each(Object.keys(PLACEMENTS))('%s', (name) => {
    it.each([
      ['room is not known', undefined],
      ['there is little room', 20],
      ['there is room without end', MOST],
    ])('are asked for at once, one more, and taken back: %s', (_, room) => {
      const fleet = new Fleet({
        placement: PLACEMENTS[name] ?? {},
        clusters,
        uid: 'u',
        ...(room === undefined ? {} : { room: Object.fromEntries(names.map((one) => [one, room])) }),
      });
      for (const replicas of [3, MOST - 1, MOST, 40_000_000, MOST, 1, 2, MOST, 0, 5]) {
        fleet.replicas = replicas;
        fleet.place();
        fleet.refresh();
        fleet.removal();
      }
    });

    it('were remembered of a plan that an older version left behind', () => {
      const fleet = new Fleet({ placement: PLACEMENTS[name] ?? {}, clusters, uid: 'u' });
      const targets = new Map(names.map((one, index) => [one, MOST - index]));
      const plan: Plan = { affinityName: undefined, targets, tiers: new Map() };
      for (const replicas of [1, 3, MOST, MOST - 60]) {
        fleet.plan = plan;
        fleet.replicas = replicas;
        fleet.place();
        fleet.plan = plan;
        fleet.refresh();
        fleet.plan = plan;
        fleet.removal();
      }
    });
  });
});

it.each([1, MOST_WEIGHT, MOST])('seats are divided and given back, by weight %i', (weight) => {
  const shares = names.map((name, index) => ({ name, weight: index % 2 === 0 ? weight : 1, min: index % 7 }));
  const method = new HighestAverages(shares, false);
  const full = method.divide(MOST);
  expect(full.unplaced).toBe(0);
  const one = method.divide(1, full.counts);
  expect(one).toEqual(method.divide(1));
  const none = method.divide(0, new Map(names.map((name) => [name, MOST])));
  expect([...none.counts.values()].every((count) => count === 0)).toBe(true);
});

it.each([true, false])("KubeFed's division of what each cluster has (rebalance %s)", (rebalance) => {
  const shares = names.map((name, index) => ({
    name,
    weight: index === 0 ? MOST_WEIGHT : 1 + (index % 5),
    first: index % 2,
    min: index % 3 === 0 ? MOST_WEIGHT : 0,
    max: index % 4 === 0 ? MOST : undefined,
    current: MOST,
    capacity: index % 5 === 0 ? MOST_WEIGHT : undefined,
  }));
  for (const total of [1, MOST, 60 * MOST, 61 * MOST, 61 * MOST + 1, 2 ** 40]) {
    divideRemainder(total, shares, { rebalance, key: 'u' });
  }
});

// Each is asked about for every pod again, as nothing is left of the search before.
it.each([10, 20, 60, 100, 300])(
  'spreads over %i members that contradict each other only at the end of the search',
  (count) => {
    const many = Array.from({ length: count }, (_, index) =>
      cluster(`m${String(index)}`, {
        labels: { a: String(index), b: String((index * 7) % count), c: String(index % 20) },
        region: `r${String(index % 10)}`,
      }),
    );
    const [cluster3, region] = [
      { spreadByField: 'cluster', minGroups: 3, maxGroups: 4 },
      { spreadByField: 'region', minGroups: 5 },
    ];
    const five = { minGroups: 5, maxGroups: 6 };
    for (const spreadConstraints of [
      [{ spreadByLabel: 'a', ...five }, { spreadByLabel: 'b', ...five }, cluster3, region],
      [
        { spreadByLabel: 'c', minGroups: 1, maxGroups: 15 },
        { spreadByLabel: 'a', minGroups: 9 },
        { ...cluster3, maxGroups: 8 },
      ],
    ]) {
      const fleet = new Fleet({ placement: { spreadConstraints }, clusters: many, uid: 'u' });
      fleet.replicas = 100;
      for (let time = 0; time < 3; time += 1) fleet.place();
    }
  },
);

it('the page about security states the bound that is held here', () => {
  expect(readFileSync('docs/security.md', 'utf8')).toContain(`fewer than ${MOST_STEPS.toLocaleString('en')} steps`);
  // Steps are counted in every test.
  expect(new Fleet({ placement: {}, clusters }).scale(1)).toBeDefined();
});
