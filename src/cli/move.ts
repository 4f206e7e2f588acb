import { randomBytes } from 'node:crypto';
import type { Command } from 'commander';
import { LOCAL } from '../api/cluster-tiers.ts';
import {
  type MigratedReference,
  type WorkloadMigration,
  WORKLOAD_MIGRATIONS,
  type WorkloadMigrationSpec,
} from '../api/workload-migration.ts';
import { isOver } from '../descheduler/order.ts';
import { monotonic } from '../kube/clock.ts';
import { conditionOf } from '../kube/conditions.ts';
import type { KubeObject } from '../kube/object.ts';
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
import { memberNamed } from './member-named.ts';
import { lookForOthers } from './migrations-there.ts';
import { MOVES_PAGE, reportLines, resultLines, waitingFor } from './move-text.ts';
import { fixOfRefusal } from './refused-move.ts';
import { inWords, type Viewer } from './viewer.ts';
import { waitFor } from './wait-for.ts';
import { workloadNamed } from './workload-arguments.ts';
import { workloadThere } from './workload-there.ts';

interface Flags extends NamespaceFlags, DryRunFlags {
  from: string;
  to?: string;
  all?: boolean;
  leaveUnmovable?: boolean;
  wait?: boolean;
  /** In s. */
  timeout: number;
  ttl: number;
}

/** The manager has judged it within so long, unless it is known why it has to wait, in ms. */
const REPORT_MS = 60_000;
/** What a dry run leaves behind when it is killed goes after so long, in s. */
const DRY_RUN_TTL = 60;

export function addMove(program: Command, cli: Cli): void {
  const command = program
    .command('move')
    .summary('move workloads, or a namespace, out of a member: all that is meant, or nothing')
    .description(
      'Makes a WorkloadMigration and prints its report: whether all pods have a place, together, where they are to go. When one has none, nothing is moved, ' +
        'and it ends with 5. Else pods move as their policies have moves: of a Deployment each goes when another one is Ready. Until it is over new pods of ' +
        'these workloads go there, too. kubectl delete workloadmigration NAME stops it.',
    )
    .argument('[workload...]', 'such as deployment/web')
    .requiredOption('--from <member>', 'the member that they are to leave')
    .option('--to <cluster>', 'where they are to go: a member, or local (default: anywhere that their policies allow)')
    .option('--all', 'all workloads of the namespace that have pods there')
    .option(
      '--leave-unmovable',
      'leave pods that are never moved (with claims, of gangs, of Jobs, without a controller) where they are',
    )
    .option('--wait', 'wait until it is over, and tell what became of each workload')
    .option('--timeout <seconds>', 'how long to wait', seconds, 3600)
    .option('--ttl <seconds>', 'the WorkloadMigration is deleted so long after it is over', seconds, 3600);
  dryRunFlag(namespaceFlags(clusterFlags(command))).action(
    async (workloads: string[], flags: Flags) =>
      await cli.withHost(flags, async (host) => await move(cli, host, workloads, flags)),
  );
}

async function move(cli: Cli, host: Viewer, texts: readonly string[], flags: Flags): Promise<ExitCode> {
  const { terminal } = cli;
  const namespace = flags.namespace ?? host.namespace;
  const { spec, name } = await wanted(host, namespace, texts, flags);
  await lookForOthers(terminal, host, namespace, { spec, isDry: flags.dryRun !== 'none' });
  const named = `${WORKLOAD_MIGRATIONS.kind.toLowerCase()}.spillway.dev/${name}`;
  if (flags.dryRun === 'client') {
    terminal.out(`${named} created${dryRunWords(flags.dryRun)}\n`);
    terminal.note('note: whether all of it fits the manager knows: use --dry-run=server');
    return EXIT.ok;
  }
  const isDry = flags.dryRun === 'server';
  const ttlSecondsAfterFinished = isDry ? DRY_RUN_TTL : Math.ceil(flags.ttl);
  const body = {
    apiVersion: apiVersionOf(WORKLOAD_MIGRATIONS),
    kind: WORKLOAD_MIGRATIONS.kind,
    metadata: { name, namespace },
    spec: { ...spec, dryRun: isDry, ttlSecondsAfterFinished },
  };
  await host.ask(`create ${inWords(WORKLOAD_MIGRATIONS)} in namespace ${namespace}`, async (signal) => {
    await create<WorkloadMigration>(host.client, WORKLOAD_MIGRATIONS, body, {
      signal,
      fieldManager: 'kubectl-spillway',
    });
  });
  terminal.out(`${named} created${dryRunWords(flags.dryRun)}\n`);
  try {
    return await followed(cli, host, { namespace, name }, flags);
  } finally {
    if (isDry) await forgotten(host, { namespace, name });
  }
}

