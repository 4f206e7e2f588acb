import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Failover } from '../../src/api/failover.ts';
import { DisplacedPods } from '../../src/descheduler/displaced-pods.ts';
import type { WantedMove } from '../../src/descheduler/wanted-move.ts';
import type { Condition, Pod } from '../../src/kube/core-v1.ts';
import { betterPlace } from '../../src/placement/better-place.ts';
import { type Moves, movesWithin, withMove } from '../../src/placement/moves.ts';
import { nextPlace } from '../../src/placement/next-place.ts';
import { withoutOne } from '../../src/placement/workload.ts';
import { cluster, Fleet } from '../placement/fleet.ts';
import { placedMember } from '../fixtures/placed-member.ts';

const HOME_FIRST = { clusterAffinity: { clusterNames: ['home'], overflowAffinities: [{ clusterNames: ['away'] }] } };
const AWAY_AT_MOST_TWO = {
  clusterAffinity: { clusterNames: ['away'], max: 2, overflowAffinities: [{ clusterNames: ['home'] }] },
};
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
const MINUTE_MS = 60_000;
const LOOK_MS = 15_000;
const REPLICAS = 6;
const { signal } = new AbortController();
const workload = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web', uid: 'w' } };

const member = placedMember({ name: 'home' });

/** One workload: its pods are placed by the real rules, and moved by the strategy under test, on a clock of its own. */
class World {
  readonly fleet: Fleet;
  failover: Failover = { repatriate: { after: '5m' } };
  now = 0;
  isReady = true;
  /** Caches show no pod that goes, nor one that comes. */
  isFrozen = false;
  readonly #sent = new Set<string>();
  controller = { apiVersion: 'apps/v1', kind: 'ReplicaSet' };
  /** Clusters whose manager cannot vouch for what the host shows of their pods. */
  silent: string[] = [];
  /** Clusters where pods were not well lately. */
  ill: string[] = [];
  moves: readonly Moves[] = [];
  /** When and where from pods were moved. */
  readonly moved: { at: number; from: string; strategy: string }[] = [];
  /** Why pods stayed. */
  readonly held: string[] = [];
  readonly #strategy: DisplacedPods;

  constructor(placement: object, room: Record<string, number>) {
    this.fleet = new Fleet({ placement, clusters: [cluster('home'), cluster('away')], room, uid: 'w' });
    this.fleet.scale(REPLICAS);
    this.#strategy = new DisplacedPods({
      placed: {
        member: (name) =>
          this.silent.includes(name)
            ? { ...member, name, unavailable: 'it does not answer', silent: 'it does not answer' }
            : undefined,
        ofWorkload: () => this.#pods(),
        rulesOf: () => ({ workload, replicas: REPLICAS, failover: this.failover, clusterTolerations: [] }),
        clusterOf: (nodeName) => nodeName,
        betterPlace: (_pod, from, counts) => {
          const facts = this.fleet.facts();
          const pods = withoutOne(facts.workload.pods, this.fleet.revision, from);
          const without = { ...facts, workload: { ...facts.workload, pods } };
          return betterPlace(without, nextPlace(without), from, counts);
        },
      },
      mover: {
        read: async (pod) => await Promise.resolve(pod),
        wasSent: ({ metadata }) => this.#sent.has(metadata.name),
        isGoing: ({ metadata }) => this.#sent.has(metadata.name),
        restMs: () => 0,
        inTurn: (those) => [...those],
        keeps: () => false,
        move: async (wanted) => await Promise.resolve(this.#move(wanted)),
      },
      records: {
        leftLately: () => new Set(this.ill),
        withinAnHour: (_of, strategies) =>
          movesWithin(
            this.moves.filter(({ strategy }) => strategies?.includes(strategy) ?? true),
            60 * MINUTE_MS,
            this.now,
          ),
      },
      monotonic: () => this.now,
    });
  }

  #pods(): Pod[] {
    const conditions: Condition[] = this.isReady ? [{ type: 'Ready', status: 'True' }] : [];
    const ownerReferences = [{ ...this.controller, name: 's', uid: 's', controller: true }];
    return this.fleet.pods.map(({ uid, cluster: nodeName }) => ({
      metadata: { name: uid, uid, ownerReferences },
      spec: { nodeName, containers: [] },
      status: { phase: 'Running', conditions },
    }));
  }

  #move({ strategy, pod, from, recheck }: WantedMove): 'moved' | 'held' | 'notWanted' {
    const found = recheck(pod);
    if (found === 'notWanted') return 'notWanted';
    if (found !== undefined) {
      this.held.push(found.why);
      return 'held';
    }
    const { name } = pod.metadata;
    this.moves = withMove(this.moves, { strategy, from, pod: name, message: '' }, this.now);
    this.moved.push({ at: this.now, from, strategy });
    this.#sent.add(name);
    if (this.isFrozen) return 'moved';
    this.fleet.pods = this.fleet.pods.filter(({ uid }) => uid !== name);
    this.fleet.place();
    return 'moved';
  }

  mostWithinAnHour(): number {
    const within = (end: number): number =>
      this.moved.filter(({ at }) => at > end - 60 * MINUTE_MS && at <= end).length;
    return Math.max(0, ...this.moved.map(({ at }) => within(at)));
  }

  /** As time goes on, with a look every 15 s. */
  async pass(ms: number): Promise<void> {
    for (let rest = ms; rest > 0; rest -= LOOK_MS) {
      await this.#strategy.bringUpToDate('w', signal);
      this.now += LOOK_MS;
    }
  }
}

