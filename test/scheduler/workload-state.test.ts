import { beforeEach, describe, expect, test } from 'vitest';
import type { WorkloadPlacementStatus } from '../../src/api/workload-placement.ts';
import { timestamp } from '../../src/kube/timestamps.ts';
import type { TypedObject } from '../../src/placement/owner-chain.ts';
import { WorkloadState } from '../../src/scheduler/workload-state.ts';

const workload: TypedObject = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web', uid: 'u' } };
const refusal = (cluster: string, reason = 'Refused') => ({ cluster, reason, message: reason });
const plan = { affinityName: undefined, targets: new Map([['east', 4]]), tiers: new Map([['east', 0]]) };

let now: number;
let stored: WorkloadPlacementStatus | undefined;
let state: WorkloadState;

beforeEach(() => {
  now = Date.parse('2026-01-01T00:00:00Z');
  stored = undefined;
  state = new WorkloadState({ stored: () => stored, clock: () => now, monotonic: () => now });
});

/** As another replica wrote it: each member with when it began to be avoided and until when, in seconds from now. */
function store(avoided: Record<string, readonly [since: number, until: number]>): void {
  stored = {
    plannedAt: timestamp(now),
    avoided: Object.entries(avoided).map(([cluster, [since, until]]) => ({
      ...refusal(cluster, 'Stored'),
      since: timestamp(now + since * 1000),
      until: timestamp(now + until * 1000),
    })),
  };
}

const avoided = () =>
  state.avoided(workload).map(({ cluster, reason, since, until }) => ({
    cluster,
    reason,
    since: (since - now) / 1000,
    until: (until - now) / 1000,
  }));

describe('members that are avoided', () => {
  test('are those of every replica, each from the first refusal to the last end', () => {
    state.refused(workload, refusal('east'), 60_000);
    store({ west: [-30, 300], east: [-30, 30] });
    expect(avoided()).toEqual([
      { cluster: 'east', reason: 'Refused', since: -30, until: 60 },
      { cluster: 'west', reason: 'Stored', since: -30, until: 300 },
    ]);
    store({ east: [0, 90] });
    expect(avoided()).toEqual([{ cluster: 'east', reason: 'Stored', since: 0, until: 90 }]);
  });

  test('also while the plan counts as this replica made it', () => {
    state.refreshed(workload, plan);
    store({ west: [0, 300] });
    expect(state.plan(workload)).toBe(plan);
    expect(avoided()).toEqual([{ cluster: 'west', reason: 'Stored', since: 0, until: 300 }]);
  });

  test('since the refusals that count: one that was over before says nothing of the next', () => {
    state.refused(workload, refusal('east'), 10_000);
    now += 20_000;
    store({ east: [0, 60] });
    expect(avoided()).toEqual([{ cluster: 'east', reason: 'Stored', since: 0, until: 60 }]);
    store({ east: [-20, -10] });
    expect(avoided()).toEqual([]);
  });
});

describe('a plan that is stored', () => {
  const planOf = (targets: Record<string, number>) => ({ ...plan, targets: new Map(Object.entries(targets)) });
  const storePlan = (targets: Record<string, number>): void => {
    const clusters = Object.entries(targets).map(([name, target]) => ({ name, tier: 0, target, actual: 0 }));
    stored = { plannedAt: timestamp(now), clusters };
  };

  test('counts half a minute after this replica planned something else, however often it says the same again', () => {
    storePlan({ east: 1, west: 3 });
    for (let seconds = 0; seconds < 30; seconds += 10) {
      state.refreshed(workload, planOf({ east: 4 }));
      expect(state.plan(workload)?.targets).toEqual(new Map([['east', 4]]));
      now += 10_000;
    }
    expect(state.plan(workload)?.targets).toEqual(planOf({ east: 1, west: 3 }).targets);
    // What comes of it is this replica's own again.
    state.refreshed(workload, planOf({ east: 2, west: 3 }));
    expect(state.plan(workload)?.targets).toEqual(planOf({ east: 2, west: 3 }).targets);
  });
});
