import { afterAll, beforeAll, expect, test } from 'vitest';
import { BurstHistory, type Moment } from '../../hack/burst-history.ts';
import { type BurstLab, startBurstLab } from '../../hack/burst-lab.ts';
import { BurstLoad } from '../../hack/burst-load.ts';
import { manifest } from '../../hack/manifest.ts';
import { until } from '../../hack/until.ts';
import { Workspace } from '../../hack/workspace.ts';
import { errorsOf } from '../fixtures/topology.ts';
import { report, wait } from './lab.ts';

/** So many minutes stand for an hour: what waits for ten minutes in production waits for one here. */
const MINUTES = 6;
/** What comes and goes, and how long each lasts, in ms: no two in step. */
const [LOAD_MS, ROOM_MS, TAINT_MS] = [40_000, 55_000, 70_000];
/** Thousandths of a core: enough for twenty pods, for fourteen, and for two. */
const [BUSY, STEADY, CALM] = [18_000, 7_000, 900];
const REST_MS = 60_000;
/** The autoscaler has looked again by then, at figures that were measured meanwhile. */
const LOOKED_MS = 30_000;

let workspace: Workspace;
let lab: BurstLab;

beforeAll(async () => {
  workspace = Workspace.create();
  lab = await startBurstLab(workspace);
  await lab.host.apply(manifest('scheduler/descheduler.yaml'));
  await lab.host.api.call('PATCH', '/apis/spillway.dev/v1alpha1/namespaces/shop/placementpolicies/web', {
    spec: { failover: { repatriate: { after: '15s' } } },
  });
});
afterAll(async () => {
  const errors = lab === undefined ? [] : errorsOf(lab.spillway);
  await workspace?.close();
  expect(errors).toEqual([]);
});

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

const sumOf = (counts: Record<string, number>): number => Object.values(counts).reduce((sum, count) => sum + count, 0);

/** By how many the autoscaler ever wanted more than before. */
function grownBy(moments: readonly Moment[]): number {
  return moments.reduce((sum, { wanted }, i) => sum + Math.max(0, wanted - (moments[i - 1]?.wanted ?? 0)), 0);
}

test('F54: load, room and taints come and go, and autoscaler and descheduler act on the same pods', async (context) => {
  const { host } = lab;
  const history = new BurstHistory();
  const load = new BurstLoad(host, 'shop', 'web');
  load.millicores = CALM;
  const [stop, calmAgain] = [new AbortController(), new AbortController()];
  const watching = [
    host.api.follow('/apis/apps/v1/namespaces/shop/deployments', stop.signal, (event) => history.deployment(event)),
    host.api.follow('/api/v1/namespaces/shop/pods', stop.signal, (event) => history.pod(event)),
    load.run(stop.signal),
  ];
  const atHome = (): boolean => {
    const { wanted, ready, local, a, b, waiting } = history.now;
    return wanted === 2 && ready === 2 && local === 2 && a + b + waiting === 0;
  };
  await until('two pods run at home', atHome, { timeoutMs: 120_000 });
  const began = history.now.revision;

  const oscillating = [
    inTurn(LOAD_MS, (on) => void (load.millicores = on ? BUSY : CALM), calmAgain.signal),
    inTurn(
      ROOM_MS,
      async (on) => {
        const nodes = (await host.api.call('GET', '/api/v1/nodes')) as { items: { metadata: { name: string } }[] };
        const name = nodes.items.map(({ metadata }) => metadata.name).find((one) => one.startsWith('local')) ?? '';
        await host.api.call('PATCH', `/api/v1/nodes/${name}`, { spec: { unschedulable: on } });
      },
      calmAgain.signal,
    ),
    inTurn(
      TAINT_MS,
      async (on) => {
        const clusterTaints = on ? [{ key: 'busy', effect: 'NoExecute' }] : [];
        await host.api.call('PATCH', '/apis/spillway.dev/v1alpha1/memberclusters/a', { spec: { clusterTaints } });
      },
      calmAgain.signal,
    ),
  ];
  await wait(MINUTES * 60_000);
  calmAgain.abort();
  await Promise.all(oscillating);
  await until('two pods run at home', atHome, { timeoutMs: 240_000 });

  const moves = await movesByStrategy();
  await wait(REST_MS);
  expect(await movesByStrategy()).toEqual(moves);
  expect(atHome()).toBe(true);
  const ended = await counted('spillway_descheduler_releases_ended_total', 'outcome');
  stop.abort();
  await Promise.allSettled(watching);

  const moments = history.moments();
  const since = moments.filter(({ revision }) => revision >= began);
  const most = Math.max(...since.map(({ wanted }) => wanted));
  // The autoscaler had its twenty, and something was moved: else nothing was tried.
  expect(most).toBe(20);
  expect(sumOf(moves)).toBeGreaterThan(0);
  // Every pod was made because one more was wanted, or in the place of one that was moved or was to be.
  expect(history.podsMade).toBeLessThanOrEqual(grownBy(moments) + sumOf(moves) + (ended['GivenBack'] ?? 0));
  // The fuse of the configuration, for as much of an hour.
  expect(sumOf(moves)).toBeLessThanOrEqual((5 * most * MINUTES) / 60);
  expect(since.filter(({ ready }) => ready < 2)).toEqual([]);
  const figures = `${MINUTES} minutes: ${grownBy(moments)} pods wanted, ${history.podsMade} made, ${sumOf(moves)} moved, none in the minute after`;
  report(context, ['F54'], 'no ping-pong', figures);
}, 900_000);

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
