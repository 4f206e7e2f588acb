import { startCluster, type Cluster } from '../hack/cluster.ts';
import { startKwok, type Kwok } from '../hack/kwok.ts';
import type { Say } from '../hack/progress.ts';
import { Workspace } from '../hack/workspace.ts';
import { AuditTally, type RequestCounts } from './audit-tally.ts';
import { makeNamespace } from './bench-namespace.ts';
import { compareBursts, GIVES_TOLERATIONS, type Turn, WRITES_AHEAD } from './burst-figures.ts';
import { Disturbance } from './disturbance.ts';
import { FloorProgram, SpillwayProgram, type DrivenProgram } from './driven-program.ts';
import type { Load } from './load-driver.ts';
import { LoadProcess } from './load-process.ts';
import type { SuiteReport } from './measurement.ts';
import { startSingly } from './single-starts.ts';
import { whenIdle } from './when-idle.ts';

export interface BurstOptions {
  /** Pods of each burst. */
  sizes: readonly number[];
  /** How often each program takes its turn at the first size; at each further one once less, for they take longer. */
  rounds: number;
  /** Leave Spillway out: only what the floor says about this machine. */
  floorOnly: boolean;
  say: Say;
}

const PODS_PER_NODE = 110;
/** Creates under way at the same time. */
const IN_FLIGHT = 16;
/** Changes of a status that are followed from the member to the host while nothing else goes on. */
const LAG_CHANGES = 200;

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

    const usual = { outageTolerations: true, restartPolicy: 'Always' } as const;
    const stage: Stage = { host, member, kwok, hostAudit, memberAudit, say, kind: usual };
    say('a small burst first, so that the API servers are warm');
    await takeTurn(stage, floor, 50, 'warm-up');
    const turns: Turn[] = [];
    for (const [index, pods] of sizes.entries()) {
      for (let round = 0; round < Math.max(1, rounds - index); round++) {
        // Turned round each time, so that neither always finds the tidier cluster.
        const order = round % 2 === 0 ? programs : programs.toReversed();
        for (const program of order) {
          turns.push(await takeTurn(stage, program, pods, `${program.name}-${pods}-${round}`));
        }
      }
    }
    const [first] = sizes;
    if (!options.floorOnly && first !== undefined) {
      const without = { ...stage, kind: { ...usual, outageTolerations: false } };
      const given = await takeTurn(without, spillway, first, `tolerations-${first}`);
      const once: Stage = { ...stage, kind: { ...usual, restartPolicy: 'Never' } };
      const written = await takeTurn(once, spillway, first, `written-ahead-${first}`);
      turns.push({ ...given, program: GIVES_TOLERATIONS }, { ...written, program: WRITES_AHEAD });
      const starts = await startSingly({ host, member, program: spillway, say });
      return compareBursts(turns, { nodes, inFlight: IN_FLIGHT, rounds }, starts);
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
  kind: Pick<Load, 'outageTolerations' | 'restartPolicy'>;
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
    ...stage.kind,
  });
  // Requests up to the deletion; those of the measurement in between are left out.
  let half: Turn;
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
    const calls = { host: hostAudit.take(program.users), member: memberAudit.take(program.users) };
    const lag = program.mirrorsAll ? await load.order({ do: 'lag', changes: LAG_CHANGES }, patienceMs) : undefined;
    if (lag !== undefined) await whenIdle(running);
    hostAudit.take(program.users);
    memberAudit.take(program.users);
    const deleted = await load.order({ do: 'delete' }, patienceMs);
    await whenIdle(running);
    const peakRssBytes = running.usage()?.peakRssBytes ?? Number.NaN;
    half = {
      program: program.name,
      pods,
      create: created.report,
      restLag: lag?.report,
      delete: deleted.report,
      cpuSeconds,
      peakRssBytes,
      othersShare,
      hostRequests: calls.host,
      memberRequests: calls.member,
    };
  } catch (error) {
    say(`${program.name}: the end of its log\n${running.logTail(30)}`);
    throw error;
  } finally {
    await load.close();
    await program.stop();
  }
  const turn: Turn = {
    ...half,
    hostRequests: addCounts(half.hostRequests, hostAudit.take(program.users)),
    memberRequests: addCounts(half.memberRequests, memberAudit.take(program.users)),
  };
  say(describeTurn(turn));
  return turn;
}

function addCounts(counts: RequestCounts, more: RequestCounts): RequestCounts {
  const sums = new Map(counts);
  for (const [key, count] of more) sums.set(key, (sums.get(key) ?? 0) + count);
  return sums;
}

function describeTurn(turn: Turn): string {
  const seconds = (value: number): string => `${value.toFixed(2)} s`;
  const { create, restLag, delete: gone } = turn;
  return (
    `${turn.program}: ${turn.pods} pods created in ${seconds(create.created)}, Running after ${seconds(create.running)} ` +
    `(p50 ${seconds(create.toRunning.p50)}, p99 ${seconds(create.toRunning.p99)}), ` +
    `lag p99 ${seconds(create.lag.p99)}${restLag === undefined ? '' : `, at rest ${seconds(restLag.p99)}`}, ` +
    `${turn.cpuSeconds.toFixed(2)} CPU-s, peak ${(turn.peakRssBytes / 2 ** 20).toFixed(0)} MB, ` +
    `deleted after ${seconds(gone.gone)} (host after member p99 ${seconds(gone.hostAfterMember.p99)}), ` +
    `others used ${(turn.othersShare * 100).toFixed(0)} % of the machine`
  );
}
