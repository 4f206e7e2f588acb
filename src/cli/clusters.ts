import type { Command } from 'commander';
import { MEMBER_CLUSTERS } from '../api/member-cluster.ts';
import type { KubeObject } from '../kube/object.ts';
import { ageSince } from './age.ts';
import type { Cli } from './cli.ts';
import { clusterSummaries, type ClusterSummary, type Room } from './cluster-summary.ts';
import { EXIT } from './exit-code.ts';
import { readFleet } from './fleet.ts';
import { clusterFlags, outputFlags, watchFlag, type OutputFlags, type WatchFlags } from './flags.ts';
import { listed, type Listing } from './output.ts';
import { noSuchMember } from './member-named.ts';
import { taintsInWords } from './member-taints.ts';
import { bytes, cores } from './room-text.ts';
import type { Column } from './table.ts';
import type { ClusterFlags } from './viewer-access.ts';
import type { Viewer } from './viewer.ts';
import { watchListing } from './watch-listing.ts';

type Flags = ClusterFlags & OutputFlags & WatchFlags;

export function addClusters(program: Command, cli: Cli): void {
  const command = program
    .command('clusters')
    .summary('list the members: are they well, and what room do they have')
    .description(
      'Lists the members of this cluster: whether pods can be sent there, and if not, why; how many of your pods they run, and what ' +
        'room they offer. WHY names taints that keep pods away or have them moved, too. FREE is what no pod has asked for yet, of what Spillway may use there.',
    )
    .argument('[cluster...]', 'only these members');
  watchFlag(outputFlags(clusterFlags(command))).action(
    async (names: string[], flags: Flags) =>
      await cli.withHost(flags, async (host) => {
        if (flags.watch === true) {
          return await watchListing(cli, flags, async () => {
            const { summaries, missing } = await readClusters(host, names);
            return { listing: clusterListing(summaries, cli.terminal.now()), notes: missing.map(missingNote) };
          });
        }
        const { summaries, missing } = await readClusters(host, names);
        cli.terminal.out(listed(clusterListing(summaries, cli.terminal.now()), flags.output, flags.headers));
        for (const right of missing) cli.terminal.note(missingNote(right));
        if (summaries.length === 0) cli.terminal.note('There are no members yet.');
        return EXIT.ok;
      }),
  );
}

/** Said where a figure is missing because of a right. */
export function missingNote(right: string): string {
  return `note: what is shown as ? is not known to you, as you may not ${right} (docs/reference/cli.md#rights)`;
}

/** Throws CliError when a name is that of no member. */
export function onlyNamed(members: readonly KubeObject[], names: readonly string[]): void {
  const unknown = names.filter((name) => !members.some(({ metadata }) => metadata.name === name));
  if (unknown.length > 0) throw noSuchMember(unknown, members);
}

async function readClusters(
  host: Viewer,
  names: readonly string[],
): Promise<{ summaries: ClusterSummary[]; missing: readonly string[] }> {
  const { facts, missing } = await readFleet(host);
  const all = clusterSummaries(facts);
  onlyNamed(facts.members, names);
  return { summaries: names.length === 0 ? all : all.filter(({ name }) => names.includes(name)), missing };
}

function clusterListing(items: readonly ClusterSummary[], now: number): Listing<ClusterSummary> {
  return {
    kind: 'Cluster',
    items,
    columns: clusterColumns(now),
    name: ({ name }) => `${MEMBER_CLUSTERS.plural}/${name}`,
  };
}

/** `?`: the viewer may not know. */
export function clusterColumns(now: number): Column<ClusterSummary>[] {
  return [
    { name: 'NAME', text: ({ name }) => name },
    { name: 'READY', text: ({ ready, cordoned }) => (cordoned ? `${ready},SchedulingDisabled` : ready) },
    { name: 'REACHABLE', text: ({ reachable }) => reachable },
    { name: 'CREDENTIALS', text: ({ credentials }) => credentials },
    { name: 'NODES', text: ({ nodes }) => (nodes === null ? '?' : `${nodes.ready}/${nodes.wanted}`) },
    { name: 'PODS', text: ({ pods }) => pods?.running ?? 0 },
    { name: 'PENDING', text: ({ pods }) => pods?.pending ?? 0, wide: true },
    { name: 'CPU-FREE', text: ({ offered, free }) => share(offered, free, ({ cpu }) => cores(cpu)) },
    { name: 'MEMORY-FREE', text: ({ offered, free }) => share(offered, free, ({ memory }) => bytes(memory)) },
    { name: 'VERSION', text: ({ version }) => version ?? undefined },
    { name: 'AGE', text: ({ created }) => ageSince(created ?? undefined, now) },
    { name: 'REGION', text: ({ region }) => region ?? undefined, wide: true },
    { name: 'PROVIDER', text: ({ provider }) => provider ?? undefined, wide: true },
    { name: 'WHY', text: whyText },
  ];
}

/** What keeps pods off a member that is well stands before what is wrong with it. */
function whyText(summary: ClusterSummary): string | undefined {
  const { reason, message } = summary;
  const parts = [taintsInWords(summary), reason === '' ? '' : `${reason}: ${message}`].filter((one) => one !== '');
  return parts.length === 0 ? undefined : parts.join('; ');
}

/** `12/64`: free of offered. */
function share(offered: Room | null, free: Room | null, text: (room: Room) => string): string {
  if (offered === null) return '0/0';
  return `${free === null ? '?' : text(free)}/${text(offered)}`;
}
