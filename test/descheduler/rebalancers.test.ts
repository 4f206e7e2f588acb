import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  type ObservedWorkload,
  parseWorkloadRebalancer,
  type WorkloadRebalancer,
} from '../../src/api/workload-rebalancer.ts';
import { Rebalancers } from '../../src/descheduler/rebalancers.ts';
import type { MovedTooOften } from '../../src/descheduler/moves-fuse.ts';
import type { WantedMove } from '../../src/descheduler/wanted-move.ts';
import type { Condition, Pod } from '../../src/kube/core-v1.ts';
import { TransportError } from '../../src/kube/errors.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { betterPlace } from '../../src/placement/better-place.ts';
import { nextPlace } from '../../src/placement/next-place.ts';
import { podsAfter, roomsAfter } from '../../src/placement/supposed-moves.ts';
import { withoutOne } from '../../src/placement/workload.ts';
import { GOOD_REBALANCER, WRONG_REBALANCERS } from '../api/wrong-rebalancers.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { type MemoryApiServer, serveMemoryApi } from '../fixtures/memory-api-server.ts';
import { cluster, Fleet } from '../placement/fleet.ts';

/** One Deployment shop/web, whose pods are placed by the real rules, and moved by what is under test, on a clock of its own. */
const PATH = '/apis/spillway.dev/v1alpha1/workloadrebalancers';
const WEB = { apiVersion: 'apps/v1', kind: 'Deployment', namespace: 'shop', name: 'web' };
const START = Date.parse('2026-01-01T00:00:00Z');
const HOME_FIRST = { clusterAffinity: { clusterNames: ['home'], overflowAffinities: [{ clusterNames: ['away'] }] } };
const EDIT = { method: 'PATCH', path: `${PATH}/now`, query: {}, contentType: 'application/merge-patch+json' };
const { signal } = new AbortController();
const workload = { ...WEB, metadata: { name: 'web', namespace: 'shop', uid: 'w' } };

let api: MemoryApi;
let server: MemoryApiServer;
let fleet: Fleet;
let rebalancers: Rebalancers;
let now: number;
let isReady: boolean;
/** Pods that were evicted long ago and end in a lost member still. */
let ending: number;
let hasRules: boolean;
/** Why it is not known which rules its pods are under. */
let rulesUnknown: string | undefined;
let held: boolean;
let isKnown: boolean;
let stopped: string | undefined;
/** Why rebalancers cannot be followed, and what the cache has instead of what is stored. */
let problem: string | undefined;
/** Why nothing at all is moved. */
let hostProblem: string | undefined;
/** Why it is not known where a pod would go. */
let unknown: string | undefined;
let seen: () => WorkloadRebalancer | undefined;
/** What keeps the pod that is to move. */
let why: string | undefined;
/** The limit of moves within an hour, where it is reached. */
let tooOften: MovedTooOften | undefined;
let isReadable: boolean;
let controller: { apiVersion: string; kind: string };
/** Moves that were asked for. */
let asked: number;
let beforeMove: () => unknown;
/** The configuration says that nothing is moved. */
let allDry: boolean;
let moved: string[];

