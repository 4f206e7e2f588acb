import { afterAll, beforeAll, expect, test } from 'vitest';
import { BurstHistory, type Moment } from '../../hack/burst-history.ts';
import { type BurstLab, startBurstLab } from '../../hack/burst-lab.ts';
import { BurstLoad } from '../../hack/burst-load.ts';
import type { Cluster } from '../../hack/cluster.ts';
import { manifest } from '../../hack/manifest.ts';
import { until } from '../../hack/until.ts';
import { Workspace } from '../../hack/workspace.ts';
import { EXTENDER_RESOURCE } from '../../src/api/marks.ts';
import { loadConfig } from '../../src/config.ts';
import { type Fields, newNamespace, pod, podSpec, podsOf } from '../fixtures/live-pods.ts';
import { deployment, policy, policyInUse, settled } from '../fixtures/scheduling.ts';
import { errorsOf } from '../fixtures/topology.ts';
import { report, seconds, violationsOf, wait } from './lab.ts';
import { ToldMoves } from './told-moves.ts';
import { mostOf, podsAt, WatchedWorkload } from './watched-workload.ts';

/** So many minutes stand for an hour: what waits for ten minutes in production waits for one here. */
const MINUTES = 6;
/**
 * What the fuse lets go within an hour of the clock (`descheduler.movesPerPodPerHour`, as it is by default), and rules by themselves. That
 * hour cannot be made shorter, and need not be: all of these minutes are within one, so they have what an hour has, and no more.
 * That it holds is shown where it is set to one (test/cluster/descheduler.test.ts).
 */
const [FUSE, BY_RULES] = [loadConfig(undefined, {}).descheduler.movesPerPodPerHour, 1];
/** What comes and goes, and how long each lasts, in ms: no two in step. */
const [LOAD_MS, ROOM_MS, TAINT_MS, LABELS_MS, HOME_MS] = [40_000, 55_000, 70_000, 95_000, 60_000];
/** Thousandths of a core: enough for twenty pods, for eighteen, for fourteen, and for two. */
const [BUSY, LARGE, STEADY, CALM] = [18_000, 9_000, 7_000, 900];
/** For so long there has to be a better place. */
const AFTER_MS = 15_000;
/** What is heard of it is late by less. */
const HEARD_MS = 1_000;
/** Less than it takes to look that long. */
const SHORT_MS = 8_000;
const REST_MS = 60_000;
/** The autoscaler has looked again by then, at figures that were measured meanwhile. */
const LOOKED_MS = 30_000;
/** Namespace and pods of the second workload, of which each asks for so much memory. The first one asks for none. */
const HOMELY = 'homely';
const [HOMELY_PODS, HOMELY_MEMORY] = [4, '16Gi'];
/** What somebody else takes of the only node of member a (256Gi), by turns: none of these pods fits beside it. */
const STRANGER_MEMORY = '244Gi';

let workspace: Workspace;
let lab: BurstLab;

beforeAll(async () => {
  workspace = Workspace.create();
  lab = await startBurstLab(workspace);
  await lab.host.apply(manifest('scheduler/descheduler.yaml'));
  await labels(false);
  // As in the sample, but by labels: local, at most three where step is first, then the other member.
  const overflowAffinities = [
    { labelSelector: { matchLabels: { step: 'first' } }, max: 3 },
    { clusterNames: ['a', 'b'] },
  ];
  const after = `${String(AFTER_MS / 1_000)}s`;
  await lab.host.api.call('PATCH', '/apis/spillway.dev/v1alpha1/namespaces/shop/placementpolicies/web', {
    spec: {
      placement: { clusterAffinity: { clusterNames: ['local'], overflowAffinities } },
      failover: { repatriate: { after }, divisionDrift: { after } },
    },
  });
  await policyInUse(lab.host, 'shop', 'web');
});
afterAll(async () => {
  const [errors, violations] = lab === undefined ? [] : [errorsOf(lab.spillway), violationsOf(lab.spillway)];
  await workspace?.close();
  expect([errors, violations]).toEqual([[], []]);
});

/** Member a is the first of the two, or b with `turned`. */
async function labels(turned: boolean): Promise<void> {
  const [first, last] = turned ? ['b', 'a'] : ['a', 'b'];
  for (const [name, step] of [
    [last, 'last'],
    [first, 'first'],
  ] as const) {
    const path = `/apis/spillway.dev/v1alpha1/memberclusters/${name}`;
    await lab.host.api.call('PATCH', path, { spec: { labels: { step } } });
  }
}

