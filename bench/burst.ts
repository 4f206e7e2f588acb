import { startCluster, type Cluster } from '../hack/cluster.ts';
import { startKwok, type Kwok } from '../hack/kwok.ts';
import type { ManagedProcess } from '../hack/managed-process.ts';
import type { Say } from '../hack/progress.ts';
import { until } from '../hack/until.ts';
import { Workspace } from '../hack/workspace.ts';
import { ALLOW_HOST_LABEL } from '../src/api/marks.ts';
import { AuditTally, type RequestCounts } from './audit-tally.ts';
import { compareBursts } from './burst-figures.ts';
import { Disturbance } from './disturbance.ts';
import { FloorProgram, SpillwayProgram, type DrivenProgram } from './driven-program.ts';
import type { CreateReport, DeleteReport } from './load-driver.ts';
import { LoadProcess } from './load-process.ts';
import type { SuiteReport } from './measurement.ts';

export interface BurstOptions {
  /** Pods of each burst. */
  sizes: readonly number[];
  /** How often each program takes its turn at each size. */
  rounds: number;
  /** Leave Spillway out: only what the floor says about this machine. */
  floorOnly: boolean;
  say: Say;
}

/** One program's turn at one size. */
export interface Turn {
  program: string;
  pods: number;
  create: CreateReport;
  delete: DeleteReport;
  /** From the first create to all pods Running. */
  cpuSeconds: number;
  peakRssBytes: number;
  /** Of the machine, by programs that have nothing to do with the bench, from the first create to all Running. */
  othersShare: number;
  hostRequests: RequestCounts;
  memberRequests: RequestCounts;
}

const PODS_PER_NODE = 110;
/** Creates under way at the same time. */
const IN_FLIGHT = 16;
/** What a program at rest may use in a second. */
const IDLE_CPU_SECONDS = 0.05;

/**
 * Bursts of pods onto one member whose nodes kwok plays behind a real scheduler. Both programs take turns on the same
 * two clusters, each turn in a fresh process and a fresh namespace.
 */
export async function burst(options: BurstOptions): Promise<SuiteReport> {
  const { sizes, rounds, say } = options;
  const workspace = Workspace.create({ say });
  try {
    const users = ['bench-floor', 'bench-spillway', 'system:node:member'];
    const hostAudit = new AuditTally(workspace.dir, 'host', users);
    const memberAudit = new AuditTally(workspace.dir, 'member', users);
    const host = await startCluster(workspace, { name: 'host', apiServerFlags: hostAudit.flags });
    const member = await startCluster(workspace, {
      name: 'member',
      serviceCidr: '10.97.0.0/16',
      apiServerFlags: memberAudit.flags,
    });
    const nodes = Math.ceil(Math.max(...sizes) / PODS_PER_NODE) + 4;
    const kwok = await startKwok(member, { nodes, pods: String(PODS_PER_NODE) });
    const floor = new FloorProgram(host, member);
    const spillway = new SpillwayProgram(host, member);
    if (!options.floorOnly) await spillway.install();
    const programs: DrivenProgram[] = options.floorOnly ? [floor] : [floor, spillway];

    const stage = { host, member, kwok, hostAudit, memberAudit, say };
    say('a small burst first, so that the API servers are warm');
    await takeTurn(stage, floor, 50, 'warm-up');
    const turns: Turn[] = [];
    for (const pods of sizes) {
      for (let round = 0; round < rounds; round++) {
        // Turned round each time, so that neither always finds the tidier cluster.
        const order = round % 2 === 0 ? programs : programs.toReversed();
        for (const program of order) {
          turns.push(await takeTurn(stage, program, pods, `${program.name}-${pods}-${round}`));
        }
      }
    }
    return compareBursts(turns, { nodes, inFlight: IN_FLIGHT, rounds });
  } finally {
    await workspace.close();
  }
}