beforeEach(async () => {
  api = new MemoryApi();
  server = await serveMemoryApi(api);
  [now, isReady, hasRules, held, moved] = [START, true, true, false, []];
  controller = { apiVersion: 'apps/v1', kind: 'ReplicaSet' };
  ending = 0;
  [isKnown, isReadable, asked, beforeMove] = [true, true, 0, () => undefined];
  [stopped, why, tooOften, problem] = [undefined, undefined, undefined, undefined];
  [hostProblem, unknown, rulesUnknown] = [undefined, undefined, undefined];
  allDry = false;
  seen = stored;
  fleet = new Fleet({
    placement: HOME_FIRST,
    clusters: [cluster('home'), cluster('away')],
    room: { home: 1, away: 9 },
    uid: 'w',
  });
  fleet.scale(3);
  fleet.room['home'] = 9;
  rebalancers = new Rebalancers({
    host: server.client('host'),
    placed: {
      get problem() {
        return hostProblem;
      },
      member: () => undefined,
      workloadNamed: ({ name }) => (name === 'web' && isKnown ? workload : undefined),
      hasRules: () => hasRules,
      whyRulesUnknown: () => rulesUnknown,
      ofWorkload: () => [...endingPods(), ...pods()],
      rulesOf: () => ({ workload, replicas: 3, failover: undefined, clusterTolerations: [] }),
      clusterOf: (nodeName) => nodeName,
      betterPlace: (_pod, from, _counts, after = []) => {
        if (unknown !== undefined) return { unknown };
        const facts = fleet.facts();
        const all = podsAfter(facts.workload.pods, after, () => fleet.revision);
        const workload = { ...facts.workload, pods: withoutOne(all, fleet.revision, from) };
        const without = { ...facts, workload, rooms: roomsAfter(facts.rooms, after) };
        return betterPlace(without, nextPlace(without), from);
      },
    },
    mover: {
      read: async (pod) => await Promise.resolve(isReadable ? pod : undefined),
      wasSent: () => false,
      isGoing: () => false,
      restMs: () => 0,
      inTurn: (those) => [...those],
      keeps: () => false,
      whyHeld: () => why,
      whyHeldNow: () => why,
      fuse: { tooOften: () => tooOften },
      move: async (wanted) => {
        asked += 1;
        await beforeMove();
        return (await wanted.isOrdered?.(signal)) === true ? move(wanted) : 'notWanted';
      },
    },
    stop: {
      get why() {
        return stopped;
      },
    },
    get dryRun() {
      return allDry;
    },
    rebalancers: {
      get: () => seen(),
      get problem() {
        return problem;
      },
    },
    clock: () => now,
    monotonic: () => now,
  });
});
afterEach(async () => {
  await server.close();
});

function pods(): Pod[] {
  const conditions: Condition[] = isReady ? [{ type: 'Ready', status: 'True' }] : [];
  const ownerReferences = [{ ...controller, name: 's', uid: 's', controller: true }];
  return fleet.pods.map(({ uid, cluster: nodeName }) => ({
    metadata: { name: uid, uid, ownerReferences },
    spec: { nodeName, containers: [] },
    status: { phase: 'Running', conditions },
  }));
}

function endingPods(): Pod[] {
  return Array.from({ length: ending }, (_, index) => ({
    metadata: { name: `old-${String(index)}`, uid: `old-${String(index)}`, deletionTimestamp: '2025-12-31T00:00:00Z' },
    spec: { nodeName: 'lost', containers: [] },
    status: { phase: 'Running' },
  }));
}

function move({ strategy, pod, from, recheck }: WantedMove): 'moved' | 'held' | 'notWanted' {
  const found = recheck(pod);
  if (found !== undefined || held) return found === 'notWanted' ? 'notWanted' : 'held';
  moved.push(`${strategy} ${from}`);
  fleet.pods = fleet.pods.filter(({ uid }) => uid !== pod.metadata.name);
  fleet.place();
  return 'moved';
}

function ask(more: object = {}, ...names: string[]): void {
  const workloads = ['web', ...names].map((name) => ({ ...WEB, name }));
  const body = {
    apiVersion: 'spillway.dev/v1alpha1',
    kind: 'WorkloadRebalancer',
    metadata: { name: 'now' },
    spec: { workloads, ...more },
  };
  api.handle({ method: 'POST', path: PATH, query: {}, body, contentType: 'application/json' });
}

function stored(): WorkloadRebalancer | undefined {
  const raw = api.objects.get(`${PATH}/now`) as KubeObject | undefined;
  if (raw === undefined) return undefined;
  const parsed = parseWorkloadRebalancer(raw);
  if ('problems' in parsed) throw new Error(parsed.problems.join());
  return parsed.rebalancer;
}

const look = async (): Promise<unknown> => await rebalancers.bringUpToDate('now', signal);
const said = (): (string | undefined)[] =>
  (stored()?.status?.observedWorkloads ?? []).map(({ result = '-', reason }) => `${result} ${reason}`);

