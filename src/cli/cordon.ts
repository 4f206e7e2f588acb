import type { Command } from 'commander';
import { MEMBER_CLUSTERS, type MemberCluster } from '../api/member-cluster.ts';
import type { KubeObject } from '../kube/object.ts';
import { patch } from '../kube/verbs.ts';
import type { Cli } from './cli.ts';
import { EXIT } from './exit-code.ts';
import { clusterFlags, dryRunFlag, dryRunOption, dryRunWords, type DryRun, type DryRunFlags } from './flags.ts';
import type { ClusterFlags } from './viewer-access.ts';
import { inWords, type Viewer } from './viewer.ts';

type Flags = ClusterFlags & DryRunFlags;

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
      'Takes spec.unschedulable of the MemberCluster back. A virtual node that somebody cordoned by kubectl cordon stays so.',
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
        for (const name of names) await host.get<KubeObject>(MEMBER_CLUSTERS, { name });
        for (const name of names)
          cli.terminal.out(`${await setUnschedulable(host, name, unschedulable, flags.dryRun)}\n`);
        return EXIT.ok;
      }),
  );
}

/** Says what was done, as kubectl does. Throws CliError. */
export async function setUnschedulable(
  host: Viewer,
  name: string,
  unschedulable: boolean,
  dryRun: DryRun,
): Promise<string> {
  const done = unschedulable ? 'cordoned' : 'uncordoned';
  const { spec, metadata } = await host.get<Partial<MemberCluster> & KubeObject>(MEMBER_CLUSTERS, { name });
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