interface Stage {
  host: Cluster;
  member: Cluster;
  kwok: Kwok;
  hostAudit: AuditTally;
  memberAudit: AuditTally;
  say: Say;
}

async function takeTurn(stage: Stage, program: DrivenProgram, pods: number, namespace: string): Promise<Turn> {
  const { host, member, hostAudit, memberAudit, say } = stage;
  await Promise.all([host, member].map((cluster) => makeNamespace(cluster, namespace)));
  const running = await program.start();
  const load = await LoadProcess.start({
    host: host.adminAccess,
    member: member.adminAccess,
    namespace,
    node: program.node,
    pods,
    inFlight: IN_FLIGHT,
  });
  let half: Omit<Turn, 'hostRequests' | 'memberRequests'>;
  try {
    hostAudit.take(program.users);
    memberAudit.take(program.users);
    const patienceMs = 120_000 + pods * 100;
    const disturbance = new Disturbance(() => [
      ...host.usage().values(),
      ...member.usage().values(),
      stage.kwok.process.usage(),
      running.usage(),
      load.usage(),
    ]);
    const before = running.usage()?.cpuSeconds ?? Number.NaN;
    const created = await load.order({ do: 'create' }, patienceMs);
    const othersShare = disturbance.share();
    const cpuSeconds = (running.usage()?.cpuSeconds ?? Number.NaN) - before;
    await whenIdle(running);
    const deleted = await load.order({ do: 'delete' }, patienceMs);
    await whenIdle(running);
    const peakRssBytes = running.usage()?.peakRssBytes ?? Number.NaN;
    half = {
      program: program.name,
      pods,
      create: created.report,
      delete: deleted.report,
      cpuSeconds,
      peakRssBytes,
      othersShare,
    };
  } catch (error) {
    say(`${program.name}: the end of its log\n${running.logTail(30)}`);
    throw error;
  } finally {
    await load.close();
    await program.stop();
  }
  const requests = { hostRequests: hostAudit.take(program.users), memberRequests: memberAudit.take(program.users) };
  const turn: Turn = { ...half, ...requests };
  say(describeTurn(turn));
  return turn;
}

/** Waits until a program does next to nothing, so that requests it still wants to make are counted too. */
async function whenIdle(program: ManagedProcess): Promise<void> {
  let before = Number.NaN;
  await until(
    `${program.spec.name} has nothing more to do`,
    () => {
      const now = program.usage()?.cpuSeconds ?? Number.NaN;
      const idle = now - before < IDLE_CPU_SECONDS;
      before = now;
      return idle;
    },
    { intervalMs: 1_000, timeoutMs: 30_000 },
  );
}

/** Usable at once: the default ServiceAccount is there, and Spillway may use it in the member. */
async function makeNamespace(cluster: Cluster, name: string): Promise<void> {
  await cluster.api.ensure('/api/v1/namespaces', { metadata: { name, labels: { [ALLOW_HOST_LABEL]: 'any' } } });
  await until(`the default ServiceAccount of ${name}`, async () => {
    await cluster.api.call('GET', `/api/v1/namespaces/${name}/serviceaccounts/default`);
    return true;
  });
}

function describeTurn(turn: Turn): string {
  const seconds = (value: number): string => `${value.toFixed(2)} s`;
  const { create, delete: gone } = turn;
  return (
    `${turn.program}: ${turn.pods} pods created in ${seconds(create.created)}, Running after ${seconds(create.running)} ` +
    `(p50 ${seconds(create.toRunning.p50)}, p99 ${seconds(create.toRunning.p99)}), ` +
    `${turn.cpuSeconds.toFixed(2)} CPU-s, peak ${(turn.peakRssBytes / 2 ** 20).toFixed(0)} MB, ` +
    `deleted after ${seconds(gone.gone)} (host after member p99 ${seconds(gone.hostAfterMember.p99)}), ` +
    `others used ${(turn.othersShare * 100).toFixed(0)} % of the machine`
  );
}