test('pods go one by one to where they would go if they came now, without a word of their policy; then it is told and over', async () => {
  ask();
  expect(await look()).toEqual({ requeueAfterMs: 2_000 });
  expect([moved, said()]).toEqual([['Rebalance away'], ['- Progressing']]);
  await look();
  expect(moved).toHaveLength(2);
  expect(fleet.counts()).toEqual({ home: 3 });
  expect(await look()).toEqual({ requeueAfterMs: 2_000 });
  expect(said()).toEqual(['- Progressing']);
  now += 5_000;
  expect(await look()).toBeUndefined();
  expect(said()).toEqual(['Successful Rebalanced']);
  expect(stored()?.status?.finishTime).toBe('2026-01-01T00:00:05Z');
  // What has its result is not looked at again.
  fleet.room['home'] = 0;
  const { length } = api.seen;
  await look();
  expect(api.seen).toHaveLength(length);
});

test('one that is not there, and one that no rules speak about, are told', async () => {
  ask({}, 'gone');
  hasRules = false;
  await look();
  now += 5_000;
  await look();
  expect(said()).toEqual(['Failed NoPolicy', 'Failed ReferencedWorkloadNotFound']);
  expect(moved).toEqual([]);
});

test('one whose rules are not known has no result, and says so', async () => {
  ask();
  hasRules = false;
  rulesUnknown = 'PlacementPolicy p was deleted less than a minute ago, and may come back';
  await look();
  now += 10_000;
  await look();
  expect([moved, said()]).toEqual([[], ['- Progressing']]);
  expect(stored()?.status?.observedWorkloads?.[0]?.message).toBe(
    `it is not known where its pods would go: ${rulesUnknown}`,
  );
  rulesUnknown = undefined;
  await look();
  now += 5_000;
  await look();
  expect(said()).toEqual(['Failed NoPolicy']);
});

test('what was written just before it and is known a moment later counts', async () => {
  fleet.room['home'] = 1;
  isKnown = false;
  ask();
  await look();
  now += 2_000;
  isKnown = true;
  await look();
  now += 4_900;
  await look();
  expect([moved, said()]).toEqual([[], ['- Progressing']]);
  fleet.room['home'] = 9;
  await look();
  expect([moved, said()]).toEqual([['Rebalance away'], ['- Progressing']]);
});

test('a pod that is not to move any more at the last moment stays, as others of its workload are not Ready by then', async () => {
  ask();
  beforeMove = () => (isReady = false);
  await look();
  expect([moved, said()]).toEqual([[], ['- Progressing']]);
});

test('pods of a Job are moved, too, as somebody named it', async () => {
  controller = { apiVersion: 'batch/v1', kind: 'Job' };
  ask();
  await look();
  expect(moved).toEqual(['Rebalance away']);
});

test('one that is deleted while a move waits for its turn moves nothing any more', async () => {
  ask();
  beforeMove = () =>
    api.handle({ method: 'DELETE', path: `${PATH}/now`, query: {}, body: {}, contentType: 'application/json' });
  await look();
  expect([moved, stored()]).toEqual([[], undefined]);
});

const OTHER = { workloads: [{ ...WEB, name: 'other' }] };
test.each<[string, { metadata?: object; spec?: object }]>([
  ['is made anew', { metadata: { uid: 'another' } }],
  ['is edited', { metadata: { generation: 2 } }],
  ['does not name the workload any more', { spec: OTHER }],
])('one that %s while a move waits for its turn does not move what was meant before', async (_, { metadata, spec }) => {
  ask();
  beforeMove = () => {
    const before = api.objects.get(`${PATH}/now`);
    const edited = {
      ...before,
      metadata: { ...before?.metadata, ...metadata },
      ...(spec === undefined ? {} : { spec }),
    };
    api.put(`${PATH}/now`, edited);
  };
  // What is to be told may be about an object that is gone by now.
  await look().catch(() => undefined);
  expect([asked, moved]).toEqual([1, []]);
});