/** What is to be created. Throws CliError for what makes no sense, or is not there, so that it is told at once. */
async function wanted(
  host: Viewer,
  namespace: string,
  texts: readonly string[],
  { from, to, all = false, leaveUnmovable = false }: Flags,
): Promise<{ name: string; spec: WorkloadMigrationSpec }> {
  const isNamed = texts.length > 0;
  if (isNamed === all) {
    throw new CliError(isNamed ? 'workloads are named, and --all is given' : 'no workload is named', {
      exitCode: EXIT.usage,
      fix: 'name workloads like deployment/web, or use --all for those of the namespace',
    });
  }
  if (from === LOCAL || from === to) {
    throw new CliError(from === LOCAL ? 'pods are moved out of members only' : 'they are to go where they are', {
      exitCode: EXIT.usage,
      fix:
        from === LOCAL
          ? 'name a member behind --from; for nodes of the host there is kubectl drain'
          : 'name another --to',
    });
  }
  const named = texts.map(workloadNamed);
  for (const member of [from, to]) {
    if (member !== undefined && member !== LOCAL) await memberNamed<KubeObject>(host, member);
  }
  const workloads: MigratedReference[] = [];
  for (const { resource, name } of named) {
    await workloadThere(host, namespace, { resource, name });
    workloads.push({ apiVersion: apiVersionOf(resource), kind: resource.kind, name });
  }
  const spec: WorkloadMigrationSpec = {
    ...(all ? {} : { workloads }),
    all,
    from,
    ...(to === undefined ? {} : { to }),
    unmovable: leaveUnmovable ? 'Leave' : 'Refuse',
    dryRun: false,
    suspend: false,
  };
  const stem = (named[0]?.name ?? `out-of-${from}`).slice(0, 200);
  return { name: `${stem}-${randomBytes(3).toString('hex')}`, spec };
}

/** Prints the report, and with --wait what became of it. */
async function followed(
  { terminal }: Cli,
  host: Viewer,
  ref: { namespace: string; name: string },
  flags: Flags,
): Promise<ExitCode> {
  const fix =
    'see kubectl spillway doctor: does a manager work, and has it the rights of manifests/scheduler/descheduler.yaml? The WorkloadMigration is there, and goes on when that is so';
  const look = (isDone: (migration: WorkloadMigration) => boolean) => async () => {
    const migration = await host.get<WorkloadMigration>(WORKLOAD_MIGRATIONS, ref);
    return isDone(migration) ? { value: migration } : waitingFor(migration);
  };
  const isJudged = ({ status }: WorkloadMigration): boolean =>
    (conditionOf({ status }, 'Fits')?.status ?? 'Unknown') !== 'Unknown';
  const timeoutMs = flags.timeout * 1000;
  const began = monotonic();
  const reportMs = Math.min(REPORT_MS, timeoutMs);
  const atMostMs = flags.wait === true ? timeoutMs : reportMs;
  const judged = await waitFor(terminal, 'it is judged', reportMs, look(isJudged), fix, { began, atMostMs });
  for (const line of reportLines(judged)) terminal.out(`${line}\n`);
  const fits = conditionOf(judged, 'Fits');
  if (fits?.status !== 'True') {
    throw new CliError('nothing was moved, as not all of it fits', {
      exitCode: EXIT.findings,
      reason: fits?.message,
      fix: fixOfRefusal(judged),
      page: MOVES_PAGE,
    });
  }
  if (judged.status?.workloads?.length === 0) {
    terminal.note(`note: no workload of namespace ${ref.namespace} has pods in ${flags.from}`);
  }
  if (flags.dryRun !== 'none') return EXIT.ok;
  if (flags.wait !== true) {
    terminal.note(
      `note: it goes on; kubectl get workloadmigration ${ref.name} -n ${ref.namespace} -w shows how far it is`,
    );
    return EXIT.ok;
  }
  const waitFix = 'Events of the pods say what they wait for. It goes on; delete the WorkloadMigration to stop it';
  const over = await waitFor(terminal, 'it is over', timeoutMs, look(isOver), waitFix, { began });
  for (const line of resultLines(over)) terminal.out(`${line}\n`);
  return conditionOf(over, 'Complete')?.status === 'True' ? EXIT.ok : EXIT.findings;
}

/** Without the right to delete it, it goes by itself. */
async function forgotten(host: Viewer, ref: { namespace: string; name: string }): Promise<void> {
  await remove(host.client, WORKLOAD_MIGRATIONS, ref, {}, {}).catch(() => undefined);
}
