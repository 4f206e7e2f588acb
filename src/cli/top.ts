import type { Command } from 'commander';
import { MEMBER_CLUSTERS } from '../api/member-cluster.ts';
import { NODES } from '../kube/resource.ts';
import type { Cli } from './cli.ts';
import { missingNote, onlyNamed } from './clusters.ts';
import { EXIT } from './exit-code.ts';
import { readFleet } from './fleet.ts';
import { clusterFlags, outputFlags, watchFlag, type OutputFlags, type WatchFlags } from './flags.ts';
import { nodeUsage } from './node-usage.ts';
import { listed } from './output.ts';
import { topColumns, topLines, type TopLine } from './top-lines.ts';
import type { ClusterFlags } from './viewer-access.ts';
import type { Viewer } from './viewer.ts';
import { watchListing, type Found } from './watch-listing.ts';

interface Flags extends ClusterFlags, OutputFlags, WatchFlags {
  nodes?: boolean;
}

export function addTop(program: Command, cli: Cli): void {
  const command = program
    .command('top')
    .summary('what pods of yours use of each member, what they ask for, and what there is')
    .description(
      'Shows for each member, or with --nodes for each virtual node, how many of your pods are there, the CPU and memory that they use by the metrics API of ' +
        'this cluster and that they ask for, and what is offered to them. A sum of which a part is not known is shown as ?. For single pods there is kubectl top pods.',
    )
    .argument('[cluster...]', 'only these members')
    .option('--nodes', 'one line for each virtual node');
  watchFlag(outputFlags(clusterFlags(command))).action(
    async (names: string[], flags: Flags) =>
      await cli.withHost(flags, async (host) => {
        const look = async (): Promise<Found<TopLine>> => await readTop(host, names, flags.nodes === true);
        if (flags.watch === true) return await watchListing(cli, flags, look);
        const { listing, notes } = await look();
        cli.terminal.out(listed(listing, flags.output, flags.headers));
        for (const note of notes) cli.terminal.note(note);
        return EXIT.ok;
      }),
  );
}

async function readTop(host: Viewer, names: readonly string[], isByNode: boolean): Promise<Found<TopLine>> {
  const by = isByNode ? 'nodes' : 'members';
  const [{ facts, missing }, used] = await Promise.all([readFleet(host), nodeUsage(host)]);
  onlyNamed(facts.members, names);
  const lines = topLines(facts, typeof used === 'string' ? undefined : used, by);
  const notes = missing.map(missingNote);
  if (typeof used === 'string') notes.push(`note: what pods use is not known: ${used}`);
  if (facts.members.length === 0) notes.push('There are no members yet.');
  const { plural } = isByNode ? NODES : MEMBER_CLUSTERS;
  return {
    listing: {
      kind: isByNode ? 'NodeUsage' : 'ClusterUsage',
      items: lines.filter(({ cluster }) => names.length === 0 || names.includes(cluster)),
      columns: topColumns(by),
      name: ({ name }) => `${plural}/${name}`,
    },
    notes,
  };
}
