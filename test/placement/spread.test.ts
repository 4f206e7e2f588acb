import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Candidate } from '../../src/placement/candidates.ts';
import { selectSpread } from '../../src/placement/spread-selection.ts';
import { compileSpread } from '../../src/placement/spread-rule.ts';
import type { SpreadConstraint } from '../../src/api/placement.ts';
import { cluster, Fleet } from './fleet.ts';

const rule = (written: Partial<SpreadConstraint>) =>
  compileSpread({ minGroups: 1, whenUnsatisfiable: 'DoNotSchedule', ...written });
const candidate = (
  name: string,
  room: number,
  more: Partial<Candidate> & { region?: string; provider?: string } = {},
): Candidate => {
  const { region, provider, ...rest } = more;
  return {
    cluster: cluster(name, { region, provider }),
    name,
    tier: 0,
    room,
    whyNoRoom: '',
    here: 0,
    inUse: false,
    ...rest,
  };
};
const select = (
  candidates: Candidate[],
  rules: Partial<SpreadConstraint>[],
  need: number | undefined,
  scores: Record<string, number> = {},
) => {
  const result = selectSpread(candidates, { rules: rules.map(rule), need, scores: new Map(Object.entries(scores)) });
  return 'problem' in result ? result.problem : result.chosen.map(({ name }) => name);
};

describe('choosing clusters', () => {
  it('takes a roomier one in place of the last: scores 60/50/40, free 40/30/60, need 80, two clusters -> 1st and 3rd', () => {
    const three = [candidate('a', 40), candidate('b', 30), candidate('c', 60)];
    expect(select(three, [{ spreadByField: 'cluster', maxGroups: 2 }], 80, { a: 60, b: 50, c: 40 })).toEqual([
      'a',
      'c',
    ]);
    expect(select(three, [{ spreadByField: 'cluster', maxGroups: 2 }], 60, { a: 60, b: 50, c: 40 })).toEqual([
      'a',
      'b',
    ]);
  });

  it('keeps those with pods, whatever the room', () => {
    const three = [candidate('a', 40), candidate('b', 30), candidate('c', 60, { inUse: true })];
    expect(select(three, [{ maxGroups: 1 }], 80)).toEqual(['c']);
  });

  it('says what is missing', () => {
    expect(select([candidate('a', 1), candidate('b', 1)], [{ minGroups: 3 }], 1)).toBe(
      'pods are to be spread over at least 3 clusters, but only a and b can be used',
    );
    expect(select([candidate('a', 1)], [{ spreadByLabel: 'rack', minGroups: 2 }], 1)).toBe(
      'pods are to be spread over at least 2 values of label rack, but none can be used',
    );
  });
});

describe('choosing regions', () => {
  const fleet = [
    candidate('e1', 5, { region: 'eu' }),
    candidate('e2', 5, { region: 'eu' }),
    candidate('u1', 100, { region: 'us' }),
    candidate('p1', 100, { region: 'ap' }),
  ];
  const scores = { e1: 100, e2: 90, u1: 50, p1: 40 };

  it('takes the best that can hold their part, and no more of them than needed', () => {
    expect(select(fleet, [{ spreadByField: 'region', maxGroups: 1 }], 80, scores)).toEqual(['u1']);
    expect(select(fleet, [{ spreadByField: 'region', maxGroups: 3 }], 120, scores)).toEqual(['u1', 'p1']);
    expect(select(fleet, [{ spreadByField: 'region', maxGroups: 3 }], 8, scores)).toEqual(['e1', 'e2']);
    expect(select(fleet, [{ spreadByField: 'region', minGroups: 2, maxGroups: 2 }], 8, scores)).toEqual([
      'e1',
      'e2',
      'u1',
    ]);
  });

  it('takes as many regions as allowed where room does not matter', () => {
    expect(select(fleet, [{ spreadByField: 'region', maxGroups: 2 }], undefined, scores)).toEqual(['e1', 'e2', 'u1']);
    expect(select(fleet, [{ spreadByField: 'region' }], undefined, scores)).toEqual(['e1', 'e2', 'u1', 'p1']);
  });

  it('takes one cluster of each region first where clusters are limited too', () => {
    const rules = [
      { spreadByField: 'region', minGroups: 2 } as const,
      { spreadByField: 'cluster', maxGroups: 2 } as const,
    ];
    expect(select(fleet, rules, 8, scores)).toEqual(['e1', 'u1']);
  });

  it('chooses regions that have the clusters asked for', () => {
    const rules = [
      { spreadByField: 'region', maxGroups: 1 } as const,
      { spreadByField: 'cluster', minGroups: 2 } as const,
    ];
    expect(select(fleet, rules, 80, scores)).toEqual(['e1', 'e2']);
  });

  it('keeps several rules at once, going back where the best start leads nowhere', () => {
    const mixed = [
      candidate('a', 9, { region: 'eu', provider: 'p' }),
      candidate('b', 9, { region: 'eu', provider: 'q' }),
      candidate('c', 9, { region: 'us', provider: 'p' }),
    ];
    const rules = [
      { spreadByField: 'provider', maxGroups: 1 } as const,
      { spreadByField: 'region', minGroups: 2 } as const,
    ];
    expect(select(mixed, rules, 1, { a: 1, b: 100, c: 1 })).toEqual(['a', 'c']);
    expect(select(mixed.slice(0, 2), rules, 1)).toBe(
      'pods are to be spread over at least 2 values of region, but only eu can be used',
    );
    const impossible = [mixed[1], mixed[2]].filter((one) => one !== undefined);
    expect(select(impossible, rules, 1)).toBe(
      'no choice of clusters is spread as asked over provider and region together',
    );
  });

  it('counts a cluster in each of its zones', () => {
    const zoned = [
      { ...candidate('a', 9), cluster: cluster('a', { zones: ['z1', 'z2'] }) },
      { ...candidate('b', 9), cluster: cluster('b', { zones: ['z3'] }) },
    ];
    expect(select(zoned, [{ spreadByField: 'zone', minGroups: 2, maxGroups: 2 }], 5)).toEqual(['a']);
  });

  it('keeps to minimum and maximum whenever it finds a choice, and finds one for a single rule if there is any', () => {
    const some = fc.array(
      fc.record({ region: fc.constantFrom('r1', 'r2', 'r3', 'r4'), room: fc.nat(9), inUse: fc.boolean() }),
      { minLength: 1, maxLength: 9 },
    );
    fc.assert(
      fc.property(
        some,
        fc.integer({ min: 1, max: 4 }),
        fc.nat(3),
        fc.integer({ min: 1, max: 9 }),
        fc.nat(40),
        (list, min, more, most, need) => {
          const candidates = list.map(({ region, room, inUse }, index) =>
            candidate(`c${String(index)}`, room, { region, inUse }),
          );
          const regions = rule({ spreadByField: 'region', minGroups: min, maxGroups: min + more });
          const result = selectSpread(candidates, {
            rules: [regions, rule({ maxGroups: most })],
            need,
            scores: new Map(),
          });
          const groups = (of: readonly Candidate[]): number => new Set(of.map(({ cluster }) => cluster.region)).size;
          if ('problem' in result) {
            const used = groups(candidates.filter(({ inUse }) => inUse));
            expect(groups(candidates) < min || most < min || used > 0).toBe(true);
            return;
          }
          expect(result.chosen.length).toBeLessThanOrEqual(most);
          expect(groups(result.chosen)).toBeGreaterThanOrEqual(min);
          expect(groups(result.chosen)).toBeLessThanOrEqual(min + more);
        },
      ),
    );
  });
});

