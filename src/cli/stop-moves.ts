import type { Command } from 'commander';
import { MOVES_STOPPED_ANNOTATION } from '../api/marks.ts';
import { DESCHEDULER_LEASE, movesStopped } from '../api/moves-stopped.ts';
import type { Lease } from '../kube/lease.ts';
import { LEASES } from '../kube/resource.ts';
import { patch } from '../kube/verbs.ts';
import type { Cli } from './cli.ts';
import { CliError, isNotThere } from './cli-error.ts';
import { EXIT } from './exit-code.ts';
import {
  clusterFlags,
  dryRunFlag,
  dryRunOption,
  dryRunWords,
  systemNamespaceFlag,
  type DryRunFlags,
  type SystemFlags,
} from './flags.ts';
import type { ClusterFlags } from './viewer-access.ts';
import { inWords, type Viewer } from './viewer.ts';

type Flags = ClusterFlags & SystemFlags & DryRunFlags;
const PAGE = 'concepts/failover.md#stop-all-moves';

export function addStopMoves(program: Command, cli: Cli): void {
  const command = program
    .command('stop-moves')
    .summary('let no move of a pod begin, for whatever reason, until resume-moves')
    .description(
      `Puts annotation ${MOVES_STOPPED_ANNOTATION} on Lease ${DESCHEDULER_LEASE}, as kubectl annotate would. It counts within seconds, over restarts, for moves out of ` +
        'all members. Moves that have begun are finished or given back. What people evict themselves goes all the same.',
    )
    .option(
      '--reason <words>',
      'why, and who; shown to everybody who asks (default: what was said before, where moves are stopped already)',
    );
  dryRunFlag(systemNamespaceFlag(clusterFlags(command))).action(
    async (flags: Flags & { reason?: string }) => await say(cli, flags, 'stop', flags.reason),
  );
}

export function addResumeMoves(program: Command, cli: Cli): void {
  const command = program
    .command('resume-moves')
    .summary('let moves of pods begin again')
    .description(
      `Takes annotation ${MOVES_STOPPED_ANNOTATION} off Lease ${DESCHEDULER_LEASE}. What is to be moved by then goes in turn, each pod by what is so then.`,
    );
  dryRunFlag(systemNamespaceFlag(clusterFlags(command))).action(
    async (flags: Flags) => await say(cli, flags, 'resume'),
  );
}

/** `reason`: why moves are to be stopped, in the words of a person, perhaps none. */
async function say(cli: Cli, flags: Flags, what: 'stop' | 'resume', reason?: string): Promise<void> {
  await cli.withHost(flags, async (host) => {
    cli.terminal.out(`lease/${DESCHEDULER_LEASE} ${await write(host, flags, what, reason)}\n`);
    return EXIT.ok;
  });
}

/** Says what was done, as kubectl does. Throws CliError. */
async function write(
  host: Viewer,
  { systemNamespace: namespace, dryRun }: Flags,
  what: 'stop' | 'resume',
  reason?: string,
): Promise<string> {
  const ref = { namespace, name: DESCHEDULER_LEASE };
  const lease = await host.get<Lease>(LEASES, ref).catch(withoutLease(namespace));
  const before = movesStopped(lease);
  if (before === undefined && what === 'resume') return 'moves are not stopped';
  if (before !== undefined && what === 'stop' && reason === undefined) {
    return before === '' ? 'moves are stopped already' : `moves are stopped already, and the reason stays: ${before}`;
  }
  if (dryRun !== 'client') {
    const annotations = { [MOVES_STOPPED_ANNOTATION]: what === 'stop' ? (reason ?? '') : null };
    const body = { metadata: { uid: lease.metadata.uid, annotations } };
    const how = { type: 'merge', fieldManager: 'kubectl-spillway' } as const;
    await host.ask(`patch ${inWords(LEASES)}`, async (signal) => {
      await patch<Lease>(host.client, LEASES, ref, body, how, { signal, ...dryRunOption(dryRun) });
    });
  }
  const done = what === 'stop' ? 'moves stopped' : 'moves may begin again';
  const instead = what === 'resume' || before === undefined || before === '' ? '' : `, before: ${before}`;
  return `${done}${instead}${dryRunWords(dryRun)}`;
}

function withoutLease(namespace: string): (error: unknown) => never {
  return (error) => {
    if (!isNotThere(error)) throw error;
    throw new CliError(`there is no Lease ${DESCHEDULER_LEASE} in namespace ${namespace}`, {
      exitCode: EXIT.notFound,
      reason: 'no manager with component scheduler has run there yet, so nothing is moved',
      fix: 'name another --system-namespace or --context',
      page: PAGE,
      cause: error,
    });
  };
}
