import { InvalidArgumentError, type Command } from 'commander';
import { hostIdOf } from '../api/marks.ts';
import { MEMBER_CLUSTERS } from '../api/member-cluster.ts';
import { proxyInWords } from '../kube/proxy.ts';
import { applyAll } from './apply.ts';
import { CliError } from './cli-error.ts';
import { clusterUidOf } from './cluster-uid.ts';
import type { Cli } from './cli.ts';
import { EXIT, type ExitCode } from './exit-code.ts';
import { clusterFlags, dryRunFlag, seconds, type DryRunFlags } from './flags.ts';
import { versionOf } from './host-version.ts';
import { memberCredentials, memberEndpoint, secretOf } from './member-credentials.ts';
import { grantRecords, recordOf, type GrantRecord } from './grant-record.ts';
import { joinedMember, type KnownMember } from './joined-member.ts';
import { labelsToKeep, stillLent, withLabels } from './lent-namespaces.ts';
import { untilMemberReady } from './member-ready.ts';
import { nameOf } from './known-kinds.ts';
import { grantedObjects, MEMBER_ACCOUNT, optionalGrants, type Grant } from './member-grant.ts';
import type { ManifestObject } from './manifests.ts';
import { memberFlags, withMember, type MemberFlags } from './member-flags.ts';
import { kindsOfOthers } from './multi-cluster-kinds.ts';
import { checkLimitsOfOwner } from './owner-limits.ts';
import { roomInWords } from './room-text.ts';
import type { ClusterFlags } from './viewer-access.ts';
import type { Viewer } from './viewer.ts';

interface Flags extends MemberFlags, DryRunFlags {
  server?: string;
  proxyUrl?: string;
  lend: string[];
  quota: Record<string, string>;
  networkPolicy?: boolean;
  nodeMetrics?: boolean;
  mirrorServices?: boolean;
  exchangeServices?: boolean;
  allowPrivileged?: boolean;
  timeout: number;
}

export function addJoin(program: Command, cli: Cli): void {
  const command = program
    .command('join')
    .summary('make another cluster a member of the cluster of the context')
    .description(
      'Gives the host an account of its own in the member, with the least rights; its short-lived token goes into a Secret of the host ' +
        'and is renewed by Spillway. Then makes the MemberCluster, and waits until its node is Ready. Can be repeated, as to renew credentials: ' +
        'rights that were granted stay without their flags, and so do namespaces that are lent and fields of the MemberCluster; --server and --proxy-url do not.',
    )
    .argument('<name>', 'of the member in the host, and of its virtual node');
  memberFlags(command)
    .option('--server <url>', 'where the manager reaches the member, if not at the address in the kubeconfig')
    .option(
      '--proxy-url <url>',
      'what makes the connections from the manager to the member, if not the proxy-url in the kubeconfig; none: nothing, they are straight',
    )
    .option(
      '--lend <namespace>',
      'let the host use this namespace of the member only; repeatable (default: those of an earlier join, else all: it is there for the host)',
      collect,
      [],
    )
    .option(
      '--quota <resource=amount>',
      'what pods of the host may use in each namespace that is lent; repeatable',
      collectQuota,
      {},
    )
    .option(
      '--network-policy',
      'in each namespace that is lent, let pods of hosts be reached by each other only; takes a network that enforces NetworkPolicies',
    )
    .option(
      '--node-metrics',
      'let the host ask the kubelets of the member what pods use; docs/reference/rights.md says what else that allows',
    )
    .option(
      '--mirror-services',
      'Services of the host stand in the member under their own names (spec.services.mode: Mirror), which takes rights on Services there',
    )
    .option(
      '--exchange-services',
      'the member takes part in the Multi-Cluster Services API (spec.services.multiCluster: Exchange), which takes its kinds and rights on Services there; the host needs install --multi-cluster Exchange',
    )
    .option(
      '--allow-privileged',
      'let namespaces that the host makes in the member allow privileged pods (spec.namespaces.podSecurity: privileged). Such a pod can do everything on the node that it runs on, and so can then whoever steals the credentials of the host',
    )
    .option('--timeout <seconds>', 'how long to wait until the node is Ready', seconds, 60);
  dryRunFlag(clusterFlags(command)).action(
    async (name: string, flags: Flags) =>
      await cli.withHost(
        flags,
        async (host) =>
          await withMember(
            cli,
            flags,
            async (member, ofMember) => await join(cli, { name, host, member, memberFlags: ofMember, flags }),
          ),
      ),
  );
}

