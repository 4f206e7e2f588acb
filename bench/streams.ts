import { ensureBinaries } from '../hack/binaries.ts';
import { startCluster, type Cluster } from '../hack/cluster.ts';
import { IMAGES } from '../hack/images.ts';
import { startKubelet } from '../hack/kubelet.ts';
import { machineNetwork } from '../hack/machine-network.ts';
import type { ManagedProcess } from '../hack/managed-process.ts';
import type { Say } from '../hack/progress.ts';
import { canRunKubelets } from '../hack/system-packages.ts';
import { until } from '../hack/until.ts';
import { Workspace } from '../hack/workspace.ts';
import { ALLOW_HOST_LABEL } from '../src/api/marks.ts';
import { SpillwayProgram } from './driven-program.ts';
import { ExecCaller } from './exec-caller.ts';
import {
  asReference,
  measured,
  median,
  type Measurement,
  type SuiteReport,
  thirds,
  withSpread,
} from './measurement.ts';
import { timeTransfer, type Transfer } from './transfer.ts';

export interface StreamOptions {
  /** Round trips on each path; transfers are done a tenth as often. */
  trips: number;
  say: Say;
}

/** The same pod, reached through the virtual node of the host, or directly at the member. */
type Path = 'virtual' | 'direct';

const NAMESPACE = 'streams';
const POD = 'probe';
const BYTES = 100 * 2 ** 20;
/** What the log says, again and again: lines so long that the kubelet's work on each is not what limits the path. */
const LINE = 'x'.repeat(1023);

/** Streams to a pod on a real kubelet: through the virtual node against directly, in turns. */
export async function streams(options: StreamOptions): Promise<SuiteReport> {
  const { say } = options;
  const can = await canRunKubelets();
  if (!can.ok) return { suite: 'streams', measurements: [], notes: [`Not measured: ${can.reason}`], failures: [] };
  const workspace = Workspace.create({ say });
  try {
    const bindAddress = (await machineNetwork(workspace)).gateway;
    const member = await startCluster(workspace, { name: 'member', bindAddress, serviceCidr: '10.97.0.0/16' });
    // The whole log in one file: the kubelet answers from the newest one only.
    await startKubelet(member, { node: 'worker', configuration: { containerLogMaxSize: '1Gi' } });
    const host = await startCluster(workspace, { name: 'host' });
    const spillway = new SpillwayProgram(host, member);
    await spillway.install();
    const manager = await spillway.start();
    try {
      await startPod(host, member, spillway.node);
      return await measure({ virtual: host, direct: member }, manager, options);
    } catch (error) {
      say(`spillway: the end of its log\n${manager.logTail(30)}`);
      throw error;
    }
  } finally {
    await workspace.close();
  }
}

/** Creates the pod in the host, and waits until its log is written. */
async function startPod(host: Cluster, member: Cluster, node: string): Promise<void> {
  for (const cluster of [host, member]) {
    const labels = { [ALLOW_HOST_LABEL]: 'any' };
    await cluster.api.ensure('/api/v1/namespaces', { metadata: { name: NAMESPACE, labels } });
    await until(`the default ServiceAccount of ${cluster.name}`, async () => {
      await cluster.api.call('GET', `/api/v1/namespaces/${NAMESPACE}/serviceaccounts/default`);
      return true;
    });
  }
  const script = `yes ${LINE} | head -c ${BYTES}; touch /tmp/written; sleep infinity`;
  await host.api.call('POST', `/api/v1/namespaces/${NAMESPACE}/pods`, {
    metadata: { name: POD },
    spec: {
      nodeName: node,
      tolerations: [{ operator: 'Exists' }],
      terminationGracePeriodSeconds: 0,
      containers: [
        {
          name: 'main',
          image: IMAGES.busybox,
          command: ['sh', '-c', script],
          readinessProbe: { exec: { command: ['test', '-e', '/tmp/written'] }, periodSeconds: 1 },
        },
      ],
    },
  });
  const wait = ['wait', '-n', NAMESPACE, '--for=condition=Ready', `pod/${POD}`, '--timeout=90s'];
  const ready = await host.kubectl(wait, { timeoutMs: 100_000 });
  if (ready.code !== 0) {
    const { stdout } = await host.kubectl(['describe', 'pod', '-n', NAMESPACE, POD]);
    throw new Error(`the pod does not get ready: ${ready.stderr}\n${stdout}`);
  }
}

