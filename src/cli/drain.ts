import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import PQueue from 'p-queue';
import { MEMBER_LABEL } from '../api/marks.ts';
import { childSignal } from '../kube/child-signal.ts';
import { monotonic } from '../kube/clock.ts';
import type { Node, Pod } from '../kube/core-v1.ts';
import { evictionRefusal } from '../descheduler/eviction-refusal.ts';
import { ApiError, isAgainstBudget, isConflict, isNotFound, isUidGone } from '../kube/errors.ts';
import { keyOf, type KubeObject } from '../kube/object.ts';
import { NODES, PODS } from '../kube/resource.ts';
import { evict, get } from '../kube/verbs.ts';
import type { Cli } from './cli.ts';
import { CliError } from './cli-error.ts';
import { nodeNamesOf } from './cluster-summary.ts';
import { setUnschedulable } from './cordon.ts';
import { counted } from '../kube/counted.ts';
import { drainPlan, type DrainPlan, refusedInWords } from './drain-plan.ts';
import { EXIT } from './exit-code.ts';
import {
  clusterFlags,
  dryRunFlag,
  dryRunOption,
  dryRunWords,
  seconds,
  type DryRun,
  type DryRunFlags,
} from './flags.ts';
import { memberNamed } from './member-named.ts';
import { openNodes, untilItTakesPods, whyItTakesPods } from './takes-pods.ts';
import type { Terminal } from './terminal.ts';
import type { ClusterFlags } from './viewer-access.ts';
import type { Viewer } from './viewer.ts';
import { waitFor } from './wait-for.ts';

interface Flags extends ClusterFlags, DryRunFlags {
  force?: boolean;
  deleteEmptydirData?: boolean;
  /** In s. */
  timeout?: number;
}

/** A pod that may not go now is asked for again after so long, in ms. */
export const NOT_NOW_MS = 5_000;
/** Why it may not; all others go, or are gone. */
export const NOT_NOW = {
  kept: 'its disruption budget allows no eviction now',
  busy: 'the API server, or a webhook of it, has too much to do to evict it now',
} as const;
const LOOK_MS = 1_000;
/** A dry run asks a server that is busy so often, LOOK_MS apart: it is to answer, and the real one may have to wait anyway. */
const DRY_RUN_TRIES = 4;
/** The manager cordons the nodes of a member within so long, in ms. */
const CORDON_MS = 30_000;
/** Requests under way at once. */
const AT_ONCE = 16;

export function addDrain(program: Command, cli: Cli): void {
  const command = program
    .command('drain')
    .summary('let a member take no new pods, and evict those that are there')
    .description(
      'Cordons the member (see cordon), then evicts the pods on all its virtual nodes as kubectl drain does: disruption budgets hold, each pod has its grace ' +
        'period, and controllers make new ones elsewhere. Waits until they are gone. While the member does not answer they stay Terminating, as ' +
        'nobody can tell that they have stopped. When somebody lets the member take pods again meanwhile it ends with an error, as what it evicts would come back. For one pool of a member alone there is kubectl drain NODE.',
    )
    .argument('<cluster>', 'the member')
    .option('--force', 'evict pods without a controller, too, which nobody makes anew')
    .option('--delete-emptydir-data', 'evict pods with emptyDir volumes, too, whose content is lost')
    .option('--timeout <seconds>', 'give up after so long (default: never)', seconds);
  dryRunFlag(clusterFlags(command)).action(
    async (name: string, flags: Flags) =>
      await cli.withHost(flags, async (host) => await drain(cli, host, name, flags)),
  );
}

async function drain(cli: Cli, host: Viewer, name: string, flags: Flags) {
  const { terminal } = cli;
  const { dryRun } = flags;
  const deadline = monotonic() + (flags.timeout ?? Infinity) * 1000;
  const plan = await planOf(host, name, flags);
  terminal.out(`${await setUnschedulable(host, name, true, dryRun)}\n`);
  let left: readonly Leaving[];
  try {
    left = await empty(cli, host, name, flags, { plan, deadline });
  } catch (error) {
    if (dryRun === 'none' && !(error instanceof TakesPods)) {
      terminal.note(
        `note: member ${name} stays cordoned, so no new pods come; kubectl spillway uncordon ${name} undoes that`,
      );
    }
    throw error;
  }
  const unknown = left.filter((one) => one === 'busy').length;
  if (unknown > 0) {
    throw new CliError(`it is not known of ${counted(unknown, 'pod')} of ${name} whether they may go`, {
      reason: NOT_NOW.busy,
      fix: 'run it again later',
      page: 'reference/cli.md#drain',
    });
  }
  const kept = left.filter((one) => one === 'kept').length;
  const waits = kept > 0 ? `, once disruption budgets let ${counted(kept, 'pod')} go` : '';
  terminal.out(`membercluster/${name} drained${waits}${dryRunWords(dryRun)}\n`);
  return EXIT.ok;
}