test('of a workload that two of them name one pod moves at a time', async () => {
  ask();
  let go = (): void => undefined;
  beforeMove = async () => await new Promise<void>((resolve) => (go = resolve));
  const first = look();
  await vi.waitFor(() => expect(asked).toBe(1));
  await rebalancers.bringUpToDate('another', signal);
  expect(asked).toBe(1);
  go();
  await first;
  expect(moved).toHaveLength(1);
});

test('while not all pods are Ready none is moved; after ten minutes it is given up, and told', async () => {
  ask();
  isReady = false;
  await look();
  now += 599_000;
  await look();
  expect([moved, said()]).toEqual([[], ['- Progressing']]);
  now += 1_000;
  await look();
  expect(said()).toEqual(['Failed PodsStay']);
  expect(stored()?.status?.observedWorkloads?.[0]?.message).toMatch(/^not all of its pods were Ready/);
});

test('pods that end for days keep none of the others, as long as as many are there beside them', async () => {
  ending = 2;
  ask();
  await look();
  expect(moved).toHaveLength(1);
  fleet.pods = fleet.pods.slice(1);
  await look();
  expect(moved).toHaveLength(1);
});

test('pods that stay are given up after ten minutes, counted from the last one that went', async () => {
  ask();
  await look();
  held = true;
  now += 600_000 - 1;
  await look();
  expect(said()).toEqual(['- Progressing']);
  now += 1;
  await look();
  expect(said()).toEqual(['Failed PodsStay']);
});

test('while all moves are stopped it goes on as one that waits, says so, and gives nothing up; the ten minutes begin anew', async () => {
  ask();
  [held, stopped] = [true, 'all moves are stopped (INC-7)'];
  await look();
  now += 3_600_000;
  await look();
  expect(stored()?.status?.observedWorkloads).toMatchObject([{ reason: 'Progressing', message: stopped }]);
  expect(said()).toEqual(['- Progressing']);
  stopped = undefined;
  now += 599_000;
  await look();
  expect(stored()?.status?.observedWorkloads?.[0]?.message).toBeUndefined();
  expect(said()).toEqual(['- Progressing']);
  now += 1_000;
  await look();
  expect(said()).toEqual(['Failed PodsStay']);
});

test('while nothing is moved, as the host cannot be followed, it gives nothing up', async () => {
  ask();
  [held, why, hostProblem] = [true, 'the host cannot be followed now', 'WorkloadPlacements cannot be read'];
  await look();
  for (const ms of [600_000, 600_000]) {
    now += ms;
    await look();
  }
  expect(said()).toEqual(['- Progressing']);
});

test.each([false, true])('while the host cannot be followed nothing has a result (dry run: %s)', async (dryRun) => {
  fleet.pods = fleet.pods.map((pod) => ({ ...pod, cluster: 'home' }));
  ask({ dryRun }, 'gone');
  hostProblem = 'placementpolicies cannot be read';
  for (const ms of [0, 5_000, 600_000]) {
    now += ms;
    await look();
  }
  expect(said()).toEqual(['- Progressing', '- Progressing']);
  expect(stored()?.status?.observedWorkloads?.[0]?.message).toContain(hostProblem);
  hostProblem = undefined;
  await look();
  now += 5_000;
  await look();
  expect(said()).toEqual(['Successful Rebalanced', 'Failed ReferencedWorkloadNotFound']);
});

test.each([false, true])(
  'where it is not known where pods would go it says so, and is no success (dry run: %s)',
  async (dryRun) => {
    const message = (): string | undefined => stored()?.status?.observedWorkloads?.[0]?.message;
    ask({ dryRun });
    unknown = 'the pod that comes in its place is of revision db-1, and it is not known what that asks for';
    await look();
    now += 60_000;
    await look();
    expect([moved, said(), message()]).toEqual([[], ['- Progressing'], expect.stringContaining(unknown)]);
    now += 600_000;
    await look();
    expect([said(), message()]).toEqual([['Failed PodsStay'], expect.stringContaining(unknown)]);
  },
);

