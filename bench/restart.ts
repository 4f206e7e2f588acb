import { startCluster, type Cluster } from '../hack/cluster.ts';
import { startKwok } from '../hack/kwok.ts';
import type { Say } from '../hack/progress.ts';
import { until } from '../hack/until.ts';
import { Workspace } from '../hack/workspace.ts';
import { AuditTally, type RequestCounts } from './audit-tally.ts';
import { makeNamespace } from './bench-namespace.ts';
import { SpillwayProgram } from './driven-program.ts';
import { LoadProcess } from './load-process.ts';
import { measured, median, type SuiteReport, withSpread } from './measurement.ts';
import { whenIdle } from './when-idle.ts';

export interface RestartOptions {
  /** Pods that run in the member while the manager is killed. */
  pods: number;
  /** How often it is killed. */
  rounds: number;
  say: Say;
}

/** One kill and start. */
interface Round {
  /** Seconds from the start to /readyz and a virtual node that this very process keeps alive. */
  ready: number;
  /** Seconds from the start until a pod that was made while it was down runs. */
  newPod: number;
  /** From the start until it had nothing more to do. */
  cpuSeconds: number;
  restBytes: number;
  peakBytes: number;
  host: RequestCounts;
  member: RequestCounts;
}

const NAMESPACE = 'steady';
/** Of the pods that come while the manager is down: what they cost is not counted. */
const ARRIVALS = 'arrivals';
const PODS_PER_NODE = 250;
const WRITES = /^(?:create|update|patch|delete|deletecollection) /;
const ABOUT_PODS = / pods(?:\/|$)/;
/** Heartbeats go on by themselves; reviews change nothing. */
const NO_CHANGE = / (?:leases|nodes\/status|tokenreviews|subjectaccessreviews)$/;

/** Kills the manager while thousands of pods run, and starts it again: how soon it is back, and what it writes. */
export async function restart(options: RestartOptions): Promise<SuiteReport> {
  const { pods, say } = options;
  const workspace = Workspace.create({ say });
  try {
    const users = ['bench-spillway', 'system:node:member'];
    const audits = {
      host: new AuditTally(workspace.dir, 'host', users, [ARRIVALS]),
      member: new AuditTally(workspace.dir, 'member', users, [ARRIVALS]),
    };
    const host = await startCluster(workspace, { name: 'host', apiServerFlags: audits.host.flags });
    const member = await startCluster(workspace, {
      name: 'member',
      serviceCidr: '10.97.0.0/16',
      apiServerFlags: audits.member.flags,
    });
    await startKwok(member, { nodes: Math.ceil(pods / PODS_PER_NODE) + 2, pods: String(PODS_PER_NODE) });
    for (const name of [NAMESPACE, ARRIVALS]) {
      await Promise.all([host, member].map((cluster) => makeNamespace(cluster, name)));
    }
    const program = new SpillwayProgram(host, member);
    await program.install();
    await fill(host, member, program, options);
    const rounds: Round[] = [];
    for (let round = 0; round < options.rounds; round++) {
      const done = await killAndStart(host, program, audits, round);
      rounds.push(done);
      say(describe(done));
    }
    return report(rounds, options);
  } finally {
    await workspace.close();
  }
}

async function fill(host: Cluster, member: Cluster, program: SpillwayProgram, { pods, say }: RestartOptions) {
  await program.start();
  const load = await LoadProcess.start({
    host: host.adminAccess,
    member: member.adminAccess,
    namespace: NAMESPACE,
    node: program.node,
    pods,
    inFlight: 16,
    outageTolerations: true,
    restartPolicy: 'Always',
  });
  try {
    const { report } = await load.order({ do: 'create' }, 120_000 + pods * 100);
    say(`${pods} pods run after ${report.running.toFixed(0)} s`);
  } finally {
    await load.close();
  }
}