/**
 * Evicts what is to go from the member, which takes no new pods any more, and waits until it is gone. Returns what became of
 * each. Throws CliError.
 */
async function empty(
  cli: Cli,
  host: Viewer,
  name: string,
  flags: Flags,
  { plan: planned, deadline }: { plan: DrainPlan; deadline: number },
): Promise<readonly Leaving[]> {
  const { terminal } = cli;
  let plan = planned;
  if (flags.dryRun === 'none') {
    await untilCordoned(terminal, host, name, deadline - monotonic());
    // Until then more may have come.
    plan = await planOf(host, name, flags);
  }
  for (const { pod, why } of plan.skipped) terminal.note(`note: pod ${keyOf(pod)} stays: ${why}`);
  // Requests take turns; pods do not: one that its budget keeps is in nobody's way.
  const turns = new PQueue({ concurrency: AT_ONCE });
  const evictAll = async (signal: AbortSignal, evicted: Set<Pod>): Promise<Leaving[]> => {
    const pace = { deadline, turns, signal, evicted };
    return await Promise.all(plan.evict.map(async (pod) => await leave(cli, host, pod, flags, pace)));
  };
  if (flags.dryRun !== 'none') return await evictAll(terminal.signal, new Set());
  return await whileCordoned(terminal, host, name, evictAll);
}

/** Somebody let the member take new pods while it was drained: what is evicted comes straight back. */
class TakesPods extends CliError {
  constructor(name: string, why: string, evicted: number) {
    super(`member ${name} is not drained: it takes new pods again`, {
      reason: `${why} meanwhile; ${counted(evicted, 'pod')} ${evicted === 1 ? 'was' : 'were'} evicted before, and others may have come in their place`,
      fix: `find out who let it take pods again, then kubectl spillway drain ${name} to go on; nothing more is evicted until then`,
      page: 'reference/cli.md#drain',
    });
  }
}

/** Ends `work` as soon as the member takes new pods again. `evicted`: those that the host has let go so far. Throws CliError. */
async function whileCordoned<T>(
  terminal: Terminal,
  host: Viewer,
  name: string,
  work: (signal: AbortSignal, evicted: Set<Pod>) => Promise<T>,
): Promise<T> {
  const stop = childSignal(terminal.signal);
  const { signal } = stop;
  const evicted = new Set<Pod>();
  let why: string | undefined;
  const watching = untilItTakesPods(host, name, signal)
    .then((found) => (why = found))
    .finally(() => stop.abort());
  try {
    const done = await work(signal, evicted);
    stop.abort();
    await watching;
    // One node that is open now counts as well: nobody looks any more whether it is cordoned again.
    why ??= (await whyItTakesPods(host, name))?.why;
    if (why === undefined) return done;
  } catch (error) {
    stop.abort();
    await watching;
    if (why === undefined) throw error;
  } finally {
    stop.release();
  }
  throw new TakesPods(name, why, evicted.size);
}

/** Throws CliError when a pod may not go without a word of the person. */
async function planOf(host: Viewer, name: string, flags: Flags): Promise<DrainPlan> {
  const { force = false, deleteEmptydirData = false } = flags;
  const member = await memberNamed<KubeObject>(host, name);
  const plan = drainPlan(await podsOf(host, member), { force, deleteEmptydirData });
  const { refused } = plan;
  if (refused.length === 0) return plan;
  throw new CliError(
    `member ${name} is not drained, as ${counted(refused.length, 'pod')} would not come back as they are`,
    {
      reason: refusedInWords(refused),
      fix: 'use the flags that the reason names, or delete these pods yourself',
      page: 'reference/cli.md#drain',
    },
  );
}

/** The manager cordons the nodes, within `timeoutMs` or half a minute; until it has, pods go on coming. Throws CliError. */
export async function untilCordoned(terminal: Terminal, host: Viewer, name: string, timeoutMs: number): Promise<void> {
  const look = async () => {
    const open = await openNodes(host, name);
    return open.length === 0 ? { value: true } : { waitingFor: `the manager to cordon ${open.join(', ')}` };
  };
  const fix = 'see kubectl spillway status: does a manager work for the member? Then run it again, nothing was evicted';
  await waitFor(terminal, `the virtual nodes of ${name} are cordoned`, Math.min(CORDON_MS, timeoutMs), look, fix);
}

/** All pods on the virtual nodes of a member. Throws CliError. */
export async function podsOf(host: Viewer, member: KubeObject): Promise<Pod[]> {
  const nodes = await host.list<Node>(NODES, { labelSelector: MEMBER_LABEL });
  const lists = await Promise.all(
    nodeNamesOf(member, nodes).map(
      async (node) => await host.list<Pod>(PODS, { fieldSelector: `spec.nodeName=${node}` }),
    ),
  );
  return lists.flat();
}