test('while the limit of moves within an hour holds its pods it gives nothing up; the ten minutes begin anew', async () => {
  const message = (): string | undefined => stored()?.status?.observedWorkloads?.[0]?.message;
  ask();
  const limit = 'descheduler.movesPerPodPerHour is 5';
  held = true;
  why = `pods of its workload were moved too often (15 times within an hour; ${limit})`;
  tooOften = { count: 15, most: 15, limit, forMs: 3_000_000 };
  await look();
  for (const ms of [600_000, 600_000, 600_000, 600_000]) {
    now += ms;
    await look();
  }
  expect([said(), message()]).toEqual([['- Progressing'], `not moved now: ${why}`]);
  [why, tooOften] = ['its disruption budget allows no eviction now', undefined];
  now += 599_000;
  await look();
  expect(said()).toEqual(['- Progressing']);
  now += 1_000;
  await look();
  expect(said()).toEqual(['Failed PodsStay']);
});

test('says what keeps pods where they are, and what did when it is given up', async () => {
  const message = (): string | undefined => stored()?.status?.observedWorkloads?.[0]?.message;
  ask();
  [held, why] = [true, 'its disruption budget allows no eviction now'];
  await look();
  expect(message()).toBe(`not moved now: ${why}`);
  const writes = (): number => api.requests('PATCH').length;
  const before = writes();
  await look();
  expect(writes()).toBe(before);
  now += 600_000;
  await look();
  expect(said()).toEqual(['Failed PodsStay']);
  expect(message()).toBe(
    `pods would be elsewhere if they came now, and none could be moved for ten minutes: their Events say why; at last: ${why}`,
  );
});

test('says that it waits for pods to be Ready when that takes its time', async () => {
  const message = (): string | undefined => stored()?.status?.observedWorkloads?.[0]?.message;
  ask();
  isReady = false;
  await look();
  now += 29_000;
  await look();
  expect(message()).toBeUndefined();
  now += 1_000;
  await look();
  expect(message()).toBe('not all of its pods are there and Ready');
  isReady = true;
  await look();
  expect([moved.length, message()]).toEqual([1, undefined]);
});

test('it is deleted when its time is over, and not before', async () => {
  ask({ ttlSecondsAfterFinished: 60 });
  await look();
  await look();
  await look();
  now += 5_000;
  await look();
  now += 59_000;
  expect(await look()).toEqual({ requeueAfterMs: 1_000 });
  now += 1_000;
  await look();
  expect(stored()).toBeUndefined();
  expect(await look()).toBeUndefined();
});

test('an edit begins anew', async () => {
  ask();
  for (let times = 0; times < 3; times += 1) await look();
  now += 5_000;
  await look();
  expect([said(), stored()?.status?.summary]).toEqual([['Successful Rebalanced'], '1 of 1 Successful']);
  const spec = { workloads: [WEB, { ...WEB, name: 'gone' }] };
  api.edit(`${PATH}/now`, { spec });
  api.edit(`${PATH}/now`, { metadata: { generation: 2 } });
  expect(stored()?.metadata.generation).toBe(2);
  await look();
  expect([said(), stored()?.status?.finishTime]).toEqual([['- Progressing', '- Progressing'], undefined]);
  now += 5_000;
  await look();
  expect(said()).toEqual(['Successful Rebalanced', 'Failed ReferencedWorkloadNotFound']);
  expect(stored()?.status?.observedGeneration).toBe(2);
  expect(stored()?.status?.summary).toBe('1 of 2 Successful, 1 Failed');
});

test.each(WRONG_REBALANCERS)('one with $what cannot be read, in case it is older than its CRD', ({ wrong, field }) => {
  const raw = { metadata: { name: 'a' }, spec: { ...GOOD_REBALANCER, ...wrong } };
  const parsed = parseWorkloadRebalancer(raw);
  expect('problems' in parsed ? parsed.problems.join() : '').toContain(field);
});

