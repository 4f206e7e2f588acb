import { setTimeout as sleep } from 'node:timers/promises';
import type { Say } from '../hack/progress.ts';
import { until } from '../hack/until.ts';
import { Workspace } from '../hack/workspace.ts';
import type { RequestCounts } from './audit-tally.ts';
import { makeNamespace } from './bench-namespace.ts';
import { DivisionFleet } from './division-fleet.ts';
import { measured, type Measurement, quantile, type SuiteReport, thirds, withSpread } from './measurement.ts';
import { OfferedServices } from './offered-services.ts';
import { SliceWatch } from './slice-watch.ts';
import { whenIdle } from './when-idle.ts';

export interface ServicesOptions {
  services: number;
  members: number;
  say: Say;
}

/** Of each Service. */
const ENDPOINTS = 10;
/** Changes of one endpoint each, one after the other. */
const CHANGES = 100;
/** Pods behind one Service that are all replaced, and how many in a second. */
const PODS = 1_000;
const PER_SECOND = 50;
/** What the page on Services promises, in seconds, of the 99th of a hundred. */
const LAG = 5;
/** Of these pods, in one member: a quarter of what it would take to write each change by itself. */
const SLICE_WRITES = 250;
const NAMESPACE = 'services';
const ROLLED = 'rolled';
const PATIENCE_MS = 600_000;

/** What was written in all members, and what it took. Times in seconds. */
interface Round {
  requests: RequestCounts;
  cpuSeconds: number;
  seconds: number;
}

/** What it costs that Services of the host stand in many members, and how late these are told of endpoints. */
export async function services(options: ServicesOptions): Promise<SuiteReport> {
  const { say } = options;
  const workspace = Workspace.create({ say });
  try {
    const names = Array.from({ length: options.members }, (_, index) => `m${String(index + 1).padStart(2, '0')}`);
    const fleet = await DivisionFleet.start(workspace, new Map(names.map((name) => [name, 1])));
    for (const cluster of fleet.clusters) await makeNamespace(cluster, NAMESPACE);
    const members = fleet.clusters.filter((cluster) => cluster !== fleet.host);
    const offered = new OfferedServices(fleet.host.adminAccess, NAMESPACE);
    const watches = await Promise.all(
      members.map(async ({ adminAccess }) => await SliceWatch.start(adminAccess, NAMESPACE)),
    );
    try {
      for (let i = 0; i < options.services; i++) await offered.offer(`s${String(i)}`, ENDPOINTS);
      say(`${options.services} Services are there`);
      const filled = await observe(fleet, async () => {
        for (const name of names) await mirror(fleet, name);
        await allLead(watches, options.services);
      });
      say(`they stand in ${options.members} members after ${filled.seconds.toFixed(1)} s`);
      const changes = await change(offered, watches, options.services);
      await offered.offer(ROLLED, PODS);
      await allLead(watches, options.services + offered.slicesOf(ROLLED));
      await whenIdle(fleet.manager);
      let lags: number[] = [];
      const rolled = await observe(fleet, async () => {
        lags = await rollOut(offered, watches);
      });
      const peak = fleet.manager.usage()?.peakRssBytes ?? Number.NaN;
      return report(options, { filled, changes, rolled, lags, peak });
    } finally {
      await Promise.all([offered.close(), ...watches.map(async (watch) => await watch.close())]);
    }
  } finally {
    await workspace.close();
  }
}

/** Until the manager has nothing more to do. */
async function observe(fleet: DivisionFleet, work: () => Promise<void>): Promise<Round> {
  const { manager } = fleet;
  fleet.takeRequests();
  const cpu = (): number => manager.usage()?.cpuSeconds ?? Number.NaN;
  const [began, before] = [performance.now(), cpu()];
  await work();
  const seconds = (performance.now() - began) / 1000;
  await whenIdle(manager, PATIENCE_MS);
  return { seconds, cpuSeconds: cpu() - before, requests: fleet.takeRequests().members };
}

async function mirror({ host }: DivisionFleet, member: string): Promise<void> {
  const spec = { services: { mode: 'Mirror', namespaces: [NAMESPACE] } };
  await host.api.call('PATCH', `/apis/spillway.dev/v1alpha1/memberclusters/${member}`, { spec });
}