interface Pace {
  /** Monotonic, in ms. */
  readonly deadline: number;
  readonly turns: PQueue;
  /** Ends it before all are gone. */
  readonly signal: AbortSignal;
  /** Pods that the host has let go. */
  readonly evicted: Set<Pod>;
}

/** What becomes of a pod. In a dry run alone: `kept` by its disruption budget for now, `busy` where that could not be found out. */
type Leaving = 'leaves' | 'kept' | 'busy';

/** Evicts one pod, unless somebody ends it already, and waits until it is gone. */
async function leave({ terminal }: Cli, host: Viewer, pod: Pod, { dryRun }: Flags, pace: Pace): Promise<Leaving> {
  const { namespace = '', name } = pod.metadata;
  const ends = pod.metadata.deletionTimestamp !== undefined || dryRun === 'client';
  const leaving = ends ? 'leaves' : await evicted(terminal, host, pod, dryRun, pace);
  if (leaving !== 'leaves') return leaving;
  if (!ends) pace.evicted.add(pod);
  if (dryRun === 'none') await untilGone(host, pod, pace);
  terminal.out(`pod/${name} evicted (namespace ${namespace})${dryRunWords(dryRun)}\n`);
  return leaving;
}

/** Asks again and again while the pod may not go; a dry run only a few times, and of one that a budget keeps once. */
async function evicted(
  terminal: Terminal,
  host: Viewer,
  pod: Pod,
  dryRun: DryRun,
  { deadline, turns, signal }: Pace,
): Promise<Leaving> {
  let told: string | undefined;
  for (let tries = 1; ; tries++) {
    const answer = await turns.add(async () => {
      signal.throwIfAborted();
      return await askToEvict(host, pod, dryRun);
    });
    if (answer !== 'kept' && answer !== 'busy') return 'leaves';
    const why = NOT_NOW[answer];
    if (why !== told) terminal.note(`pod ${keyOf(pod)} waits: ${why}`);
    told = why;
    const isDry = dryRun === 'server';
    if (isDry && (answer === 'kept' || tries === DRY_RUN_TRIES)) return answer;
    const ms = isDry ? LOOK_MS : NOT_NOW_MS;
    await pause(signal, ms, deadline, `pod ${keyOf(pod)} was not evicted in time: ${why}`);
  }
}

/** Asks once for the eviction of the pod. */
export async function askToEvict(host: Viewer, { metadata }: Pod, dryRun: DryRun): Promise<Outcome> {
  const { namespace = '', name, uid } = metadata;
  return await host.ask(
    `create pods/eviction in namespace ${namespace}`,
    async (signal) =>
      await tried(async () => {
        await evict(host.client, { namespace, name }, { uid }, { signal, ...dryRunOption(dryRun) });
      }),
  );
}

async function untilGone(host: Viewer, pod: Pod, { deadline, turns, signal: ended }: Pace): Promise<void> {
  const { namespace = '', name, uid } = pod.metadata;
  const late = `pod ${keyOf(pod)} is not gone in time: its grace period may be long, or its member does not answer`;
  const look = async (signal: AbortSignal): Promise<Outcome> =>
    await tried(async () => {
      const now = await get<Pod>(host.client, PODS, { namespace, name }, { signal });
      if (now.metadata.uid !== uid) throw new Gone();
    });
  const what = `get pods in namespace ${namespace}`;
  while ((await turns.add(async () => await host.ask(what, look))) !== 'gone') {
    await pause(ended, LOOK_MS, deadline, late);
  }
}

class Gone extends Error {}

/** `kept`: a disruption budget is against it now. `busy`: nobody has looked at it, as the server has too much to do. */
export type Outcome = 'done' | 'gone' | 'kept' | 'busy';

async function tried(work: () => Promise<void>): Promise<Outcome> {
  try {
    await work();
    return 'done';
  } catch (error) {
    if (error instanceof Gone || isNotFound(error) || isUidGone(error)) return 'gone';
    if (isAgainstBudget(error)) return 'kept';
    // Many evictions at once under one budget: each of its changes was met by another one.
    if (isConflict(error)) return 'busy';
    // A webhook may deny with any code, and what it says is for the person to read.
    if (error instanceof ApiError && error.code === 429 && evictionRefusal(error) === 'fails') return 'busy';
    throw error;
  }
}

async function pause(signal: AbortSignal, ms: number, deadline: number, why: string): Promise<void> {
  if (monotonic() + ms > deadline) {
    throw new CliError(why, {
      fix: 'run it again to go on, or see kubectl spillway clusters',
      page: 'concepts/virtual-nodes.md#cordon-and-drain',
    });
  }
  await sleep(ms, undefined, { signal });
}
