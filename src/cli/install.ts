import { InvalidArgumentError, Option, type Command } from 'commander';
import { stringify } from 'yaml';
import type { KubeObject } from '../kube/object.ts';
import { programVersion } from '../version.ts';
import { apply, applyAll, takeAway } from './apply.ts';
import { CliError } from './cli-error.ts';
import type { Cli } from './cli.ts';
import { rolledOut } from './deployments.ts';
import { EXIT, type ExitCode } from './exit-code.ts';
import { clusterFlags, dryRunFlag, dryRunWords, seconds, type DryRunFlags } from './flags.ts';
import { hasMutatingPolicies, versionOf } from './host-version.ts';
import {
  DEFAULT_CHOICES,
  installation,
  MANAGER,
  SECOND_SCHEDULER,
  markOf,
  shippedConfiguration,
  SYSTEM_NAMESPACE,
  type Choices,
} from './installation.ts';
import { begun, everChosen, inventoryOf, noLongerWanted, readInventory, type Inventory } from './inventory.ts';
import { CUSTOM_RESOURCE_DEFINITIONS, nameOf } from './known-kinds.ts';
import { editedConfiguration } from './manager-configuration.ts';
import { checkNobodyExchanges, kindsOfOthers, whyItStays } from './multi-cluster-kinds.ts';
import type { ManifestObject } from './manifests.ts';
import type { ClusterFlags } from './viewer-access.ts';
import type { Viewer } from './viewer.ts';
import { waitFor, type Look } from './wait-for.ts';

/** Where the second scheduler comes from, in the version of the host. */
const SCHEDULER_IMAGE = 'registry.k8s.io/kube-scheduler';

/** Not to be lost: there are no flags for what stands there. */
const EDITED =
  `note: configmap/${MANAGER} keeps what somebody else wrote into it, and what is new in the one of this version is not there; ` +
  'to have that, delete it and repeat this';

interface Flags extends ClusterFlags, DryRunFlags {
  image?: string;
  replicas?: number;
  scheduler?: Choices['scheduler'];
  admission?: Choices['admission'];
  schedulerImage?: string;
  hostIdentity?: Choices['hostIdentity'];
  multiCluster?: Choices['multiCluster'];
  timeout: number;
  wait: boolean;
  output?: 'yaml';
}

export function addInstall(program: Command, cli: Cli): void {
  add(program, cli, 'install', {
    summary: 'install Spillway into the cluster of the context, or repair it',
    description:
      'Applies what manifests/ say: kinds, rights, policies, the manager, and a scheduler that asks it, and waits until they are ready. ' +
      'What is there as it should be stays. Nothing is changed in how other pods are scheduled.',
  });
}

export function addUpgrade(program: Command, cli: Cli): void {
  add(program, cli, 'upgrade', {
    summary: 'bring an installation to the version of this program',
    description:
      'As install, with the choices that were made then unless others are given. What a former version brought and this one does not is ' +
      'deleted, but for kinds. Pods in members go on while the manager restarts.',
  });
}

function add(
  program: Command,
  cli: Cli,
  verb: 'install' | 'upgrade',
  words: { summary: string; description: string },
): void {
  const command = program
    .command(verb)
    .summary(words.summary)
    .description(words.description)
    .option('--image <name>', `image of the manager (default: ${DEFAULT_CHOICES.image})`)
    .option(
      '--replicas <n>',
      `of the manager and of its scheduler (default: ${String(DEFAULT_CHOICES.replicas)})`,
      count,
    )
    .addOption(
      new Option(
        '--scheduler <which>',
        "who asks Spillway where pods go: a Second kube-scheduler that comes with it (default), or the cluster's Own, which you configure",
      ).choices(['Second', 'Own']),
    )
    .option(
      '--scheduler-image <name>',
      'image of the second scheduler (default: kube-scheduler in the version of the cluster)',
    )
    .addOption(
      new Option(
        '--admission <how>',
        'how pods get what they need to leave: Policies of the API server (default from Kubernetes 1.36 on), or a Webhook',
      ).choices(['Policies', 'Webhook']),
    )
    .addOption(
      new Option(
        '--host-identity <kind>',
        'ServiceAccount where the cluster signs no certificates for nodes (default: Auto)',
      ).choices(['Auto', 'ServiceAccount']),
    )
    .addOption(
      new Option(
        '--multi-cluster <services>',
        'Exchange: members may exchange Services with this cluster by the Multi-Cluster Services API, which takes its kinds and further rights (default: None)',
      ).choices(['None', 'Exchange']),
    )
    .option('--timeout <seconds>', 'how long to wait until all is ready', seconds, 300)
    .option('--no-wait', 'do not wait until all is ready')
    .addOption(new Option('-o, --output <format>', 'with --dry-run=client: print the objects').choices(['yaml']));
  dryRunFlag(clusterFlags(command)).action(async (flags: Flags) => {
    if (flags.output === 'yaml') {
      await cli.run(async () => await Promise.resolve(print(cli, flags)));
      return;
    }
    await cli.withHost(flags, async (host) => await install(cli, host, verb, flags));
  });
}

/** Without asking any cluster. */
function print(cli: Cli, flags: Flags): ExitCode {
  if (flags.dryRun !== 'client') {
    throw new CliError('-o yaml is for what would be applied', { exitCode: EXIT.usage, fix: 'add --dry-run=client' });
  }
  const objects = installation(withFlags(DEFAULT_CHOICES, flags));
  cli.terminal.out(
    objects.map((object) => stringify(object, { lineWidth: 0, aliasDuplicateObjects: false })).join('---\n'),
  );
  return EXIT.ok;
}