async function cordon(host: Cluster, on: boolean): Promise<void> {
  const nodes = (await host.api.call('GET', '/api/v1/nodes')) as { items: { metadata: { name: string } }[] };
  const name = nodes.items.map(({ metadata }) => metadata.name).find((one) => one.startsWith('local')) ?? '';
  await host.api.call('PATCH', `/api/v1/nodes/${name}`, { spec: { unschedulable: on } });
}

/** Turns something on and off in turn, until the signal aborts; leaves it off. */
async function inTurn(ms: number, turn: (on: boolean) => Promise<void> | void, signal: AbortSignal): Promise<void> {
  for (let on = true; !signal.aborted; on = !on) {
    await turn(on);
    const ends = performance.now() + ms;
    while (performance.now() < ends && !signal.aborted) await wait(250);
  }
  await turn(false);
}

/** Values of a counter by that label. */
async function counted(metric: string, label: string, filter = ''): Promise<Record<string, number>> {
  const text = await (await fetch(`${lab.spillway.url}/metrics`)).text();
  const sums: Record<string, number> = {};
  for (const line of text.split('\n')) {
    if (!line.startsWith(`${metric}{`) || !line.includes(filter)) continue;
    const key = new RegExp(`${label}="([^"]*)"`).exec(line)?.[1] ?? '';
    sums[key] = (sums[key] ?? 0) + Number(line.slice(line.lastIndexOf(' ') + 1));
  }
  return sums;
}

const movesByStrategy = async (): Promise<Record<string, number>> =>
  await counted('spillway_descheduler_moves_total', 'strategy', 'outcome="moved"');

/** Four pods at home in member a, that go to b when they have to, and back when there has been room. */
async function startHomely(): Promise<void> {
  const { host } = lab;
  await newNamespace(host, HOMELY);
  const clusterAffinity = { clusterNames: ['a'], overflowAffinities: [{ clusterNames: ['b'] }] };
  const { spec, ...rest } = policy(HOMELY, 'all', { clusterAffinity });
  const failover = { repatriate: { after: `${String(AFTER_MS / 1_000)}s` } };
  await host.apply([{ ...rest, spec: { ...(spec as Fields), failover } }]);
  await policyInUse(host, HOMELY, 'all');
  // The scheduler does not go on without an answer about these: local nodes have room that their policy does not give them.
  const mark = { [EXTENDER_RESOURCE]: '0' };
  const resources = { requests: { cpu: '10m', memory: HOMELY_MEMORY, ...mark }, limits: mark };
  const containers = [{ name: 'main', image: 'registry.example/app:v1', resources }];
  await host.apply([deployment(HOMELY, 'web', HOMELY_PODS, '10m', {}, { containers })]);
  await settled(host, HOMELY, 'web', { a: HOMELY_PODS });
}

/** What follows counts moves and room without it. */
async function endHomely(): Promise<void> {
  const { host } = lab;
  await host.kubectl(['delete', 'deployment', 'web', '-n', HOMELY, '--wait=false']);
  await until('no pod of it is left', async () => (await podsOf(host, HOMELY)).length === 0);
}

/** A pod that member a's owner runs there, and which takes its room. */
async function stranger(on: boolean): Promise<void> {
  const [a] = lab.members;
  if (a === undefined) throw new Error('there is no member a');
  if (!on) {
    const gone = ['--ignore-not-found', '--grace-period=0', '--force', '--wait=false'];
    await a.kubectl(['delete', 'pod', 'stranger', '-n', 'default', ...gone]);
    return;
  }
  const container = { name: 'main', image: 'registry.example/app:v1' };
  const resources = { requests: { memory: STRANGER_MEMORY } };
  await a.apply([pod('stranger', 'default', podSpec([{ ...container, resources }]))]);
}

const sumOf = (counts: Record<string, number>): number => Object.values(counts).reduce((sum, count) => sum + count, 0);

const inWords = (counts: Record<string, number>): string =>
  Object.entries(counts)
    .map(([strategy, count]) => `${strategy} ${count}`)
    .join(', ');