async function killAndStart(
  host: Cluster,
  program: SpillwayProgram,
  audits: { host: AuditTally; member: AuditTally },
  round: number,
): Promise<Round> {
  await whenIdle(program.process, 60_000);
  await program.process.stop('SIGKILL');
  const pods = `/api/v1/namespaces/${ARRIVALS}/pods`;
  const name = `arrival-${round}`;
  await host.api.call('POST', pods, arrival(name, program.node));
  audits.host.take(program.users);
  audits.member.take(program.users);
  const began = performance.now();
  const since = (): number => (performance.now() - began) / 1000;
  const runs = until(
    'a pod that was made meanwhile runs',
    async () => {
      const { status } = (await host.api.call('GET', `${pods}/${name}`)) as { status?: { phase?: string } };
      return status?.phase === 'Running';
    },
    { timeoutMs: 120_000, intervalMs: 100 },
  ).then(since);
  const [ready, newPod] = await Promise.all([program.restart().then(since), runs]);
  await whenIdle(program.process, 60_000);
  const usage = program.process.usage();
  return {
    ready,
    newPod,
    cpuSeconds: usage?.cpuSeconds ?? Number.NaN,
    restBytes: usage?.rssBytes ?? Number.NaN,
    peakBytes: usage?.peakRssBytes ?? Number.NaN,
    host: audits.host.take(program.users),
    member: audits.member.take(program.users),
  };
}

function arrival(name: string, node: string): object {
  return {
    metadata: { name },
    spec: {
      nodeName: node,
      tolerations: [{ operator: 'Exists' }],
      terminationGracePeriodSeconds: 0,
      containers: [{ name: 'main', image: 'registry.example/app:v1' }],
    },
  };
}

function writesIn(counts: RequestCounts, wanted: (key: string) => boolean): number {
  let sum = 0;
  for (const [key, count] of counts) if (WRITES.test(key) && wanted(key)) sum += count;
  return sum;
}

function report(rounds: readonly Round[], { pods }: RestartOptions): SuiteReport {
  const typical = (what: string, read: (round: Round) => number, unit: string, goal: number | null = null) => {
    const all = rounds.map(read);
    return withSpread(measured(name(what), median(all), unit, 'lower', goal), all);
  };
  const worst = (read: (round: Round) => number): number => Math.max(...rounds.map(read));
  const both = (wanted: (key: string) => boolean) => (round: Round) =>
    writesIn(round.host, wanted) + writesIn(round.member, wanted);
  const aboutPods = (key: string): boolean => ABOUT_PODS.test(key);
  const name = (text: string): string => `restart with ${pods} pods: ${text}`;
  const MB = 2 ** 20;
  const list = (counts: RequestCounts): string =>
    [...counts]
      .filter(([key]) => WRITES.test(key))
      .map(([key, count]) => `${key} ${count}`)
      .join(', ') || 'none';
  const last = rounds.at(-1);
  return {
    suite: 'restart',
    measurements: [
      measured(name('writes to pods in both clusters, worst'), worst(both(aboutPods)), 'calls', 'lower', 0),
      measured(
        name('other writes but heartbeats, worst'),
        worst(both((key) => !aboutPods(key) && !NO_CHANGE.test(key))),
        'calls',
        'lower',
      ),
      typical('start to ready', (round) => round.ready, 's', 10),
      typical('start to a new pod Running', (round) => round.newPod, 's'),
      typical('CPU until it has nothing more to do', (round) => round.cpuSeconds, 'CPU-s'),
      typical('memory once at rest', (round) => round.restBytes / MB, 'MB'),
      typical('peak memory', (round) => round.peakBytes / MB, 'MB'),
    ],
    notes: [
      `${rounds.length} times kill -9 and start, medians unless it says worst. Ready is /readyz and a virtual node whose ` +
        'Lease this process renewed. One pod was made while the manager was down; what it cost is not counted.',
      `All writes of the last round. Host: ${list(last?.host ?? new Map())}. Member: ${list(last?.member ?? new Map())}.`,
    ],
    failures: [],
  };
}

function describe(round: Round): string {
  const { ready, newPod, cpuSeconds, peakBytes } = round;
  return (
    `back after ${ready.toFixed(1)} s, a new pod runs after ${newPod.toFixed(1)} s, ` +
    `${cpuSeconds.toFixed(1)} CPU-s, peak ${(peakBytes / 2 ** 20).toFixed(0)} MB`
  );
}