describe('pods that would be elsewhere if they came now', () => {
  test('none follows one that was told to go while the caches do not show what became of it', async () => {
    const world = new World(HOME_FIRST, { home: 2, away: 9 });
    world.fleet.room['home'] = 6;
    world.isFrozen = true;
    await world.pass(10 * MINUTE_MS);
    expect(world.moved).toHaveLength(1);
  });

  test('go home one by one once that has had room for as long as the policy says', async () => {
    const world = new World(HOME_FIRST, { home: 2, away: 9 });
    world.fleet.room['home'] = 4;
    await world.pass(5 * MINUTE_MS);
    expect(world.moved).toEqual([]);
    await world.pass(LOOK_MS);
    expect(world.moved).toHaveLength(1);
    await world.pass(LOOK_MS);
    expect(world.fleet.counts()).toEqual({ home: 4, away: 2 });
    await world.pass(60 * MINUTE_MS);
    expect(world.moved).toHaveLength(2);
  });

  test('do not go where pods were not well lately', async () => {
    const world = new World(HOME_FIRST, { home: 2, away: 9 });
    world.fleet.room['home'] = 4;
    world.ill = ['home'];
    await world.pass(30 * MINUTE_MS);
    expect(world.moved).toEqual([]);
    world.ill = ['away'];
    await world.pass(5 * MINUTE_MS);
    expect(world.fleet.counts()).toEqual({ home: 4, away: 2 });
  });

  test('stay without a word of their policy, and while not all of them are Ready', async () => {
    const world = new World(HOME_FIRST, { home: 2, away: 9 });
    world.fleet.room['home'] = 9;
    world.failover = { divisionDrift: { after: '0s' }, activation: 'Eager' };
    await world.pass(30 * MINUTE_MS);
    world.failover = { repatriate: { after: '1m' } };
    world.isReady = false;
    await world.pass(30 * MINUTE_MS);
    expect(world.moved).toEqual([]);
    world.isReady = true;
    await world.pass(LOOK_MS);
    expect(world.moved).toHaveLength(1);
  });

  test.each<[Failover, object]>([
    [{ repatriate: { after: '1m' } }, HOME_FIRST],
    [{ divisionDrift: { after: '1m' } }, AWAY_AT_MOST_TWO],
    [{ spreadViolation: { after: '1m' } }, { spreadConstraints: [{ minGroups: 2 }] }],
    [{ activation: 'Eager' }, { clusterAffinity: { clusterNames: ['home'] } }],
  ])(
    'stay with %j when they are of a Job, which would count each as failed, and say so',
    async (failover, placement) => {
      const world = new World(HOME_FIRST, { home: 0, away: 9 });
      world.controller = { apiVersion: 'batch/v1', kind: 'Job' };
      world.fleet.room['home'] = 9;
      world.fleet.edit(placement);
      world.failover = failover;
      await world.pass(5 * MINUTE_MS);
      expect([world.moved, new Set(world.held)]).toEqual([
        [],
        new Set(['a Job counts a pod that is deleted as one that failed']),
      ]);
      world.controller = { apiVersion: 'apps/v1', kind: 'ReplicaSet' };
      await world.pass(LOOK_MS);
      expect(world.moved).toHaveLength(1);
    },
  );

  test('stay while their member is silent, however Ready the host shows them', async () => {
    const world = new World(HOME_FIRST, { home: 2, away: 9 });
    world.silent = ['away'];
    world.fleet.room['home'] = 4;
    await world.pass(30 * MINUTE_MS);
    expect(world.moved).toEqual([]);
    world.silent = [];
    await world.pass(5 * MINUTE_MS + LOOK_MS);
    expect(world.moved).toEqual([{ at: 35 * MINUTE_MS, from: 'away', strategy: 'Repatriate' }]);
  });

  test('room that comes and goes brings nobody home', async () => {
    const world = new World(HOME_FIRST, { home: 2, away: 9 });
    for (let times = 0; times < 20; times += 1) {
      world.fleet.room['home'] = times % 2 === 0 ? 6 : 2;
      await world.pass(4 * MINUTE_MS);
    }
    expect(world.moved).toEqual([]);
  });

  test('whatever room, weights and policies do: nothing leaves home for it, each move had its time, and there are few', async () => {
    const step = fc.record({
      home: fc.nat(REPLICAS),
      away: fc.nat(REPLICAS),
      minutes: fc.integer({ min: 1, max: 12 }),
      after: fc.constantFrom('30s', '3m', '5m'),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
        const world = new World(HOME_FIRST, { home: 3, away: 9 });
        /** When home got its room, for pods beyond those that were there. */
        let roomSince = 0;
        for (const { home, away, minutes, after } of steps) {
          world.failover = { repatriate: { after } };
          // What the last look filled was there for it.
          const isFilledNow = world.moved.at(-1)?.at === world.now - LOOK_MS;
          const hadRoom = isFilledNow || (world.fleet.room['home'] ?? 0) > (world.fleet.counts()['home'] ?? 0);
          world.fleet.room = { home, away };
          const hasRoom = home > (world.fleet.counts()['home'] ?? 0);
          if (hasRoom && !hadRoom) roomSince = world.now;
          const before = world.moved.length;
          await world.pass(minutes * MINUTE_MS);
          for (const { at } of world.moved.slice(before)) expect(at - roomSince).toBeGreaterThanOrEqual(30_000);
        }
        expect(world.moved.filter(({ from }) => from === 'home')).toEqual([]);
        expect(world.mostWithinAnHour()).toBeLessThanOrEqual(REPLICAS);
      }),
      { numRuns: 25 },
    );
  });

  test('rules that turn round begin the time anew: none goes back at once', async () => {
    const world = new World(byWeight(1, 1), {});
    world.failover = { divisionDrift: { after: '1m' } };
    world.fleet.edit(byWeight(5, 1));
    await world.pass(MINUTE_MS + LOOK_MS);
    expect(world.moved).toEqual([{ at: MINUTE_MS, from: 'away', strategy: 'DivisionDrift' }]);
    world.fleet.edit(byWeight(1, 5));
    await world.pass(MINUTE_MS);
    expect(world.moved).toHaveLength(1);
    await world.pass(LOOK_MS);
    expect(world.moved.slice(1)).toEqual([{ at: 2 * MINUTE_MS + LOOK_MS, from: 'home', strategy: 'DivisionDrift' }]);
  });

  test('shares that are edited over and over move each pod once an hour at most', async () => {
    const world = new World(byWeight(1, 1), {});
    world.failover = { divisionDrift: { after: '1m' } };
    await world.pass(30 * MINUTE_MS);
    expect(world.moved).toEqual([]);
    world.fleet.edit(byWeight(5, 1));
    await world.pass(10 * MINUTE_MS);
    expect(world.fleet.counts()).toEqual({ home: 5, away: 1 });
    expect(world.moved).toHaveLength(2);
    for (let times = 0; times < 12; times += 1) {
      world.fleet.edit(times % 2 === 0 ? byWeight(1, 5) : byWeight(5, 1));
      await world.pass(5 * MINUTE_MS);
    }
    expect(world.mostWithinAnHour()).toBe(REPLICAS);
  });

  test('go back to their shares one by one when a cluster that did not answer is back, and has been for its time', async () => {
    const world = new World(byWeight(1, 1), {});
    world.failover = { divisionDrift: { after: '5m' } };
    const answers = (reason?: string): void => {
      world.fleet.clusters = [cluster('home'), cluster('away', reason === undefined ? {} : { unavailable: reason })];
      world.silent = reason === undefined ? [] : ['away'];
    };
    // Its pods were replaced when it was lost.
    answers('it does not answer');
    world.fleet.pods = world.fleet.pods.filter((pod) => pod.cluster === 'home');
    world.fleet.scale(REPLICAS);
    expect(world.fleet.counts()).toEqual({ home: 6 });
    await world.pass(30 * MINUTE_MS);
    expect(world.moved).toEqual([]);
    answers();
    await world.pass(4 * MINUTE_MS);
    // It comes and goes: the time begins anew.
    answers('it does not answer');
    await world.pass(MINUTE_MS);
    answers();
    await world.pass(5 * MINUTE_MS);
    expect(world.moved).toEqual([]);
    await world.pass(LOOK_MS);
    expect(world.moved).toEqual([{ at: 40 * MINUTE_MS, from: 'home', strategy: 'DivisionDrift' }]);
    await world.pass(30 * MINUTE_MS);
    expect(world.fleet.counts()).toEqual({ away: 3, home: 3 });
    expect(world.moved).toHaveLength(3);
  });

  test('are spread again as the policy asks, if it says so, and by one move where one mends it', async () => {
    const world = new World(
      { spreadConstraints: [{ minGroups: 2, whenUnsatisfiable: 'ScheduleAnyway' }] },
      { home: 9 },
    );
    world.fleet.room['away'] = 0;
    for (const pod of world.fleet.pods.splice(0)) world.fleet.pods.push({ ...pod, cluster: 'home' });
    world.failover = { spreadViolation: { after: '3m' } };
    await world.pass(10 * MINUTE_MS);
    expect(world.moved).toEqual([]);
    world.fleet.room['away'] = 9;
    world.failover = { divisionDrift: { after: '0s' }, repatriate: { after: '0s' }, activation: 'Eager' };
    await world.pass(10 * MINUTE_MS);
    expect(world.moved).toEqual([]);
    world.failover = { spreadViolation: { after: '3m' } };
    await world.pass(3 * MINUTE_MS);
    expect(world.moved).toEqual([]);
    world.isReady = false;
    await world.pass(3 * MINUTE_MS);
    expect(world.moved).toEqual([]);
    world.isReady = true;
    await world.pass(60 * MINUTE_MS);
    expect(world.moved.map(({ from, strategy }) => [from, strategy])).toEqual([['home', 'SpreadViolation']]);
    expect(world.fleet.counts()).toEqual({ away: 1, home: 5 });
  });

  test('what a policy does not choose any more is left, if that says Eager', async () => {
    const world = new World(HOME_FIRST, { home: 2, away: 9 });
    world.fleet.edit({ clusterAffinity: { clusterNames: ['home'] } });
    world.fleet.room['home'] = 9;
    world.failover = { activation: 'Lazy' };
    await world.pass(30 * MINUTE_MS);
    expect(world.moved).toEqual([]);
    world.failover = { activation: 'Eager' };
    await world.pass(5 * MINUTE_MS);
    expect(world.fleet.counts()).toEqual({ home: 6 });
    expect(new Set(world.moved.map(({ strategy }) => strategy))).toEqual(new Set(['PolicyChanged']));
  });
});