interface Joining {
  name: string;
  host: Viewer;
  member: Viewer;
  memberFlags: ClusterFlags;
  flags: Flags;
}

async function join(cli: Cli, joining: Joining): Promise<ExitCode> {
  const { terminal } = cli;
  const { name, host, member, flags } = joining;
  const { dryRun } = flags;
  const hostUid = await clusterUidOf(host);
  const hostId = hostIdOf(hostUid);
  const known = await checkMember(cli, joining, hostUid);
  const before = (await grantRecords(member)).find((record) => record.hostId === hostId);
  const lend = await lendAsBefore(joining, known, before, hostId);
  checkFlags(lend, flags);
  const kept = await labelsToKeep(member, lend, hostId);
  const grant: Grant = {
    lend,
    nodeMetrics: flags.nodeMetrics ?? false,
    services: flags.mirrorServices ?? false,
    multiCluster: flags.exchangeServices ?? false,
    privileged: flags.allowPrivileged ?? false,
    quota: flags.quota,
    networkPolicy: flags.networkPolicy ?? false,
  };
  const wanted = grantedObjects(grant, hostId).map((object) => withLabels(object, kept));
  await checkLimitsOfOwner(member, wanted);
  const endpoint = await memberEndpoint(joining.memberFlags, member, flags, terminal);
  const through = endpoint.proxy === undefined ? '' : `through ${proxyInWords(endpoint.proxy)} `;
  terminal.note(`joining ${endpoint.server} ${through}as ${name}: rights in the member (context ${member.context})`);
  const secret = secretOf(name);
  // What is lent as before says nothing new of the MemberCluster.
  const joined = joinedMember(name, secret, { ...grant, lend: flags.lend }, known);
  const asBefore = [
    ...(flags.lend.length === 0 && lend.length > 0 ? [`--lend ${lend.join(', ')}`] : []),
    ...joined.kept,
  ];
  if (asBefore.length > 0) terminal.note(`note: as an earlier join was told: ${asBefore.join('; ')}`);
  if (grant.privileged) terminal.note(PRIVILEGED);
  const foreign = await kindsOfOthers(member, wanted);
  for (const kind of foreign) terminal.note(`note: ${nameOf(kind)} is left as it is: somebody else brought it`);
  const objects = wanted.filter((object) => !foreign.some((kind) => nameOf(kind) === nameOf(object)));
  const record = recordOf({
    hostId,
    member: name,
    lent: [...new Set([...(before?.lent ?? []), ...lend])],
    dedicated: lend.length === 0 || before?.dedicated === true,
    ...optionalGrants((one) => grant[one] || before?.[one] === true),
  });
  // Remembered before it is granted, so that all of it can be taken away whatever happens.
  const isHome = ({ kind, metadata }: ManifestObject): boolean =>
    kind === 'Namespace' && metadata.name === MEMBER_ACCOUNT.namespace;
  await applyAll(member, [...objects.filter(isHome), record], dryRun, terminal);
  await applyAll(
    member,
    objects.filter((object) => !isHome(object)),
    dryRun,
    terminal,
  );
  if (dryRun !== 'none') {
    terminal.out(`secret/${secret.name}, membercluster.spillway.dev/${name} would be applied in the host\n`);
    return EXIT.ok;
  }
  // One that is known was found to be that of this cluster.
  const isOfMember = known?.status?.identity !== undefined;
  const credentials = await memberCredentials({ host, member, secret, isOfMember, endpoint, terminal });
  terminal.note(`credentials and MemberCluster in the host (context ${host.context})`);
  await applyAll(host, [credentials, joined.object], dryRun, terminal);
  const { status } = await untilMemberReady(cli, host, { name, secret }, flags.timeout * 1000);
  terminal.out(`${name} is Ready: room for ${roomInWords(status?.allocatable)}\n`);
  return EXIT.ok;
}