describe('spread of pods', () => {
  const regions = [
    cluster('e1', { region: 'eu' }),
    cluster('e2', { region: 'eu' }),
    cluster('u1', { region: 'us' }),
    cluster('nowhere'),
  ];

  it('puts the first pods into as many groups as asked, also without division', () => {
    const placement = { spreadConstraints: [{ spreadByField: 'region', minGroups: 2 }] };
    const fleet = new Fleet({ placement, clusters: regions, room: { e1: 50, e2: 50, u1: 3 } });
    expect(fleet.scale(2)).toEqual({ e1: 1, u1: 1 });
    expect(fleet.decide().refusals).toContainEqual({
      cluster: 'nowhere',
      reason: 'Spread',
      message: 'pods are spread over region, which it does not have',
    });
  });

  it('waits for a second group if it must, and does not if it need not', () => {
    const placement = (whenUnsatisfiable: string) => ({
      spreadConstraints: [{ spreadByField: 'region', minGroups: 2, whenUnsatisfiable }],
    });
    const room = { e1: 50, e2: 50, u1: 0, nowhere: 0 };
    const hard = new Fleet({ placement: placement('DoNotSchedule'), clusters: regions, room });
    expect(hard.scale(3)).toEqual({ e1: 1 });
    expect(hard.decide().refusals).toContainEqual({
      cluster: 'e2',
      reason: 'Spread',
      message: 'pods are to be spread over at least 2 groups by region, and its group has some already',
    });
    const soft = new Fleet({ placement: placement('ScheduleAnyway'), clusters: regions, room });
    expect(soft.scale(3)).toEqual({ e1: 3 });
  });

  it('gives way to room where the maximum is soft', () => {
    const placement = (whenUnsatisfiable: string) => ({ spreadConstraints: [{ maxGroups: 1, whenUnsatisfiable }] });
    const room = { e1: 2, e2: 1, u1: 1, nowhere: 0 };
    expect(new Fleet({ placement: placement('DoNotSchedule'), clusters: regions, room }).scale(4)).toEqual({ e1: 2 });
    expect(new Fleet({ placement: placement('ScheduleAnyway'), clusters: regions, room }).scale(4)).toEqual({
      e1: 2,
      e2: 1,
      u1: 1,
    });
  });

  it('leaves a seat to each group in a division', () => {
    const placement = {
      replicaScheduling: {
        weightPreference: {
          staticWeightList: [
            { targetCluster: { clusterNames: ['e1'] }, weight: 100 },
            { targetCluster: { clusterNames: ['e2', 'u1'] }, weight: 1 },
          ],
        },
      },
      spreadConstraints: [{ spreadByField: 'region', minGroups: 2 }],
    };
    const fleet = new Fleet({ placement, clusters: regions });
    expect(fleet.scale(3)).toEqual({ e1: 2, u1: 1 });
  });

  it('never leaves the groups it has chosen, also by room', () => {
    const placement = {
      replicaScheduling: { weightPreference: { dynamicWeight: 'AvailableReplicas' } },
      spreadConstraints: [{ maxGroups: 2 }],
    };
    const fleet = new Fleet({ placement, clusters: regions, room: { e1: 9, e2: 9, u1: 9, nowhere: 9 } });
    for (const replicas of [1, 5, 14, 30]) {
      expect(Object.keys(fleet.scale(replicas)).length).toBeLessThanOrEqual(2);
    }
    expect(fleet.pods.length).toBe(18);
  });
});
