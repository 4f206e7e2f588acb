import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { placement as placementSchema } from '../../src/api/placement.ts';
import { scoringConfig } from '../../src/api/scoring.ts';
import type { PlacementFacts } from '../../src/placement/decision.ts';
import type { Cluster } from '../../src/api/cluster.ts';
import { compilePlacement } from '../../src/placement/compiled-placement.ts';
import { placeInWords } from '../../src/placement/placement-report.ts';
import { firstPlace, nextPlace, refreshPlan } from '../../src/placement/next-place.ts';
import { removalOrder } from '../../src/placement/removal-order.ts';
import { ofAllRevisions, ofRevision } from '../../src/placement/workload.ts';
import { countPods } from '../fixtures/count-pods.ts';
import { cluster } from './fleet.ts';

const NAMES = ['local', 'a', 'b', 'c', 'd', 'e'];
const names = fc.subarray(NAMES, { minLength: 1 });
const tier = fc.record(
  {
    clusterNames: names,
    exclude: fc.subarray(NAMES, { maxLength: 2 }),
    max: fc.oneof(fc.nat(6), fc.constantFrom('0%', '30%', '100%')),
    tryNextAfter: fc.constantFrom('30s', '2m'),
  },
  { requiredKeys: ['clusterNames'] },
);
const group = fc
  .tuple(tier, fc.array(tier, { maxLength: 2 }))
  .map(([first, overflowAffinities]) => (overflowAffinities.length === 0 ? first : { ...first, overflowAffinities }));
const affinity = fc.oneof(
  fc.constant({}),
  group.map((clusterAffinity) => ({ clusterAffinity })),
  fc.tuple(group, group).map(([one, two]) => ({
    clusterAffinities: [
      { affinityName: 'one', ...one },
      { affinityName: 'two', ...two },
    ],
  })),
);
const plainAffinity = fc.oneof(
  fc.constant({}),
  tier.map((clusterAffinity) => ({ clusterAffinity })),
);
const limits = fc
  .tuple(fc.nat(3), fc.nat(9), fc.nat(5))
  .map(([minReplicas, more, weight]) => ({ minReplicas, maxReplicas: minReplicas + more, weight }));
const byRoom = fc.constantFrom(
  {},
  { replicaScheduling: { weightPreference: { dynamicWeight: 'AvailableReplicas' } } },
  { replicaScheduling: { replicaDivisionPreference: 'Aggregated' } },
);
const byWeight = fc.oneof(
  fc.record({ replicaScheduling: fc.record({ whenFull: fc.constantFrom('Wait', 'TryNext') }) }),
  fc
    .tuple(
      fc.dictionary(fc.constantFrom('*', ...NAMES), limits, { noNullPrototype: true }),
      fc.boolean(),
      fc.constantFrom('Total', 'Remainder'),
    )
    .map(([clusters, rebalance, division]) => ({
      replicaScheduling: { clusterPreferences: { clusters, rebalance, division } },
    })),
);
const spread = fc.oneof(
  fc.constant({}),
  fc
    .array(
      fc
        .tuple(fc.constantFrom('cluster', 'region', 'zone'), fc.integer({ min: 1, max: 3 }), fc.nat(2), fc.boolean())
        .map(([spreadByField, minGroups, more, hard]) => ({
          spreadByField,
          minGroups,
          maxGroups: minGroups + more,
          whenUnsatisfiable: hard ? 'DoNotSchedule' : 'ScheduleAnyway',
        })),
      { minLength: 1, maxLength: 2 },
    )
    .map((spreadConstraints) => ({ spreadConstraints })),
);
const policy = fc.oneof(fc.tuple(affinity, byRoom, spread), fc.tuple(plainAffinity, byWeight, spread));

const clusters = fc.tuple(
  ...NAMES.map((name) =>
    fc
      .record({
        region: fc.option(fc.constantFrom('r1', 'r2'), { nil: undefined }),
        zones: fc.subarray(['z1', 'z2', 'z3']),
        unavailable: fc.option(fc.constant('it is not ready'), { nil: undefined, freq: 6 }),
        price: fc.option(fc.nat(9), { nil: undefined }),
      })
      .map((more): Cluster => cluster(name, more)),
  ),
);
const pods = fc
  .array(fc.record({ cluster: fc.constantFrom(...NAMES, 'gone'), revision: fc.constantFrom('r1', 'r2', undefined) }), {
    maxLength: 20,
  })
  .map((list) => list.map((pod, index) => ({ ...pod, uid: `p${String(index)}` })));

