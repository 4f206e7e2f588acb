import type { RequestCounts } from './audit-tally.ts';
import type { CreateReport, DeleteReport, Spread } from './load-driver.ts';
import { asReference, measured, median, type Measurement, type SuiteReport, withSpread } from './measurement.ts';
import { percent } from './percent.ts';

/** One program's turn at one size. */
export interface Turn {
  program: string;
  pods: number;
  create: CreateReport;
  /** Of a status from the member to the host while nothing else goes on; only of a program that follows every change. */
  restLag: Spread | undefined;
  delete: DeleteReport;
  /** From the first create to all pods Running. */
  cpuSeconds: number;
  peakRssBytes: number;
  /** Of the machine, by programs that have nothing to do with the bench, from the first create to all Running. */
  othersShare: number;
  hostRequests: RequestCounts;
  memberRequests: RequestCounts;
}

/** Spillway where pods come without tolerations for outages, and it gives them some. */
export const GIVES_TOLERATIONS = 'spillway that gives tolerations';
/** Spillway where pods must not run twice, so that it writes down that it makes them before it does. */
export const WRITES_AHEAD = 'spillway that writes ahead';

/** From a pod's create to its copy in the member while nothing else goes on, in seconds. */
export interface SingleStarts {
  readonly pods: number;
  readonly plain: Spread;
  readonly ahead: Spread;
}

const MB = 2 ** 20;
/** The size that the goals for CPU and memory speak of. */
const GOAL_PODS = 3000;
/** The goal for CPU, 12 CPU-s, was set on a machine where a bare floor took 3: what holds on any machine is their ratio. */
const GOAL_CPU_RATIO = 4;
/** The size that the goal for deletion speaks of. */
const GOAL_DELETED = 1000;

/** What it may take to write ahead: of the CPU of the same burst, and at the start of a pod while nothing else goes on. */
const GOAL_AHEAD_CPU_RATIO = 1.5;
const GOAL_AHEAD_SECONDS = 0.02;

/** What all turns of a run come to: medians of each program at each size, and the two programs against each other. */
export function compareBursts(
  turns: readonly Turn[],
  setting: { nodes: number; inFlight: number; rounds: number },
  starts?: SingleStarts,
): SuiteReport {
  const measurements: Measurement[] = [];
  for (const pods of new Set(turns.map((turn) => turn.pods))) {
    const of = (program: string): Turn[] => turns.filter((turn) => turn.program === program && turn.pods === pods);
    measurements.push(
      ...compareAt(pods, of('floor'), of('spillway')),
      ...tolerationCost(pods, of('spillway'), of(GIVES_TOLERATIONS)),
      ...writeAheadCost(pods, of('spillway'), of(WRITES_AHEAD)),
    );
  }
  if (starts !== undefined) measurements.push(...startsOf(starts));
  const notes = [
    `Medians of ${setting.rounds} turns of each program at the first size, one less at each further one, taken in alternation ` +
      `on the same host and member; every turn ` +
      `is a fresh process and a fresh namespace. The member has ${setting.nodes} kwok nodes behind a real kube-scheduler. ` +
      `A load driver in a process of its own keeps ${setting.inFlight} creates in flight, bound to the node directly.`,
    `Programs that have nothing to do with the bench used ${percent(median(turns.map((turn) => turn.othersShare)))} of the ` +
      `machine during the creations (median; worst ${percent(Math.max(...turns.map((turn) => turn.othersShare)))}).`,
    'Pods come with tolerations for the time when nobody serves their node, as admission gives them; what it takes to give them ' +
      'some has figures of its own.',
    'They say restartPolicy Always, as those of Deployments: nothing is written down before they are made. What that takes for pods ' +
      'that must not run twice has figures of its own, in a burst of pods that say Never and for pods one after the other.',
    'The floor driver makes only the necessary API calls (create, one status patch, two deletes per pod) over plain undici.',
    ...requestTable(turns),
  ];
  return { suite: 'burst', measurements, notes, failures: [] };
}

