import type { Command } from 'commander';
import { MEMBER_CLUSTERS } from '../api/member-cluster.ts';
import type { Pod } from '../kube/core-v1.ts';
import { counted } from '../kube/counted.ts';
import { ApiError } from '../kube/errors.ts';
import type { KubeObject } from '../kube/object.ts';
import { NAMESPACES } from '../kube/resource.ts';
import { list } from '../kube/verbs.ts';
import { identityOf, takeAway } from './apply.ts';
import { CliError } from './cli-error.ts';
import type { Cli } from './cli.ts';
import { EXIT, type ExitCode } from './exit-code.ts';
import { clusterFlags, dryRunFlag, dryRunWords, seconds, type DryRunFlags } from './flags.ts';
import { DEFAULT_CHOICES, installation, SYSTEM_NAMESPACE } from './installation.ts';
import { readInventory } from './inventory.ts';
import { nameOf } from './known-kinds.ts';
import { isUpstreamKind, kindsThatStay, whyItStays } from './multi-cluster-kinds.ts';
import type { ManifestObject } from './manifests.ts';
import type { ClusterFlags } from './viewer-access.ts';
import type { Viewer } from './viewer.ts';
import { waitFor } from './wait-for.ts';
import { podsThatWait, waitingInWords } from './waiting-pods.ts';

interface Flags extends ClusterFlags, DryRunFlags {
  purge?: boolean;
  leaveWaitingPods?: boolean;
  timeout: number;
}

export function addUninstall(program: Command, cli: Cli): void {
  const command = program
    .command('uninstall')
    .summary('take Spillway out of the cluster of the context')
    .description(
      'Deletes what install applied, and namespace spillway-system with all that is in it. Refuses while there are MemberClusters: their ' +
        'pods would be left behind; and while pods wait for the second scheduler or at the gate of gangs, whom nobody else lets go. Policies, and the kinds that ' +
        'they are of, stay unless --purge is given. The kinds of the Multi-Cluster Services API stay in any case. It can be repeated: it goes on where it was. ' +
        'Ends with 5 where pods are left waiting.',
    )
    .option('--purge', 'delete the kinds of Spillway, too, and with them all policies')
    .option(
      '--leave-waiting-pods',
      'go on although pods wait that only Spillway lets go: delete them afterwards, and their controllers make others',
    )
    .option('--timeout <seconds>', 'how long to wait until the namespace is gone', seconds, 120);
  dryRunFlag(clusterFlags(command)).action(
    async (flags: Flags) => await cli.withHost(flags, async (host) => await uninstall(cli, host, flags)),
  );
}

async function uninstall(cli: Cli, host: Viewer, flags: Flags): Promise<ExitCode> {
  const { terminal } = cli;
  const { purge = false, leaveWaitingPods = false, dryRun, timeout } = flags;
  const members = await memberNames(host);
  if (members.length > 0) {
    throw new CliError(`Spillway is not taken out of the cluster of context ${host.context}: it has members`, {
      reason: `pods in ${members.join(', ')} would be left behind, and nobody would look after them`,
      fix: 'take each of them out first: kubectl spillway leave MEMBER',
      page: 'guides/install.md#take-it-out-again',
    });
  }
  const present = await readInventory(host);
  const objects = present?.objects ?? everything();
  if (!leaveWaitingPods) refuseWaiting(host.context, await podsThatWait(host, objects));
  const upstream = await kindsThatStay(host);
  const namespace = objects.filter(({ kind }) => kind === 'Namespace');
  const kinds = objects.filter((object) => object.kind === 'CustomResourceDefinition' && !isUpstreamKind(object));
  const others = objects.filter(({ kind }) => kind !== 'Namespace' && kind !== 'CustomResourceDefinition');
  // The manager first, then what limits it, then what it may: in the reverse order. What remembers the rest goes last, with its namespace.
  for (const object of [...others.toReversed(), ...(purge ? kinds.toReversed() : []), ...namespace]) {
    if (await takeAway(host, object, dryRun)) terminal.out(`${nameOf(object)} deleted${dryRunWords(dryRun)}\n`);
  }
  for (const kind of upstream) terminal.note(whyItStays(kind));
  if (dryRun === 'none') await untilGone(cli, host, timeout);
  if (dryRun === 'none' && !purge)
    terminal.note('policies and the kinds of Spillway are still there; --purge deletes them');
  // More may have come before the policies that send them there were gone.
  const waiting = await podsThatWait(host, objects);
  if (waiting.length > 0) terminal.note(leftWaiting(waiting));
  return waiting.length > 0 ? EXIT.findings : EXIT.ok;
}

/** Throws CliError while there are any: they are in no member, and nobody else lets them go. */
function refuseWaiting(context: string, pods: readonly Pod[]): void {
  if (pods.length === 0) return;
  throw new CliError(`Spillway is not taken out of the cluster of context ${context}: ${theyWait(pods)} for it`, {
    reason: `nobody else would give them a node, and as long as they are there their controllers make no others: ${waitingInWords(pods)}`,
    fix: 'make room for them first; or add --leave-waiting-pods, and delete them when Spillway is gone: what their controllers make then does not wait for it',
    page: 'guides/install.md#take-it-out-again',
  });
}

function leftWaiting(pods: readonly Pod[]): string {
  return (
    `note: ${theyWait(pods)} for Spillway, and without it for ever: ${waitingInWords(pods)}. Delete them when it is gone, and their controllers make others; ` +
    'kubectl get pods -A --field-selector spec.nodeName= shows what has no node'
  );
}

function theyWait({ length }: readonly Pod[]): string {
  return `${counted(length, 'pod')} ${length === 1 ? 'waits' : 'wait'}`;
}

async function untilGone({ terminal }: Cli, host: Viewer, timeout: number): Promise<void> {
  const look = async () => {
    const left = await host.tryGet<KubeObject>(NAMESPACES, { name: SYSTEM_NAMESPACE });
    return left === undefined ? { value: true } : { waitingFor: `namespace ${SYSTEM_NAMESPACE} to end` };
  };
  await waitFor(
    terminal,
    `namespace ${SYSTEM_NAMESPACE} is gone`,
    timeout * 1000,
    look,
    `see kubectl get namespace ${SYSTEM_NAMESPACE} -o yaml`,
  );
}

/** None where the kind is not known. */
async function memberNames(host: Viewer): Promise<string[]> {
  return await host.ask('list memberclusters.spillway.dev', async (signal) => {
    try {
      const { items } = await list<KubeObject>(host.client, MEMBER_CLUSTERS, { signal });
      return items.map(({ metadata }) => metadata.name);
    } catch (error) {
      if (error instanceof ApiError && error.code === 404) return [];
      throw error;
    }
  });
}

/** All that any choice brings: of an installation that was applied by hand. */
function everything(): ManifestObject[] {
  const all = (['Second', 'Own'] as const).flatMap((scheduler) =>
    (['Policies', 'Webhook'] as const).flatMap((admission) =>
      installation({
        ...DEFAULT_CHOICES,
        scheduler,
        admission,
        hostIdentity: 'ServiceAccount',
        multiCluster: 'Exchange',
      }),
    ),
  );
  return [...new Map(all.map((object) => [identityOf(object), object])).values()];
}
