import type { Command } from 'commander';
import { MEMBER_LABEL } from '../api/marks.ts';
import { MEMBER_CLUSTERS, type MemberCluster } from '../api/member-cluster.ts';
import { memberOfNode } from '../api/provider-id.ts';
import type { Node } from '../kube/core-v1.ts';
import type { KubeObject } from '../kube/object.ts';
import { NODES } from '../kube/resource.ts';
import { patch } from '../kube/verbs.ts';
import type { Cli } from './cli.ts';
import { stillKeptOff } from './kept-off.ts';
import { memberNamed } from './member-named.ts';
import { EXIT } from './exit-code.ts';
import { clusterFlags, dryRunFlag, dryRunOption, dryRunWords, type DryRun, type DryRunFlags } from './flags.ts';
import type { ClusterFlags } from './viewer-access.ts';
import { inWords, MissingRight, type Viewer } from './viewer.ts';

type Flags = ClusterFlags & DryRunFlags;
type Member = Partial<MemberCluster> & KubeObject;

export function addCordon(program: Command, cli: Cli): void {
  add(program, cli, 'cordon', true, {
    summary: 'let a member take no new pods; what runs there stays',
    description:
      'Sets spec.unschedulable of the MemberCluster: all its virtual nodes are cordoned. Pods that run there stay. For one pool of a ' +
      'member alone there is kubectl cordon NODE.',
  });
}

export function addUncordon(program: Command, cli: Cli): void {
  add(program, cli, 'uncordon', false, {
    summary: 'let a member take new pods again',
    description:
      'Takes spec.unschedulable of the MemberCluster back. A virtual node that somebody cordoned by kubectl cordon, or gave taint spillway.dev/drain, stays so, ' +
      'and is named with the command that undoes it.',
  });
}

function add(
  program: Command,
  cli: Cli,
  verb: string,
  unschedulable: boolean,
  words: { summary: string; description: string },
): void {
  const command = program
    .command(verb)
    .summary(words.summary)
    .description(words.description)
    .argument('<cluster...>', 'the members');
  dryRunFlag(clusterFlags(command)).action(
    async (names: string[], flags: Flags) =>
      await cli.withHost(flags, async (host) => {
        // Of several, none is changed while one of them is not there.
        const members: Member[] = [];
        for (const name of names) members.push(await memberNamed<Member>(host, name));
        for (const member of members) {
          const { name } = member.metadata;
          cli.terminal.out(`${await setUnschedulable(host, name, unschedulable, flags.dryRun)}\n`);
          if (unschedulable) continue;
          for (const note of await afterUncordon(host, member)) cli.terminal.note(`note: ${note}`);
        }
        return EXIT.ok;
      }),
  );
}

/** What happens next, or what still keeps new pods away. `member`: as it was before. */
async function afterUncordon(host: Viewer, { metadata: { name }, spec }: Member): Promise<string[]> {
  const nodes = await host.tryList<Node>(NODES, { labelSelector: MEMBER_LABEL });
  const kept = nodes instanceof MissingRight ? [] : stillKeptOff(nodes.filter((node) => memberOfNode(node) === name));
  if (kept.length > 0) return kept;
  const takes =
    spec?.unschedulable === true ? 'new pods come again' : `nothing was to be undone, ${name} takes new pods`;
  return [
    `${takes}; those that left stay where they are, and kubectl spillway rebalance brings those of a workload to where its policy wants them now`,
  ];
}

/** Says what was done, as kubectl does. Throws CliError. */
export async function setUnschedulable(
  host: Viewer,
  name: string,
  unschedulable: boolean,
  dryRun: DryRun,
): Promise<string> {
  const done = unschedulable ? 'cordoned' : 'uncordoned';
  const { spec, metadata } = await host.get<Member>(MEMBER_CLUSTERS, { name });
  if ((spec?.unschedulable ?? false) === unschedulable) return `membercluster/${name} already ${done}`;
  if (dryRun !== 'client') {
    // As the object that was looked at: one that was deleted and made anew is another cluster.
    const body = { metadata: { uid: metadata.uid }, spec: { unschedulable } };
    const how = { type: 'merge', fieldManager: 'kubectl-spillway' } as const;
    await host.ask(`patch ${inWords(MEMBER_CLUSTERS)}`, async (signal) => {
      await patch<KubeObject>(host.client, MEMBER_CLUSTERS, { name }, body, how, {
        signal,
        ...dryRunOption(dryRun),
      });
    });
  }
  return `membercluster/${name} ${done}${dryRunWords(dryRun)}`;
}