/** By how many the autoscaler ever wanted more than before. */
function grownBy(moments: readonly Moment[]): number {
  return moments.reduce((sum, { wanted }, i) => sum + Math.max(0, wanted - (moments[i - 1]?.wanted ?? 0)), 0);
}

/**
 * What docs/concepts/failover.md promises of a workload's moves, whatever comes and goes. `since`: as it was at each moment;
 * `tainted`: when the taint came, wall clock in ms; `givenBack`: pods that were let go for nothing, and may have been let go again.
 */
function expectNoPingPong(
  { told, returns, returnsWithoutRule }: Observed,
  since: readonly Moment[],
  tainted: readonly number[],
  givenBack: number,
): void {
  expect(told.turnedRound(AFTER_MS - HEARD_MS)).toEqual([]);
  // Rules move each pod once an hour at most, on the average, of those that there are when one more is to go.
  const beyond = (some: readonly { at: number }[], perPod: number): unknown[] =>
    some.filter(({ at }, before) => before >= perPod * mostOf(since, at - HEARD_MS, at, podsAt));
  expect(beyond(told.byRules, BY_RULES)).toEqual([]);
  // The fuse holds all of them, also where there are few pods by now.
  expect(beyond(told.all, FUSE)).toEqual([]);
  // A taint moves those that are there when it comes; none goes there while it stands.
  const perTaint = tainted.map((from, i) => ({
    moved: told.forTaints.filter(({ at }) => at >= from && at < (tainted[i + 1] ?? Infinity)).length,
    there: mostOf(since, from, from + HEARD_MS, ({ a }) => a),
  }));
  expect(perTaint.filter(({ moved, there }) => moved > there + givenBack)).toEqual([]);
  // Nothing but a rule brings a pod back to what one before it had left, however long ago.
  expect(returnsWithoutRule).toEqual([]);
  // So each that is back was brought there by one, or had to leave what one had brought it to: two for each move that rules may make.
  expect(returns.length).toBeLessThanOrEqual(2 * BY_RULES * mostPods(since));
}

interface Observed {
  told: ToldMoves;
  returns: readonly unknown[];
  returnsWithoutRule: readonly unknown[];
}

const mostPods = (moments: readonly Moment[]): number => mostOf(moments, 0, Infinity, podsAt);