const facts = fc
  .record({
    policy,
    clusters,
    pods,
    rooms: fc.tuple(...NAMES.map(() => fc.option(fc.nat(8), { nil: undefined }))),
    replicas: fc.option(fc.nat(25), { nil: undefined }),
    uid: fc.option(fc.string(), { nil: undefined }),
    waitedMs: fc.constantFrom(0, 30_000, 600_000),
    remembered: fc.option(fc.tuple(...NAMES.map(() => fc.nat(6))), { nil: undefined }),
    avoided: fc.subarray(NAMES, { maxLength: 1 }),
  })
  .map((one): PlacementFacts => ({
    placement: compilePlacement(placementSchema.parse(Object.assign({}, ...one.policy))),
    clusters: one.clusters,
    workload: { uid: one.uid, replicas: one.replicas, pods: countPods(one.pods) },
    pod: { revision: 'r1', waitedMs: one.waitedMs },
    rooms: new Map(NAMES.map((name, index) => [name, { fits: one.rooms[index] }])),
    avoided: one.avoided.map((name) => ({ cluster: name, reason: 'Quota', message: 'full', since: 0, until: 9 })),
    remembered: one.remembered && {
      affinityName: undefined,
      targets: new Map(NAMES.map((name, index) => [name, one.remembered?.[index] ?? 0])),
      tiers: new Map(),
    },
    signals: new Map(),
    scoring: scoringConfig.parse({}),
    now: 5,
  }));

describe('whatever the policy and the facts', () => {
  it('says of every cluster once that it is allowed, or why not, and allows only what can be used and has room', () => {
    fc.assert(
      fc.property(facts, (one) => {
        const { allowed, refusals, plan } = nextPlace(one);
        const spoken = [...allowed, ...refusals].map(({ cluster }) => cluster).toSorted();
        expect(spoken).toEqual([...NAMES].toSorted());
        for (const place of allowed) {
          const { cluster: name, score } = place;
          const cluster = one.clusters.find((candidate) => candidate.name === name);
          expect(cluster?.unavailable).toBeUndefined();
          expect(one.avoided.some((avoided) => avoided.cluster === name)).toBe(false);
          expect(one.rooms.get(name)?.fits).not.toBe(0);
          expect(plan.tiers.has(name)).toBe(true);
          expect(score).toBeGreaterThanOrEqual(0);
          expect(score).toBeLessThanOrEqual(200);
          expect(placeInWords(place)).not.toBe('');
        }
        for (const { message } of refusals) expect(message).not.toBe('');
      }),
      { numRuns: 1_000 },
    );
  });

  it('gives the first place alone as it stands in the whole answer', () => {
    fc.assert(
      fc.property(facts, (one) => {
        expect(firstPlace(one)).toEqual(nextPlace(one).allowed[0]);
      }),
      { numRuns: 1_000 },
    );
  });

  it('gives the same answer in whatever order clusters come', () => {
    fc.assert(
      fc.property(facts, (one) => {
        expect(nextPlace({ ...one, clusters: one.clusters.toReversed() })).toEqual(nextPlace(one));
      }),
      { numRuns: 300 },
    );
  });

  it('plans no more pods than there will be, and none for clusters that cannot be used', () => {
    fc.assert(
      fc.property(facts, (one) => {
        const { plan } = nextPlace(one);
        const placed = [...ofRevision(one.workload.pods, 'r1').values()].reduce((all, count) => all + count, 0);
        const total = [...(plan.targets?.values() ?? [])].reduce((all, count) => all + count, 0);
        expect(total).toBeLessThanOrEqual(Math.max(one.workload.replicas ?? 0, placed + 1));
        for (const [name, count] of plan.targets ?? []) {
          expect(count).toBeGreaterThanOrEqual(0);
          expect(one.clusters.find((candidate) => candidate.name === name)?.unavailable).toBeUndefined();
        }
        const refreshed = [...(refreshPlan(one).targets?.values() ?? [])].reduce((all, count) => all + count, 0);
        expect(refreshed).toBeLessThanOrEqual(one.workload.replicas ?? placed);
      }),
      { numRuns: 500 },
    );
  });

  it('plans the same again while nothing changes and no pod asks', () => {
    fc.assert(
      fc.property(facts, fc.subarray(NAMES), (one, unknown) => {
        const targets = new Map([...(one.remembered?.targets ?? [])].filter(([name]) => !unknown.includes(name)));
        const remembered = one.remembered && { ...one.remembered, targets };
        const plan = refreshPlan({ ...one, remembered });
        expect(refreshPlan({ ...one, remembered: plan })).toEqual(plan);
      }),
      { numRuns: 1_000 },
    );
  });

  it('puts every pod in the order of removal', () => {
    fc.assert(
      fc.property(facts, (one) => {
        const counts = ofAllRevisions(one.workload.pods);
        const { affinityName, targets } = nextPlace(one).plan;
        const order = removalOrder({ ...one, uid: one.workload.uid, affinityName, shares: targets, pods: counts });
        const back = new Map<string, number>();
        for (const name of order) back.set(name, (back.get(name) ?? 0) + 1);
        expect(back).toEqual(counts);
      }),
      { numRuns: 500 },
    );
  });
});