async function install(cli: Cli, host: Viewer, verb: 'install' | 'upgrade', flags: Flags): Promise<ExitCode> {
  const { terminal } = cli;
  const { dryRun } = flags;
  const version = await versionOf(host);
  const before = await readInventory(host);
  if (before === undefined && verb === 'upgrade') {
    throw new CliError(`there is nothing to upgrade in the cluster of context ${host.context}`, {
      exitCode: EXIT.notFound,
      reason: 'this program has installed nothing there',
      fix: 'use kubectl spillway install',
    });
  }
  const choices = withFlags(before?.choices ?? (await usual(host)), flags);
  // Of an upgrade, too: its scheduler is of the version of the host.
  if (flags.schedulerImage === undefined && isStock(choices.schedulerImage)) {
    choices.schedulerImage = `${SCHEDULER_IMAGE}:${version.text.replace(/[-+].*$/, '')}`;
  }
  if (flags.image === undefined && before?.choices.image === `spillway:${before?.version ?? ''}`)
    choices.image = DEFAULT_CHOICES.image;
  terminal.note(
    `installing Spillway ${programVersion()} into the cluster of context ${host.context} (Kubernetes ${version.text})`,
  );
  const exchanged = everChosen(before).some(({ multiCluster }) => multiCluster === 'Exchange');
  if (exchanged && choices.multiCluster === 'None') await checkNobodyExchanges(host);
  const edited = await editedConfiguration(host, before, choices);
  if (edited !== undefined) terminal.note(EDITED);
  const whole = installation(choices, edited);
  const foreign = await kindsOfOthers(host, whole);
  for (const kind of foreign) terminal.note(`note: ${nameOf(kind)} is left as it is: somebody else brought it`);
  const objects = whole.filter((object) => !foreign.some((kind) => nameOf(kind) === nameOf(object)));
  const configurations = [markOf(shippedConfiguration(choices))];
  const next: Inventory = { version: programVersion(), choices, former: [], objects, configurations };
  // Remembered before it is applied, so that all of it can be taken away whatever happens.
  const namespaces = objects.filter(({ kind }) => kind === 'Namespace');
  await applyAll(host, namespaces, dryRun, terminal);
  if (dryRun === 'none') await apply(host, inventoryOf(begun(before, next)), dryRun);
  const kinds = objects.filter(({ kind }) => kind === 'CustomResourceDefinition');
  await applyAll(host, kinds, dryRun, terminal);
  if (dryRun === 'none') await untilServed(cli, host, kinds);
  await applyAll(
    host,
    objects.filter((object) => !kinds.includes(object) && !namespaces.includes(object)),
    dryRun,
    terminal,
  );
  const { goes, stays } = noLongerWanted(before?.objects ?? [], objects);
  for (const object of goes) {
    if (await takeAway(host, object, dryRun)) terminal.out(`${nameOf(object)} deleted${dryRunWords(dryRun)}\n`);
  }
  for (const kind of stays) terminal.note(whyItStays(kind));
  if (dryRun === 'none') await apply(host, inventoryOf({ ...next, objects: [...objects, ...stays] }), dryRun);
  if (dryRun === 'none' && flags.wait) {
    await untilReady(cli, host, choices, flags.timeout * 1000);
    terminal.out(`Spillway ${programVersion()} is ready; next: kubectl spillway join NAME --member-context CONTEXT\n`);
  }
  return EXIT.ok;
}

/** What nobody chose. */
async function usual(host: Viewer): Promise<Choices> {
  return { ...DEFAULT_CHOICES, admission: (await hasMutatingPolicies(host)) ? 'Policies' : 'Webhook' };
}

function withFlags(choices: Choices, flags: Flags): Choices {
  const { image, replicas, scheduler, admission, schedulerImage, hostIdentity, multiCluster } = flags;
  const given = { image, replicas, scheduler, admission, schedulerImage, hostIdentity, multiCluster };
  return { ...choices, ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) };
}

function isStock(image: string): boolean {
  return image === '' || image.startsWith(`${SCHEDULER_IMAGE}:`);
}

async function untilServed(cli: Cli, host: Viewer, kinds: readonly ManifestObject[]): Promise<void> {
  for (const { metadata } of kinds) {
    const look = async (): Promise<Look<true>> => {
      const { status } = await host.get<KubeObject & { status?: { conditions?: { type: string; status: string }[] } }>(
        CUSTOM_RESOURCE_DEFINITIONS,
        metadata,
      );
      const served = status?.conditions?.some((one) => one.type === 'Established' && one.status === 'True') === true;
      return served ? { value: true } : { waitingFor: `the API server to serve ${metadata.name}` };
    };
    await waitFor(cli.terminal, 'the kinds of Spillway are served', 30_000, look, 'see kubectl describe crd');
  }
}

async function untilReady(cli: Cli, host: Viewer, choices: Choices, timeoutMs: number): Promise<void> {
  const names = choices.scheduler === 'Second' ? [MANAGER, SECOND_SCHEDULER] : [MANAGER];
  const until = performance.now() + timeoutMs;
  for (const name of names) {
    const fix = `see kubectl describe pods -n ${SYSTEM_NAMESPACE}; what is applied stays, and this command can be repeated`;
    const left = Math.max(0, until - performance.now());
    await waitFor(
      cli.terminal,
      `${name} is ready`,
      left,
      async () => await rolledOut(host, SYSTEM_NAMESPACE, name),
      fix,
    );
  }
}

function count(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1 || value > 100)
    throw new InvalidArgumentError('must be a whole number, 1 to 100');
  return value;
}