function compareAt(pods: number, floor: readonly Turn[], spillway: readonly Turn[]): Measurement[] {
  const at = `burst ${pods}`;
  const typical = (turns: readonly Turn[], read: (turn: Turn) => number): number => median(turns.map(read));
  const rate = (turn: Turn): number => pods / turn.create.running;
  const lines: Measurement[] = [];
  if (spillway.length > 0 && floor.length > 0) {
    // Round by round: both turns of a round find the machine in about the same state.
    const ratios = spillway.flatMap((turn, round) => {
      const other = floor[round];
      return other === undefined ? [] : [rate(turn) / rate(other)];
    });
    const throughput = measured(`${at}: throughput against the floor driver`, median(ratios), 'ratio', 'higher', 0.7);
    lines.push(withSpread(throughput, ratios));
    const overhead = typical(spillway, hostAfterMember50) - typical(floor, hostAfterMember50);
    lines.push(measured(`${at}: host pod gone after member pod, p50 above the floor's`, overhead, 's', 'lower', 1));
    const cpu = typical(spillway, cpuSeconds) / typical(floor, cpuSeconds);
    const goal = pods === GOAL_PODS ? GOAL_CPU_RATIO : null;
    lines.push(measured(`${at}: CPU against the floor driver`, cpu, 'ratio', 'lower', goal));
  }
  for (const [program, all] of [
    ['spillway', spillway],
    ['floor', floor],
  ] as const) {
    if (all.length === 0) continue;
    const goalAt = (size: number, value: number): number | null =>
      program === 'spillway' && pods === size ? value : null;
    const goal = (value: number): number | null => goalAt(GOAL_PODS, value);
    const name = (text: string): string => `${at}: ${text}, ${program}`;
    const figure = (
      what: string,
      read: (turn: Turn) => number,
      unit: string,
      better: 'lower' | 'higher',
      wanted: number | null = null,
    ): Measurement => {
      const line = withSpread(measured(name(what), typical(all, read), unit, better, wanted), all.map(read));
      return program === 'floor' ? asReference(line) : line;
    };
    const spread = (what: string, read: (turn: Turn) => Spread, wanted: number | null = null): Measurement[] => [
      figure(`${what} p50`, (turn) => read(turn).p50, 's', 'lower'),
      figure(`${what} p99`, (turn) => read(turn).p99, 's', 'lower', wanted),
    ];
    lines.push(
      figure('creation rate', (turn) => pods / turn.create.created, 'pods/s', 'higher'),
      figure('first create to all Running', (turn) => turn.create.running, 's', 'lower'),
      figure('throughput', rate, 'pods/s', 'higher'),
      ...spread('create to Running', (turn) => turn.create.toRunning),
      ...spread('create to copy in member', (turn) => turn.create.toMember),
      ...spread('status from member to host during the burst', (turn) => turn.create.lag, goal(1)),
      ...(all.every(({ restLag }) => restLag !== undefined)
        ? spread('status from member to host at rest', (turn) => turn.restLag ?? NOTHING, 0.1)
        : []),
      figure('first delete to all gone', (turn) => turn.delete.gone, 's', 'lower'),
      ...spread('delete to gone', (turn) => turn.delete.toGone),
      ...spread('host pod gone after member pod', (turn) => turn.delete.hostAfterMember, goalAt(GOAL_DELETED, 1)),
      figure('CPU, creation to all Running', cpuSeconds, 'CPU-s', 'lower', goal(12)),
      figure('peak memory', (turn) => turn.peakRssBytes / MB, 'MB', 'lower', goal(220)),
    );
    lines.push(...callsPerPod(pods, program, all));
  }
  return lines;
}

/** What pods cost that come without tolerations for outages, against those that have them. */
function tolerationCost(pods: number, having: readonly Turn[], without: readonly Turn[]): Measurement[] {
  if (having.length === 0 || without.length === 0) return [];
  const name = (text: string): string => `burst ${pods}, tolerations given by the manager: ${text}`;
  const patches = median(without.map(({ hostRequests }) => (hostRequests.get('patch pods') ?? 0) / pods));
  const cpu = median(without.map(cpuSeconds)) / median(having.map(cpuSeconds));
  return [
    measured(name('patch pods per pod at the host'), patches, 'calls', 'lower', 1),
    measured(name('CPU against pods that come with them'), cpu, 'ratio', 'lower'),
  ];
}