test('pods that may not be read are no success: it goes on, and says so in the end', async () => {
  ask();
  isReadable = false;
  await look();
  now += 60_000;
  await look();
  expect([moved, said()]).toEqual([[], ['- Progressing']]);
  now += 600_000;
  await look();
  expect(said()).toEqual(['Failed PodsStay']);
  expect(stored()?.status?.observedWorkloads?.[0]?.message).toMatch(/could not be read .*descheduler\.yaml/);
});

test.each([
  ['one workload keeps no other from its result, and is given up in its time', 'malformed', 'Failed PodsStay'],
  ['the host as a whole is no reason to give up', 'refused', '- Progressing'],
] as const)('a failure that is about %s; it is thrown', async (_, kind, inTheEnd) => {
  ask({}, 'other');
  beforeMove = () => {
    throw new TransportError({ cluster: 'host', method: 'GET', path: '/', kind, detail: 'no answer' });
  };
  await expect(look()).rejects.toThrow('no answer');
  expect(said()).toEqual(['- Progressing', '- Progressing']);
  expect(stored()?.status?.observedWorkloads?.[0]?.message).toMatch(/a request failed \(cluster host: no answer/);
  for (let minutes = 0; minutes < 15; minutes += 1) {
    now += 60_000;
    await look().catch(() => undefined);
  }
  expect(said()[0]).toBe(inTheEnd);
  expect(said()[1]).toBe(kind === 'malformed' ? 'Failed ReferencedWorkloadNotFound' : '- Progressing');
});

test('one that may be deleted by now moves nothing and says so, and is not given up meanwhile', async () => {
  ask();
  await look();
  expect(moved).toHaveLength(1);
  problem = 'it is broken';
  for (let minutes = 0; minutes < 15; minutes += 1) {
    now += 60_000;
    await look();
  }
  expect(moved).toHaveLength(1);
  expect(stored()?.status?.observedWorkloads).toEqual([
    expect.objectContaining({
      reason: 'Progressing',
      message:
        'not moved now: it is not known whether it is still wanted, as WorkloadRebalancers cannot be followed now (it is broken)',
    }),
  ]);
  problem = undefined;
  await look();
  expect(moved).toHaveLength(2);
});

test('nor does a move that waits for its turn when that begins', async () => {
  ask();
  beforeMove = () => (problem = 'it is broken');
  await look();
  expect([asked, moved]).toEqual([1, []]);
});

test.each<[string, () => unknown]>([
  ['deleted', () => api.delete(`${PATH}/now`)],
  [
    'edited',
    () =>
      api.handle({ ...EDIT, body: { spec: { workloads: [{ ...WEB, name: 'other' }], ttlSecondsAfterFinished: 5 } } }),
  ],
])('one that was %s, as the watch has not shown, moves nothing', async (_, end) => {
  ask();
  const known = stored();
  seen = () => known;
  end();
  await look();
  expect([asked, moved]).toEqual([1, []]);
});

test('what was found of a former version is not written over what was found since', async () => {
  ask();
  const known = stored();
  seen = () => known;
  api.edit(`${PATH}/now`, { status: { summary: 'of another process' } });
  await look();
  expect(stored()?.status?.summary).toBe('of another process');
});

describe('a dry run', () => {
  const observed = (): ObservedWorkload | undefined => stored()?.status?.observedWorkloads?.[0];
  const moves = (): (readonly [string, string, string])[] =>
    (observed()?.moves ?? []).map(({ pod, from, to }) => [pod, from, to] as const);

  async function answered(more: object = { dryRun: true }, ...names: string[]): Promise<void> {
    ask(more, ...names);
    await look();
    expect(said()[0]).toBe('- Progressing');
    now += 5_000;
    await look();
    expect([asked, moved]).toEqual([0, []]);
  }

  test('says which pods would be moved, in their order, and why; nothing is moved, be all moves stopped or not', async () => {
    stopped = 'all moves are stopped (INC-7)';
    await answered();
    expect(observed()).toEqual({
      workload: WEB,
      result: 'Successful',
      reason: 'DryRun',
      moves: [
        { pod: 'p2', from: 'away', to: 'home', why: 'Repatriate: home comes first and has room' },
        { pod: 'p3', from: 'away', to: 'home', why: 'Repatriate: home comes first and has room' },
      ],
    });
    expect(stored()?.status).toMatchObject({ summary: 'dry run: 1 of 1, 2 pods would move' });
    expect(stored()?.status?.finishTime).toBeDefined();
  });

  test('each as if those before it had gone: no more than have room, and no more than the shares say', async () => {
    fleet.room['home'] = 2;
    await answered();
    expect(moves()).toHaveLength(1);
    fleet.room['home'] = 9;
    const weighted = ['home', 'away'].map((name) => ({ targetCluster: { clusterNames: [name] }, weight: 1 }));
    fleet.edit({
      clusterAffinity: { clusterNames: ['home', 'away'] },
      replicaScheduling: {
        replicaSchedulingType: 'Divided',
        replicaDivisionPreference: 'Weighted',
        weightPreference: { staticWeightList: weighted },
      },
    });
    fleet.pods = fleet.pods.map((pod) => ({ ...pod, cluster: 'away' }));
    api.edit(`${PATH}/now`, { metadata: { generation: 2 }, status: {} });
    await look();
    now += 5_000;
    await look();
    expect(moves().map(([, from, to]) => [from, to])).toEqual([['away', 'home']]);
  });

  test('says what would keep them, and that there are more than are listed', async () => {
    const names = Array.from({ length: 255 }, (_, index) => `gone-${String(index)}`);
    [isReady, why] = [false, 'pods of its workload were moved too often'];
    fleet.scale(5);
    await answered({ dryRun: true }, ...names);
    expect(moves()).toHaveLength(2);
    expect(observed()?.message).toBe(
      'now they would wait: not all of its pods are there and Ready; now they would wait: pods of its workload were moved too often',
    );
    fleet.pods = [...fleet.pods, ...fleet.pods.map((pod) => ({ ...pod, uid: `${pod.uid}x`, cluster: 'away' }))];
    api.edit(`${PATH}/now`, { metadata: { generation: 2 }, status: {} });
    await look();
    now += 5_000;
    await look();
    expect(moves()).toHaveLength(2);
    expect(observed()?.message).toMatch(/^more pods than these would be moved; now they would wait: /);
  });

  test('is cut to what its CRD takes', async () => {
    why = 'no other cluster takes it now '.repeat(100);
    await answered();
    expect(observed()?.message).toMatch(/^now they would wait: no other cluster .*…$/);
    expect(observed()?.message).toHaveLength(1_024);
  });

  test('of what is where it would go, is not there, or under no rules says that', async () => {
    fleet.pods = fleet.pods.map((pod) => ({ ...pod, cluster: 'home' }));
    await answered({ dryRun: true }, 'gone');
    expect(said()).toEqual(['Successful Rebalanced', 'Failed ReferencedWorkloadNotFound']);
  });

  test('waits for pods that cannot be read, and says so', async () => {
    isReadable = false;
    await answered();
    expect(observed()).toMatchObject({
      reason: 'Progressing',
      message: expect.stringContaining('cannot be read now') as string,
    });
  });

  test('is what each one is when the configuration says that nothing is moved', async () => {
    allDry = true;
    await answered({});
    expect(said()).toEqual(['Successful DryRun']);
    expect(moves()).toHaveLength(2);
  });

  test('that the configuration asked for counts no more when it does not', async () => {
    allDry = true;
    await answered({});
    allDry = false;
    await look();
    expect(moved).toEqual(['Rebalance away']);
  });

  test('that is edited to be made in earnest is made', async () => {
    await answered();
    api.edit(`${PATH}/now`, { metadata: { generation: 2 }, spec: { dryRun: false } });
    await look();
    expect(moved).toEqual(['Rebalance away']);
  });
});