async function measure(
  clusters: Record<Path, Cluster>,
  manager: ManagedProcess,
  options: StreamOptions,
): Promise<SuiteReport> {
  const { trips, say } = options;
  const transfers = Math.max(3, Math.round(trips / 10));
  const { kubectl } = await ensureBinaries(['kubectl']);
  const measurements: Measurement[] = [];
  const failures: string[] = [];

  const callers = {
    virtual: new ExecCaller(clusters.virtual.adminAccess, NAMESPACE, POD),
    direct: new ExecCaller(clusters.direct.adminAccess, NAMESPACE, POD),
  };
  try {
    const raw = await inTurns(trips, (path) => callers[path].roundTrip(['true']));
    measurements.push(...latency('exec round trip at the API server', raw));
  } finally {
    await Promise.all([callers.virtual.close(), callers.direct.close()]);
  }
  say(describe(measurements));

  const exec = ['exec', '-n', NAMESPACE, POD];
  const cli = await inTurns(Math.ceil(trips / 3), async (path) => {
    const began = performance.now();
    const { code, stderr } = await clusters[path].kubectl([...exec, '--', 'true']);
    if (code !== 0) throw new Error(`kubectl exec: ${stderr}`);
    return (performance.now() - began) / 1000;
  });
  measurements.push(...latency('kubectl exec -- true', cli));
  say(describe(measurements));

  const kinds: [name: string, transfer: Transfer][] = [
    ['exec output', { args: [...exec, '--', 'head', '-c', String(BYTES), '/dev/zero'], output: BYTES }],
    ['exec input', { args: [...exec, '-i', '--', 'wc', '-c'], input: BYTES, output: `${BYTES}\n` }],
    ['logs', { args: ['logs', '-n', NAMESPACE, POD], output: BYTES }],
  ];
  const breaks: string[] = [];
  for (const [name, transfer] of kinds) {
    const cpu: number[] = [];
    const broke = (path: Path): void => {
      breaks.push(`${name} ${path === 'virtual' ? 'through the virtual node' : 'directly'}`);
    };
    try {
      const seconds = await inTurns(
        transfers,
        async (path) => {
          const before = manager.usage()?.cpuSeconds ?? Number.NaN;
          const taken = await timeTransfer(kubectl, clusters[path].kubeconfig, clusters[path].dir, transfer);
          if (path === 'virtual') cpu.push((manager.usage()?.cpuSeconds ?? Number.NaN) - before);
          return taken;
        },
        broke,
      );
      measurements.push(
        ...throughput(name, seconds),
        measured(`${name} of 100 MB: CPU of the manager`, median(cpu), 'CPU-s', 'lower'),
      );
      say(describe(measurements));
    } catch (error) {
      failures.push(`${name}: ${error instanceof Error ? error.message : String(error)}`);
      say(failures.at(-1) ?? '');
    }
  }
  measurements.push(
    measured(
      'streams: peak memory of the manager',
      (manager.usage()?.peakRssBytes ?? Number.NaN) / 2 ** 20,
      'MB',
      'lower',
      220,
    ),
  );
  const notes = [
    `Medians, both paths in turns: ${trips} round trips at the API server (a WebSocket client in this program, one connection each), ` +
      `${Math.ceil(trips / 3)} runs of kubectl exec, ${transfers} transfers of 100 MB each by kubectl. ` +
      'Direct is the same command at the API server of the member; the pod runs on a real kubelet with containerd.',
    ...(breaks.length === 0 ? [] : [`Transfers that broke and were left out: ${breaks.join(', ')}.`]),
  ];
  return { suite: 'streams', measurements, notes, failures };
}

/** Transfers that may break on one path and be done again: kube-apiserver itself now and then resets one at its end. */
const BREAKS = 2;

/**
 * Does it over both paths alternately, once each beforehand for warmth. `broke` is told of every failure that is passed
 * over. @returns the seconds of every turn.
 */
async function inTurns(
  times: number,
  once: (path: Path) => Promise<number>,
  broke?: (path: Path) => void,
): Promise<Record<Path, number[]>> {
  const breaks: Record<Path, number> = { virtual: 0, direct: 0 };
  const seconds: Record<Path, number[]> = { virtual: [], direct: [] };
  const order: Path[] = ['direct', 'virtual'];
  for (let turn = 0; turn <= times; turn++) {
    for (const path of order) {
      try {
        const taken = await once(path);
        if (turn > 0) seconds[path].push(taken);
      } catch (error) {
        breaks[path] += 1;
        if (broke !== undefined && breaks[path] <= BREAKS) {
          broke(path);
          continue;
        }
        throw new Error(`${path === 'virtual' ? 'through the virtual node' : 'directly'}: ${String(error)}`, {
          cause: error,
        });
      }
    }
    order.reverse();
  }
  return seconds;
}

function latency(name: string, seconds: Record<Path, number[]>): Measurement[] {
  const { virtual, direct } = { virtual: median(seconds.virtual), direct: median(seconds.direct) };
  return [
    withSpread(
      measured(`${name}: virtual node against direct`, virtual / direct, 'ratio', 'lower', 1.1),
      ratios(seconds, (one, other) => one / other),
    ),
    measured(`${name}: virtual node`, virtual * 1000, 'ms', 'lower'),
    asReference(measured(`${name}: direct`, direct * 1000, 'ms', 'lower')),
  ];
}

function throughput(name: string, seconds: Record<Path, number[]>): Measurement[] {
  const rate = (all: number[]): number => BYTES / 2 ** 20 / median(all);
  const { virtual, direct } = { virtual: rate(seconds.virtual), direct: rate(seconds.direct) };
  return [
    withSpread(
      measured(`${name} of 100 MB: virtual node against direct`, virtual / direct, 'ratio', 'higher', 0.9),
      ratios(seconds, (one, other) => other / one),
    ),
    measured(`${name} of 100 MB: virtual node`, virtual, 'MB/s', 'higher'),
    asReference(measured(`${name} of 100 MB: direct`, direct, 'MB/s', 'higher')),
  ];
}

/** Of each third of the run, in which both paths found the machine in about the same state. */
function ratios(seconds: Record<Path, number[]>, ratio: (virtual: number, direct: number) => number): number[] {
  const direct = thirds(seconds.direct, median);
  return thirds(seconds.virtual, median).flatMap((one, part) => {
    const other = direct[part];
    return other === undefined ? [] : [ratio(one, other)];
  });
}

/** The newest ratio, for progress. */
function describe(measurements: readonly Measurement[]): string {
  const last = measurements.findLast(({ unit }) => unit === 'ratio');
  return last === undefined ? '' : `${last.name}: ${last.value}`;
}
