import { randomBytes } from 'node:crypto';
import type { Command } from 'commander';
import {
  WORKLOAD_REBALANCERS,
  type ObservedWorkload,
  type WorkloadRebalancer,
  type WorkloadReference,
} from '../api/workload-rebalancer.ts';
import { cleanText } from '../kube/clean-text.ts';
import { apiVersionOf } from '../kube/resource.ts';
import { create } from '../kube/verbs.ts';
import type { Cli } from './cli.ts';
import { EXIT, type ExitCode } from './exit-code.ts';
import {
  clusterFlags,
  dryRunFlag,
  dryRunOption,
  dryRunWords,
  namespaceFlags,
  seconds,
  type DryRunFlags,
  type NamespaceFlags,
} from './flags.ts';
import { inWords, type Viewer } from './viewer.ts';
import { waitFor } from './wait-for.ts';
import { workloadNamed } from './workload-arguments.ts';
import { workloadThere } from './workload-there.ts';

const NOT_REHEARSED =
  'note: nothing is moved, and which pods would be is not said here; see docs/concepts/failover.md#rebalancing-on-demand';
/** Of what is said of workloads that are waited for, in bytes. */
const LONGEST_LINE = 2000;

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
        'Which pods would move --dry-run does not say: with descheduler.dryRun in the configuration of the manager a WorkloadRebalancer moves nothing, and Events ' +
        'MoveWanted tell of each pod. failover.dryRun of a policy does not hold one back.',
    )
    .argument('<workload...>', 'such as deployment/web')
    .option('--wait', 'wait until it is over, and tell what became of each workload')
    .option('--timeout <seconds>', 'how long to wait', seconds, 3600)
    .option('--ttl <seconds>', 'the WorkloadRebalancer is deleted so long after it is over', seconds, 3600);
  dryRunFlag(
    namespaceFlags(clusterFlags(command)),
    'make no WorkloadRebalancer, only say that one would be made',
  ).action(
    async (workloads: string[], flags: Flags) =>
      await cli.withHost(flags, async (host) => await rebalance(cli, host, workloads, flags)),
  );
}

async function rebalance(cli: Cli, host: Viewer, texts: readonly string[], flags: Flags): Promise<ExitCode> {
  const namespace = flags.namespace ?? host.namespace;
  const named = texts.map(workloadNamed);
  const workloads: WorkloadReference[] = [];
  for (const { resource, name } of named) {
    await workloadThere(host, namespace, { resource, name });
    workloads.push({ apiVersion: apiVersionOf(resource), kind: resource.kind, namespace, name });
  }
  const name = `${(named[0]?.name ?? '').slice(0, 200)}-${randomBytes(3).toString('hex')}`;
  const spec = { workloads, ttlSecondsAfterFinished: Math.ceil(flags.ttl) };
  const body: WorkloadRebalancer = {
    apiVersion: apiVersionOf(WORKLOAD_REBALANCERS),
    kind: WORKLOAD_REBALANCERS.kind,
    metadata: { name },
    spec,
  };
  if (flags.dryRun !== 'client') {
    await host.ask(`create ${inWords(WORKLOAD_REBALANCERS)}`, async (signal) => {
      const how = { signal, ...dryRunOption(flags.dryRun), fieldManager: 'kubectl-spillway' };
      await create<WorkloadRebalancer>(host.client, WORKLOAD_REBALANCERS, body, how);
    });
  }
  cli.terminal.out(`workloadrebalancer.spillway.dev/${name} created${dryRunWords(flags.dryRun)}\n`);
  if (flags.dryRun !== 'none') cli.terminal.note(NOT_REHEARSED);
  if (flags.wait !== true || flags.dryRun !== 'none') return EXIT.ok;
  const look = async () => {
    const { status = {} } = await host.get<WorkloadRebalancer>(WORKLOAD_REBALANCERS, { name });
    const { observedWorkloads = [] } = status;
    if (status.finishTime !== undefined) return { value: observedWorkloads };
    const left = observedWorkloads.filter(({ result }) => result === undefined);
    return observedWorkloads.length === 0
      ? { waitingFor: 'the manager to begin', fix: 'see kubectl spillway doctor: does a manager work?' }
      : { waitingFor: waitingFor(left), page: 'concepts/failover.md#rebalancing-on-demand' };
  };
  const fix = `Events of the pods say what they wait for. It goes on; kubectl delete workloadrebalancer ${name} stops it`;
  const found = await waitFor(cli.terminal, 'it is over', flags.timeout * 1000, look, fix);
  for (const one of found) {
    const { result = '', reason, message } = one;
    cli.terminal.out(`${inText(one)} ${result}: ${reason}${message === undefined ? '' : `: ${message}`}\n`);
  }
  return found.some(({ result }) => result === 'Failed') ? EXIT.findings : EXIT.ok;
}

/** With why they are not moved now, as while all moves are stopped: it is the same for many of them. */
function waitingFor(left: readonly ObservedWorkload[]): string {
  const why = [...new Set(left.flatMap(({ message }) => message ?? []))].map((one) => `: ${one}`).join('');
  return cleanText(`pods of ${left.map(inText).join(', ')} to be where they would go${why}`, LONGEST_LINE);
}

function inText({ workload: { kind, name } }: ObservedWorkload): string {
  return `${kind.toLowerCase()}/${name}`;
}