test('F54: load, room, taints and labels come and go, and autoscaler and descheduler act on the same pods', async (context) => {
  const { host } = lab;
  await startHomely();
  const [web, homely] = [new WatchedWorkload(host, 'shop', 'web'), new WatchedWorkload(host, HOMELY, 'web')];
  const load = new BurstLoad(host, 'shop', 'web');
  load.millicores = CALM;
  const [stop, calmAgain] = [new AbortController(), new AbortController()];
  const watching = [...web.follow(stop.signal), ...homely.follow(stop.signal), load.run(stop.signal)];
  const atHome = (): boolean => {
    const { wanted, ready, local, a, b, waiting } = web.history.now;
    return wanted === 2 && ready === 2 && local === 2 && a + b + waiting === 0;
  };
  await until('two pods run at home', atHome, { timeoutMs: 120_000 });
  const began = Math.max(web.history.now.revision, homely.history.now.revision);
  /** Wall clock in ms. */
  const tainted: number[] = [];

  const oscillating = [
    inTurn(LOAD_MS, (on) => void (load.millicores = on ? BUSY : CALM), calmAgain.signal),
    inTurn(ROOM_MS, async (on) => await cordon(host, on), calmAgain.signal),
    inTurn(
      TAINT_MS,
      async (on) => {
        const clusterTaints = on ? [{ key: 'busy', effect: 'NoExecute' }] : [];
        if (on) tainted.push(Date.now());
        await host.api.call('PATCH', '/apis/spillway.dev/v1alpha1/memberclusters/a', { spec: { clusterTaints } });
      },
      calmAgain.signal,
    ),
    inTurn(LABELS_MS, labels, calmAgain.signal),
    inTurn(HOME_MS, stranger, calmAgain.signal),
  ];
  await wait(MINUTES * 60_000);
  calmAgain.abort();
  await Promise.all(oscillating);
  await until('two pods run at home', atHome, { timeoutMs: 240_000 });
  // They go home as far as they may.
  const mayGo = async (): Promise<boolean> => ((await homely.moves())['Repatriate'] ?? 0) < BY_RULES * HOMELY_PODS;
  const allWell = { wanted: HOMELY_PODS, ready: HOMELY_PODS };
  await until(
    'the others are at home, or rules may move none of them any more',
    async () => {
      const { wanted, ready, a } = homely.history.now;
      if (wanted !== allWell.wanted || ready !== allWell.ready) return false;
      return a === HOMELY_PODS || !(await mayGo());
    },
    { timeoutMs: 240_000 },
  );

  const moves = await movesByStrategy();
  await wait(REST_MS);
  expect(await movesByStrategy()).toEqual(moves);
  expect(atHome()).toBe(true);
  expect(homely.history.now).toMatchObject(allWell);
  const ended = await counted('spillway_descheduler_releases_ended_total', 'outcome');
  const [webMoves, homelyMoves] = [await web.moves(), await homely.moves()];
  stop.abort();
  await Promise.allSettled(watching);
  await endHomely();

  const given = ended['GivenBack'] ?? 0;
  for (const [workload, onRecord] of [
    [web, webMoves],
    [homely, homelyMoves],
  ] as const) {
    // Each was heard of: what is shown is about all of them.
    expect(workload.told.all).toHaveLength(sumOf(onRecord));
    const moments = workload.history.moments();
    // Every pod was made because one more was wanted, or in the place of one that was moved or was to be.
    expect(workload.history.podsMade).toBeLessThanOrEqual(grownBy(moments) + sumOf(onRecord) + given);
    const observed = {
      told: workload.told,
      returns: workload.returns(),
      returnsWithoutRule: workload.returnsWithoutRule(),
    };
    expectNoPingPong(observed, moments, tainted, given);
  }
  expect(sumOf(webMoves) + sumOf(homelyMoves)).toBe(sumOf(moves));
  const since = web.history.moments().filter(({ revision }) => revision >= began);
  const most = Math.max(...since.map(({ wanted }) => wanted));
  // The autoscaler had its twenty, something was moved, and some came home: else nothing was tried.
  expect(most).toBe(20);
  expect(sumOf(webMoves)).toBeGreaterThan(0);
  expect(homelyMoves['Repatriate'] ?? 0).toBeGreaterThan(0);
  expect(homelyMoves['TaintNoExecute'] ?? 0).toBeGreaterThanOrEqual(HOMELY_PODS);
  // By the pods that there were at most they come nowhere near the fuse.
  expect(sumOf(webMoves) / most).toBeLessThan(FUSE / 2);
  expect(since.filter(({ ready }) => ready < 2)).toEqual([]);
  // Another one has its node before each of these leaves.
  const homelySince = homely.history.moments().filter(({ revision }) => revision >= began);
  expect(homelySince.filter(({ a, b }) => a + b < HOMELY_PODS)).toEqual([]);
  const oneOf = (workload: WatchedWorkload, onRecord: Record<string, number>, pods: number): string =>
    `${sumOf(onRecord)} moved (${inWords(onRecord)}), ${(sumOf(onRecord) / pods).toFixed(1)} for each of ${pods} pods in what stands for an hour, of which rules moved ${workload.told.byRules.length} (they may ${BY_RULES * pods}), none back within ${AFTER_MS / 1_000} s, ${workload.returns().length} later (at most ${2 * BY_RULES * pods})`;
  const figures = `${MINUTES} minutes: ${grownBy(web.history.moments())} pods wanted, ${web.history.podsMade} made, ${oneOf(web, webMoves, most)}; beside it pods whose first tier had room by turns: ${oneOf(homely, homelyMoves, HOMELY_PODS)}, never fewer than ${HOMELY_PODS} there; the fuse lets ${FUSE} go for each, and none moved in the minute after`;
  report(context, ['F54'], 'no ping-pong', figures);
}, 1_080_000);