async function allLead(watches: readonly SliceWatch[], slices: number): Promise<void> {
  const lead = (): boolean => {
    const fewest = Math.min(...watches.map(({ size }) => size));
    if (fewest === slices) return true;
    throw new Error(`one member has ${fewest} slices`);
  };
  await until(`${slices} slices stand in all members`, lead, { timeoutMs: PATIENCE_MS, intervalMs: 50 });
}

/** Changes one endpoint after the other; returns how long each took until every member was told (s). */
async function change(offered: OfferedServices, watches: readonly SliceWatch[], services: number): Promise<number[]> {
  const lags: number[] = [];
  for (let i = 0; i < CHANGES; i++) {
    const { came, since } = await offered.replace(`s${String(i % services)}`);
    const moments = await Promise.all(watches.map(async (watch) => await watch.came(came, PATIENCE_MS)));
    lags.push((Math.max(...moments) - since) / 1000);
  }
  return lags;
}

/** Replaces all pods of a Service; returns how long each was still told of by some member (s). */
async function rollOut(offered: OfferedServices, watches: readonly SliceWatch[]): Promise<number[]> {
  const began = performance.now();
  const replaced: { gone: string; since: number }[] = [];
  for (let i = 0; i < PODS; i++) {
    await sleep(Math.max(0, began + (i * 1000) / PER_SECOND - performance.now()));
    replaced.push(await offered.replace(ROLLED));
  }
  const lags: number[] = [];
  for (const { gone, since } of replaced) {
    const moments = await Promise.all(watches.map(async (watch) => await watch.gone(gone, PATIENCE_MS)));
    lags.push((Math.max(...moments) - since) / 1000);
  }
  return lags;
}

interface Findings {
  filled: Round;
  changes: readonly number[];
  rolled: Round;
  lags: readonly number[];
  peak: number;
}

function report({ services, members }: ServicesOptions, found: Findings): SuiteReport {
  const { filled, changes, rolled, lags, peak } = found;
  const all = `${services} Services of ${ENDPOINTS} endpoints in ${members} members`;
  const rolling = `roll-out of ${PODS} pods behind one Service in ${members} members`;
  const late = (what: string, samples: readonly number[], q: number, goal: number | null): Measurement => {
    const figure = (some: readonly number[]): number => quantile(some, q);
    return withSpread(measured(what, figure(samples), 's', 'lower', goal), thirds(samples, figure));
  };
  const perMember = (round: Round, verbs: readonly string[], plural: string): number =>
    verbs.reduce((sum, verb) => sum + (round.requests.get(`${verb} ${plural}`) ?? 0), 0) / members;
  const slices = (round: Round): number => perMember(round, ['create', 'update', 'delete'], 'endpointslices');
  const list = (counts: RequestCounts): string => [...counts].map(([key, count]) => `${key} ${count}`).join(', ');
  return {
    suite: 'services',
    measurements: [
      measured(`${all}: until all lead somewhere`, filled.seconds, 's', 'lower'),
      measured(`${all}: CPU for that`, filled.cpuSeconds, 'CPU-s', 'lower'),
      measured(
        `${all}: Service writes per Service and member`,
        perMember(filled, ['create', 'update', 'delete'], 'services') / services,
        'calls',
        'lower',
        1,
      ),
      measured(`${all}: slice writes per Service and member`, slices(filled) / services, 'calls', 'lower', 1),
      late(`${all}: one endpoint changed until every member is told, p50`, changes, 0.5, null),
      late(`${all}: one endpoint changed until every member is told, p99`, changes, 0.99, LAG),
      measured(`${rolling}: slice writes per member`, slices(rolled), 'calls', 'lower', SLICE_WRITES),
      late(`${rolling}: an endpoint that went until it is told in no member, p50`, lags, 0.5, null),
      late(`${rolling}: an endpoint that went until it is told in no member, p99`, lags, 0.99, LAG),
      measured(`${rolling}: CPU`, rolled.cpuSeconds, 'CPU-s', 'lower'),
      measured(`${all}: peak memory`, peak / 2 ** 20, 'MB', 'lower'),
    ],
    notes: [
      'The bench writes the EndpointSlices of the host, as its controller would; times are from the answer to that until a watch of each member showed it. ' +
        `The pods of the roll-out are replaced one by one, ${PER_SECOND} a second, in slices of 100. All members, each with its own etcd and API server, share this machine.`,
      `All requests at the members while they were filled: ${list(filled.requests)}. During the roll-out: ${list(rolled.requests)}.`,
    ],
    failures: [],
  };
}