/** What it costs to write down that pods are to be made before they are, against pods that may run twice. */
function writeAheadCost(pods: number, plain: readonly Turn[], ahead: readonly Turn[]): Measurement[] {
  if (plain.length === 0 || ahead.length === 0) return [];
  const name = (text: string): string => `burst ${pods}, written ahead: ${text}`;
  const patches = median(ahead.map(({ hostRequests }) => (hostRequests.get('patch pods/status') ?? 0) / pods));
  const cpu = median(ahead.map(cpuSeconds)) / median(plain.map(cpuSeconds));
  const starts = (['toMember', 'toRunning'] as const).flatMap((what) =>
    (['p50', 'p99'] as const).map((part) => {
      const words = what === 'toMember' ? 'create to copy in member' : 'create to Running';
      const seconds = median(ahead.map(({ create }) => create[what][part]));
      return measured(name(`${words} ${part}`), seconds, 's', 'lower');
    }),
  );
  return [
    measured(name('patch pods/status per pod at the host'), patches, 'calls', 'lower', 2),
    ...starts,
    measured(name('CPU against pods that may run twice'), cpu, 'ratio', 'lower', GOAL_AHEAD_CPU_RATIO),
  ];
}

function startsOf({ pods, plain, ahead }: SingleStarts): Measurement[] {
  const name = (text: string): string => `${pods} pods one after the other: create to copy in member p50, ${text}`;
  return [
    measured(name('of those that may run twice'), plain.p50, 's', 'lower'),
    measured(name('written ahead'), ahead.p50, 's', 'lower'),
    measured(name('later where written ahead'), ahead.p50 - plain.p50, 's', 'lower', GOAL_AHEAD_SECONDS),
  ];
}

const NOTHING: Spread = { p50: Number.NaN, p99: Number.NaN };

function cpuSeconds(turn: Turn): number {
  return turn.cpuSeconds;
}

function hostAfterMember50(turn: Turn): number {
  return turn.delete.hostAfterMember.p50;
}

/** The requests that the traffic rule speaks of, the goal for each, and all that is left. */
const CALLS: readonly { cluster: 'host' | 'member'; key: string; goal: number }[] = [
  { cluster: 'member', key: 'create pods', goal: 1 },
  { cluster: 'member', key: 'delete pods', goal: 1 },
  { cluster: 'host', key: 'patch pods/status', goal: 2 },
  { cluster: 'host', key: 'delete pods', goal: 1 },
  { cluster: 'host', key: 'create events', goal: 0 },
];

function callsPerPod(pods: number, program: string, turns: readonly Turn[]): Measurement[] {
  const countsOf = (turn: Turn, cluster: 'host' | 'member'): RequestCounts =>
    cluster === 'host' ? turn.hostRequests : turn.memberRequests;
  const goalOf = (goal: number): number | null => (program === 'spillway' ? goal : null);
  const lines = CALLS.map(({ cluster, key, goal }) => {
    const perPod = median(turns.map((turn) => (countsOf(turn, cluster).get(key) ?? 0) / pods));
    return measured(
      `burst ${pods}: ${key} per pod at the ${cluster}, ${program}`,
      perPod,
      'calls',
      'lower',
      goalOf(goal),
    );
  });
  for (const cluster of ['host', 'member'] as const) {
    const known = new Set(CALLS.filter((call) => call.cluster === cluster).map(({ key }) => key));
    const others = turns.map((turn) => {
      let sum = 0;
      for (const [key, count] of countsOf(turn, cluster)) if (!known.has(key)) sum += count;
      return sum / pods;
    });
    // Heartbeats, watches and leases go on whatever the pods do; against few pods they would count too much.
    lines.push(
      measured(
        `burst ${pods}: other calls per pod at the ${cluster}, ${program}`,
        median(others),
        'calls',
        'lower',
        goalOf(0.1),
      ),
    );
  }
  return program === 'floor' ? lines.map(asReference) : lines;
}

/** Every request of the last turn of each program at the largest size, for those who want to see where calls go. */
function requestTable(turns: readonly Turn[]): string[] {
  const largest = Math.max(...turns.map(({ pods }) => pods));
  const lines: string[] = [];
  for (const program of ['floor', 'spillway']) {
    const turn = turns.findLast((one) => one.program === program && one.pods === largest);
    if (turn === undefined) continue;
    const list = (counts: RequestCounts): string =>
      [...counts]
        .sort(([, a], [, b]) => b - a)
        .map(([key, count]) => `${key} ${count}`)
        .join(', ');
    lines.push(
      `All requests of ${program} in its last turn of ${largest} pods, creation to deletion. ` +
        `Host: ${list(turn.hostRequests)}. Member: ${list(turn.memberRequests)}.`,
    );
  }
  return lines;
}