/** What the host has of that name already. Throws CliError where the two cannot become host and member. */
async function checkMember(
  cli: Cli,
  { name, host, member }: Joining,
  hostUid: string,
): Promise<KnownMember | undefined> {
  await versionOf(member);
  const memberUid = await clusterUidOf(member);
  if (memberUid === hostUid) {
    throw new CliError('a cluster cannot be a member of itself', {
      reason: `contexts ${host.context} and ${member.context} lead to the same cluster`,
      fix: 'name another --member-context',
    });
  }
  const known = await host.list<KnownMember>(MEMBER_CLUSTERS);
  const same = known.find(({ metadata }) => metadata.name === name);
  if (same?.metadata.deletionTimestamp !== undefined) {
    throw new CliError(`MemberCluster ${name} is leaving`, {
      reason: `it was deleted at ${same.metadata.deletionTimestamp}, and goes once nothing of this cluster is left there: what is granted now may be taken away with the rest`,
      fix: `wait until it is gone, kubectl wait --for=delete --timeout=10m membercluster/${name}, then run it again`,
      page: 'guides/install.md#take-it-out-again',
    });
  }
  const pinned = same?.status?.identity;
  if (pinned !== undefined && pinned !== memberUid) {
    throw new CliError(`MemberCluster ${name} stands for another cluster`, {
      reason: `that one has the identity ${pinned}, this one ${memberUid}`,
      fix: 'join it under another name, or delete the MemberCluster of the former one first',
      page: 'concepts/virtual-nodes.md',
    });
  }
  const twin = known.find(({ metadata, status }) => metadata.name !== name && status?.identity === memberUid);
  if (twin !== undefined) {
    cli.terminal.note(`note: this cluster is a member already, as ${twin.metadata.name}; both will share its room`);
  }
  return same;
}

/** Namespaces to lend: without a word of them those of before, as nobody is granted a whole member by saying less. Throws CliError. */
async function lendAsBefore(
  { name, member, flags }: Joining,
  known: KnownMember | undefined,
  before: GrantRecord | undefined,
  hostId: string,
): Promise<readonly string[]> {
  if (flags.lend.length > 0 || known === undefined) return flags.lend;
  if (before === undefined || before.dedicated || before.lent.length === 0) return flags.lend;
  const lent = await stillLent(member, before.lent, hostId);
  if (lent.length > 0) return lent;
  throw new CliError('no namespace of the member is lent to the host any more, and nothing was done', {
    reason: `${name} was joined with --lend ${before.lent.join(', ')}, and without --lend those would be lent as before`,
    fix: 'name namespaces by --lend',
    page: 'guides/install.md#what-join-does',
  });
}

const PRIVILEGED =
  'note: namespaces that the host makes in the member may allow privileged pods, which can do everything on the nodes that they run on. ' +
  'So can whoever steals the credentials of the host. To take that back: kubectl delete clusterrolebinding spillway-privileged there';

function checkFlags(lend: readonly string[], { allowPrivileged = false, quota, networkPolicy = false }: Flags): void {
  if (lend.length === 0 && (Object.keys(quota).length > 0 || networkPolicy)) {
    throw new CliError('--quota and --network-policy are for namespaces that are lent', {
      exitCode: EXIT.usage,
      reason: 'none is, and in those that the host makes by itself they would have no effect',
      fix: 'name namespaces by --lend',
      page: 'guides/install.md#what-join-does',
    });
  }
  if (!allowPrivileged || lend.length === 0) return;
  throw new CliError('--lend and --allow-privileged exclude each other', {
    exitCode: EXIT.usage,
    reason:
      'the host makes no namespaces where some are lent to it, and those keep the Pod Security level that they have',
    fix: 'label the namespace in the member: kubectl label --overwrite namespace NAMESPACE pod-security.kubernetes.io/enforce=privileged',
    page: 'concepts/virtual-nodes.md#what-pods-may-do-to-nodes-of-a-member',
  });
}

function collect(text: string, before: string[]): string[] {
  if (!/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(text))
    throw new InvalidArgumentError('must be the name of a namespace');
  return [...before, text];
}

function collectQuota(text: string, before: Record<string, string>): Record<string, string> {
  const [, resource, amount] = /^([-a-z0-9./]+)=([0-9.]+[A-Za-z]{0,2})$/.exec(text) ?? [];
  if (resource === undefined || amount === undefined) throw new InvalidArgumentError('must be like requests.cpu=32');
  return { ...before, [resource]: amount };
}
