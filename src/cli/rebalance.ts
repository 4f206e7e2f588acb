import { randomBytes } from 'node:crypto';
import type { Command } from 'commander';
import {
  WORKLOAD_REBALANCERS,
  type ObservedWorkload,
  type WorkloadRebalancer,
  type WorkloadReference,
} from '../api/workload-rebalancer.ts';
import { apiVersionOf } from '../kube/resource.ts';
import { create, remove } from '../kube/verbs.ts';
import type { Cli } from './cli.ts';
import { CliError } from './cli-error.ts';
import { EXIT, type ExitCode } from './exit-code.ts';
import {
  clusterFlags,
  dryRunFlag,
  dryRunWords,
  namespaceFlags,
  seconds,
  type DryRunFlags,
  type NamespaceFlags,
} from './flags.ts';
import { observedLines, waitingFor } from './rebalance-text.ts';
import { inWords, type Viewer } from './viewer.ts';
import { waitFor, type Look } from './wait-for.ts';
import { workloadNamed } from './workload-arguments.ts';
import { workloadThere } from './workload-there.ts';

const PAGE = 'concepts/failover.md#rebalancing-on-demand';
/** The manager has answered a dry run within so long, in ms. */
const REPORT_MS = 60_000;
/** What a dry run leaves behind when it is killed goes after so long, in s. */
const DRY_RUN_TTL = 60;

interface Flags extends NamespaceFlags, DryRunFlags {
  wait?: boolean;
  /** In s. */
  timeout: number;
  ttl: number;
}

export function addRebalance(program: Command, cli: Cli): void {
  const command = program
    .command('rebalance')
    .summary('move pods of workloads to where they would go if they came now, once')
    .description(
      'Makes a WorkloadRebalancer: home to an earlier tier, by the weights of today, out of clusters that the policy does not choose any more. One pod of ' +
        'a workload moves at a time, as its policy has moves. With --wait it ends with 5 when pods of a workload could not be moved. ' +
        'With --dry-run=server the manager says which pods it would move, and why, and moves none. failover.dryRun of a policy does not hold one back.',
    )
    .argument('<workload...>', 'such as deployment/web')
    .option('--wait', 'wait until it is over, and tell what became of each workload')
    .option('--timeout <seconds>', 'how long to wait', seconds, 3600)
    .option('--ttl <seconds>', 'the WorkloadRebalancer is deleted so long after it is over', seconds, 3600);
  dryRunFlag(namespaceFlags(clusterFlags(command))).action(
    async (workloads: string[], flags: Flags) =>
      await cli.withHost(flags, async (host) => await rebalance(cli, host, workloads, flags)),
  );
}

async function rebalance(cli: Cli, host: Viewer, texts: readonly string[], flags: Flags): Promise<ExitCode> {
  const { terminal } = cli;
  const { dryRun } = flags;
  const isDry = dryRun === 'server';
  const body = await wanted(host, texts, flags);
  const { name } = body.metadata;
  if (isDry) await knowsDryRuns(host, body);
  if (dryRun !== 'client') await made(host, body, false);
  terminal.out(`workloadrebalancer.spillway.dev/${name} created${dryRunWords(dryRun)}\n`);
  if (dryRun === 'client') {
    terminal.note('note: which pods would be moved the manager knows: use --dry-run=server');
    return EXIT.ok;
  }
  if (!isDry && flags.wait !== true) return EXIT.ok;
  try {
    return await followed(cli, host, name, flags);
  } finally {
    // Without the right to delete it, it goes by itself.
    if (isDry) await remove(host.client, WORKLOAD_REBALANCERS, { name }, {}, {}).catch(() => undefined);
  }
}

/** What is to be created. Throws CliError for what is not there, so that it is told at once. */
async function wanted(host: Viewer, texts: readonly string[], flags: Flags): Promise<WorkloadRebalancer> {
  const namespace = flags.namespace ?? host.namespace;
  const named = texts.map(workloadNamed);
  const workloads: WorkloadReference[] = [];
  for (const { resource, name } of named) {
    await workloadThere(host, namespace, { resource, name });
    workloads.push({ apiVersion: apiVersionOf(resource), kind: resource.kind, namespace, name });
  }
  const dryRun = flags.dryRun === 'server';
  const name = `${(named[0]?.name ?? '').slice(0, 200)}-${randomBytes(3).toString('hex')}`;
  return {
    apiVersion: apiVersionOf(WORKLOAD_REBALANCERS),
    kind: WORKLOAD_REBALANCERS.kind,
    metadata: { name },
    spec: { workloads, dryRun, ttlSecondsAfterFinished: dryRun ? DRY_RUN_TTL : Math.ceil(flags.ttl) },
  };
}

/** `asked`: it is judged by the API server, and not stored. */
async function made(host: Viewer, body: WorkloadRebalancer, asked: boolean): Promise<WorkloadRebalancer> {
  return await host.ask(`create ${inWords(WORKLOAD_REBALANCERS)}`, async (signal) => {
    const how = { signal, dryRun: asked, fieldManager: 'kubectl-spillway' };
    return await create<WorkloadRebalancer>(host.client, WORKLOAD_REBALANCERS, body, how);
  });
}

/** A CRD of an older version drops the field: the pods would be moved. */
async function knowsDryRuns(host: Viewer, body: WorkloadRebalancer): Promise<void> {
  const { spec } = await made(host, body, true);
  if (spec.dryRun) return;
  throw new CliError('nothing was asked, as it would have been done', {
    reason: 'the CRD of WorkloadRebalancers is of an older version, which knows no dryRun',
    fix: 'kubectl spillway upgrade',
    page: PAGE,
  });
}

/** Waits for what came of it, and prints that. */
async function followed({ terminal }: Cli, host: Viewer, name: string, flags: Flags): Promise<ExitCode> {
  const isDry = flags.dryRun === 'server';
  const look = async (): Promise<Look<ObservedWorkload[]>> => {
    const { status = {} } = await host.get<WorkloadRebalancer>(WORKLOAD_REBALANCERS, { name });
    const { observedWorkloads = [] } = status;
    if (status.finishTime !== undefined) return { value: observedWorkloads };
    const left = observedWorkloads.filter(({ result }) => result === undefined);
    return observedWorkloads.length === 0
      ? { waitingFor: 'the manager to begin', fix: 'see kubectl spillway doctor: does a manager work?' }
      : { waitingFor: waitingFor(left, isDry), page: PAGE };
  };
  const fix = isDry
    ? 'see kubectl spillway doctor: has the manager the rights of manifests/scheduler/descheduler.yaml, and do all members answer?'
    : `Events of the pods say what they wait for. It goes on; kubectl delete workloadrebalancer ${name} stops it`;
  const timeoutMs = flags.timeout * 1000;
  const found = isDry
    ? await waitFor(terminal, 'it is answered', Math.min(REPORT_MS, timeoutMs), look, fix)
    : await waitFor(terminal, 'it is over', timeoutMs, look, fix);
  for (const line of found.flatMap((one) => observedLines(one))) terminal.out(`${line}\n`);
  return found.some(({ result }) => result === 'Failed') ? EXIT.findings : EXIT.ok;
}
