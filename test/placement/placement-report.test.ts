import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { workloadPlacementName } from '../../src/api/workload-placement.ts';
import { avoid, stillAvoided } from '../../src/placement/avoided.ts';
import { decisionInWords, placementStatus, remembered } from '../../src/placement/placement-report.ts';
import type { ReportFacts } from '../../src/placement/placement-report.ts';
import { countPods } from '../fixtures/count-pods.ts';
import { cluster, Fleet } from './fleet.ts';

const clusters = [cluster('local'), cluster('east'), cluster('west')];
const tiered = {
  clusterAffinity: {
    clusterNames: ['local'],
    overflowAffinities: [{ clusterNames: ['east'], max: 3 }, { clusterNames: ['west'] }],
  },
  replicaScheduling: { replicaDivisionPreference: 'Aggregated' },
};
const refusal = { cluster: 'west', reason: 'MemberQuotaExceeded', message: 'exceeded quota' };

function report(fleet: Fleet, more: Partial<ReportFacts> = {}) {
  const { now } = fleet;
  return placementStatus({
    source: { kind: 'PlacementPolicy', name: 'p', generation: 2 },
    workload: { uid: 'u', replicas: fleet.replicas, pods: countPods(fleet.pods) },
    revision: fleet.revision,
    waiting: fleet.replicas - fleet.pods.length,
    plan: fleet.plan ?? { affinityName: undefined, targets: undefined, tiers: new Map() },
    plannedAt: now,
    avoided: fleet.avoided,
    last: { decision: fleet.decide(), at: now },
    before: undefined,
    now,
    ...more,
  });
}

describe('the report about a workload', () => {
  it('shows targets, what is there, who is avoided and why pods wait', () => {
    const fleet = new Fleet({ placement: tiered, clusters, room: { local: 4, east: 9, west: 9 } });
    fleet.avoided = [...avoid([], refusal, fleet.now, 60_000)];
    fleet.scale(9);
    expect(report(fleet)).toEqual({
      policy: { kind: 'PlacementPolicy', name: 'p', generation: 2 },
      revision: 'r1',
      replicas: 9,
      placed: 7,
      waiting: 2,
      where: 'local 4, east 3',
      clusters: [
        { name: 'local', tier: 0, target: 4, share: 6, actual: 4 },
        { name: 'east', tier: 1, target: 3, share: 3, actual: 3 },
      ],
      avoided: [{ ...refusal, since: '2026-01-01T00:00:00Z', until: '2026-01-01T00:01:00Z' }],
      lastDecision: {
        time: '2026-01-01T00:00:00Z',
        message:
          'member east: the policy allows at most 3 pods in east; local: it has no room for the pod; ' +
          'member west: it refused a pod of the workload and is avoided until 2026-01-01T00:01:00Z: exceeded quota',
      },
      plannedAt: '2026-01-01T00:00:00Z',
      conditions: [
        {
          type: 'Placed',
          status: 'False',
          lastTransitionTime: '2026-01-01T00:00:00Z',
          reason: 'Waiting',
          message: expect.stringMatching(
            /^2 pods wait for a place: member east: the policy allows at most 3 pods in east; /,
          ),
        },
      ],
    });
  });

  it('is the same for the same facts, and keeps the time of a condition that stays', () => {
    const fleet = new Fleet({ placement: tiered, clusters, room: { local: 4 } });
    fleet.scale(2);
    const first = report(fleet);
    expect(report(fleet)).toEqual(first);
    const later = report(fleet, { before: first, now: fleet.now + 60_000 });
    expect(later.conditions).toEqual(first.conditions);
    expect(first.conditions?.[0]).toMatchObject({ status: 'True', reason: 'Placed', message: 'every pod has a place' });
  });

  it('is all that a new process needs to go on', () => {
    const fleet = new Fleet({ placement: tiered, clusters, room: { local: 4, east: 9, west: 9 } });
    fleet.avoided = [...avoid([], refusal, fleet.now, 60_000)];
    fleet.scale(6);
    const { plan, avoided } = remembered(JSON.parse(JSON.stringify(report(fleet))));
    expect(plan.targets).toEqual(
      new Map([
        ['local', 4],
        ['east', 2],
      ]),
    );
    expect(avoided).toEqual(fleet.avoided);
    const restarted = new Fleet({ placement: tiered, clusters, room: fleet.room });
    Object.assign(restarted, { plan, avoided, pods: [...fleet.pods] });
    expect(restarted.scale(9)).toEqual(fleet.scale(9));
    expect(remembered({})).toEqual({
      plan: { affinityName: undefined, targets: undefined, tiers: new Map() },
      avoided: [],
    });
  });

  it('tells what a workload that shrinks step by step is in proportion to: whoever goes on shrinks it the same', () => {
    const byRoom = {
      replicaScheduling: {
        replicaDivisionPreference: 'Weighted',
        weightPreference: { dynamicWeight: 'AvailableReplicas' },
      } as const,
    };
    const sizes = fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 2, maxLength: 8 });
    const rooms = fc.record({ local: fc.nat(40), east: fc.nat(40), west: fc.nat(40) });
    fc.assert(
      fc.property(rooms, sizes, (room, steps) => {
        const [kept, restarted] = [1, 2].map(() => new Fleet({ placement: byRoom, clusters, room }));
        for (const size of steps.toSorted((a, b) => b - a)) {
          const there = kept?.scale(size);
          expect(restarted?.scale(size)).toEqual(there);
          if (restarted !== undefined) restarted.plan = remembered(JSON.parse(JSON.stringify(report(restarted)))).plan;
        }
      }),
    );
  });

  it('cuts what would not fit', () => {
    const fleet = new Fleet({ placement: {}, clusters: [cluster('local', { unavailable: 'x'.repeat(9_000) })] });
    fleet.replicas = 1;
    expect(report(fleet).lastDecision?.message).toHaveLength(4_000);
  });
});