test('F54: the autoscaler wants no more for pods that move, each once another one is ready', async (context) => {
  const { host } = lab;
  const history = new BurstHistory();
  const load = new BurstLoad(host, 'shop', 'web');
  load.millicores = STEADY;
  const stop = new AbortController();
  const watching = [
    host.api.follow('/apis/apps/v1/namespaces/shop/deployments', stop.signal, (event) => history.deployment(event)),
    host.api.follow('/api/v1/namespaces/shop/pods', stop.signal, (event) => history.pod(event)),
    load.run(stop.signal),
  ];
  const allRun = (): boolean => history.now.wanted === 14 && history.now.ready === 14;
  await until('fourteen run, three of them in a', () => allRun() && history.now.a === 3, { timeoutMs: 180_000 });
  await wait(LOOKED_MS);
  expect(history.now).toMatchObject({ wanted: 14, ready: 14, a: 3 });
  const began = history.now.revision;
  const before = sumOf(await movesByStrategy());

  const taint = async (clusterTaints: unknown[]): Promise<unknown> =>
    await host.api.call('PATCH', '/apis/spillway.dev/v1alpha1/memberclusters/a', { spec: { clusterTaints } });
  await taint([{ key: 'busy', effect: 'NoExecute' }]);
  await until('they are in b', () => allRun() && history.now.a === 0, { timeoutMs: 120_000 });
  await wait(LOOKED_MS);
  stop.abort();
  await Promise.allSettled(watching);

  const since = history.moments().filter(({ revision }) => revision > began);
  expect(new Set(since.map(({ wanted }) => wanted))).toEqual(new Set([14]));
  expect(Math.min(...since.map(({ ready }) => ready))).toBe(14);
  expect(sumOf(await movesByStrategy()) - before).toBe(3);
  await taint([]);
  report(
    context,
    ['F54'],
    'no ping-pong',
    'the autoscaler wanted 14 pods before, while three of them moved, and after',
  );
}, 600_000);

test('F54: labels that turn round sooner than divisionDrift.after move nobody, and none of those that moved goes back sooner', async (context) => {
  const { host } = lab;
  const history = new BurstHistory();
  const told = new ToldMoves();
  const load = new BurstLoad(host, 'shop', 'web');
  load.millicores = LARGE;
  const stop = new AbortController();
  const watching = [
    host.api.follow('/apis/apps/v1/namespaces/shop/deployments', stop.signal, (event) => history.deployment(event)),
    host.api.follow('/api/v1/namespaces/shop/pods', stop.signal, (event) => history.pod(event)),
    load.run(stop.signal),
  ];
  const run = (a: number, b: number): boolean => {
    const { wanted, ready, ...now } = history.now;
    return wanted === 18 && ready === 18 && now.a === a && now.b === b;
  };
  await until('eighteen run, three of them in a', () => run(3, 5), { timeoutMs: 240_000 });
  await wait(LOOKED_MS);
  expect(run(3, 5)).toBe(true);
  const began = history.now.revision;
  const movedBefore = await movesByStrategy();
  watching.push(host.api.follow('/api/v1/namespaces/shop/events', stop.signal, (event) => told.event(event)));
  await wait(HEARD_MS);
  const toldBefore = told.all.length;

  for (const isTurned of [true, false, true, false]) {
    await labels(isTurned);
    await wait(SHORT_MS);
  }
  expect(told.all.slice(toldBefore)).toEqual([]);

  const turned = Date.now();
  await labels(true);
  // The second one is still to follow then.
  await until('one of the two that b has too many is in a', () => history.now.a === 4, { intervalMs: 50 });
  await labels(false);
  const back = Date.now();
  await until('a has three again', () => told.all.length > toldBefore + 1 && run(3, 5), { timeoutMs: 120_000 });
  await wait(LOOKED_MS);
  stop.abort();
  await Promise.allSettled(watching);

  const moves = told.all.slice(toldBefore);
  expect(moves.map(({ from, to }) => `${from} ${to}`)).toEqual(['b a', 'a b']);
  const [first = 0, second = 0] = moves.map(({ at }) => at);
  expect(first - turned).toBeGreaterThanOrEqual(AFTER_MS - HEARD_MS);
  expect(second - back).toBeGreaterThanOrEqual(AFTER_MS - HEARD_MS);
  const now = await movesByStrategy();
  expect((now['DivisionDrift'] ?? 0) - (movedBefore['DivisionDrift'] ?? 0)).toBe(2);
  expect(sumOf(now) - sumOf(movedBefore)).toBe(2);
  const since = history.moments().filter(({ revision }) => revision > began);
  expect(Math.min(...since.map(({ ready }) => ready))).toBe(18);
  const [after, again] = [first - turned, second - back].map(seconds);
  report(
    context,
    ['F54'],
    'no ping-pong',
    `labels that turned round 4 times, each for ${SHORT_MS / 1_000} s, moved 0 pods; the first one went ${after} after they had for longer, one went back ${again} after they had turned again`,
  );
}, 600_000);