it('tells a decision in words: where to, and why not elsewhere', () => {
  const fleet = new Fleet({ placement: tiered, clusters, room: { local: 0 } });
  fleet.replicas = 2;
  expect(decisionInWords(fleet.decide())).toBe(
    'member east: seat 1 of 2; local: it has no room for the pod; member west: its share of 2 replicas is 0',
  );
});

describe('avoided members', () => {
  it('are forgotten in time, and remembered for longer when they refuse again', () => {
    const once = avoid([], refusal, 0, 100);
    expect(stillAvoided(once, 99)).toBe(once);
    expect(stillAvoided(once, 100)).toEqual([]);
    const again = avoid(once, { ...refusal, message: 'again' }, 50, 100);
    expect(again).toEqual([{ ...refusal, message: 'again', since: 0, until: 150 }]);
    expect(avoid(again, refusal, 60, 10)).toEqual([{ ...refusal, since: 0, until: 150 }]);
    expect(avoid(again, { ...refusal, cluster: 'east' }, 200, 100)).toEqual([
      { ...refusal, cluster: 'east', since: 200, until: 300 },
    ]);
  });
});

describe('the name of a WorkloadPlacement', () => {
  it.each([
    [{ apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' }, 'deployment-web'],
    [{ apiVersion: 'batch/v1', kind: 'Job', name: 'web' }, 'job-web'],
    [{ apiVersion: 'v1', kind: 'Pod', name: 'a.b' }, 'pod-a.b'],
    [{ apiVersion: 'argoproj.io/v1alpha1', kind: 'Rollout', name: 'web' }, 'rollout.argoproj.io-web'],
    [{ apiVersion: 'x.io/v1', kind: 'Deployment', name: 'web' }, 'deployment.x.io-web'],
  ])('of %j is %s', (workload, name) => {
    expect(workloadPlacementName(workload)).toBe(name);
  });

  it('is cut and hashed when it would be too long', () => {
    const long = (end: string) =>
      workloadPlacementName({ apiVersion: 'apps/v1', kind: 'Deployment', name: 'x'.repeat(250) + end });
    expect(long('a')).toHaveLength(253);
    expect(long('a')).not.toBe(long('b'));
  });
});
