import type { Command } from 'commander';
import { HOST_LABEL, hostIdOf } from '../api/marks.ts';
import { MEMBER_CLUSTERS, type MemberCluster } from '../api/member-cluster.ts';
import { UNCOUNTED } from '../api/invariants.ts';
import { cleanText } from '../kube/clean-text.ts';
import { counted } from '../kube/counted.ts';
import { type MemberVolume, readMemberVolume } from '../api/member-volume.ts';
import type { PersistentVolume } from '../kube/volumes.ts';
import type { Pod } from '../kube/core-v1.ts';
import { ApiError, isConflict, isNotFound } from '../kube/errors.ts';
import { SERVICE_IMPORTS } from '../kube/multicluster-v1.ts';
import type { KubeObject } from '../kube/object.ts';
import { NAMESPACES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, type Resource } from '../kube/resource.ts';
import { pause } from '../kube/timers.ts';
import { remove } from '../kube/verbs.ts';
import { NamespaceRemoval } from '../members/leaving/namespace-removal.ts';
import { ageSince } from './age.ts';
import type { Cli } from './cli.ts';
import { CliError } from './cli-error.ts';
import { clusterUidOf } from './cluster-uid.ts';
import { EXIT, type ExitCode } from './exit-code.ts';
import {
  clusterFlags,
  dryRunFlag,
  dryRunOption,
  dryRunWords,
  outputFlags,
  seconds,
  type DryRun,
  type DryRunFlags,
  type OutputFlags,
} from './flags.ts';
import { memberFlags, withMember, type MemberFlags } from './member-flags.ts';
import { MADE_THERE, type Orphan, orphanOf } from './orphans/orphan.ts';
import { listed } from './output.ts';
import type { Terminal } from './terminal.ts';
import { inWords, MissingRight, type Viewer } from './viewer.ts';

const isNotServed = (error: unknown): boolean =>
  error instanceof CliError && error.cause instanceof ApiError && error.cause.code === 404;

interface Flags extends MemberFlags, OutputFlags, DryRunFlags {
  delete?: boolean;
  deleteClaims?: boolean;
  /** In s. */
  timeout: number;
}

type KnownMember = KubeObject & Pick<MemberCluster, 'status'>;

/** Between two looks at pods that are ending, in ms. */
const LOOK_MS = 1_000;
const LONGEST_LINE = 2_000;
const PAGE = 'concepts/leaving.md';

export function addOrphans(program: Command, cli: Cli): void {
  const command = program
    .command('orphans')
    .summary('what is left of this cluster in another one that is no member any more')
    .description(
      'Lists what has the mark of this cluster in another one and nothing here that it is for: of a cluster that is no member any more all of it, such as ' +
        'after leave --mode=force of one that has come back; of a member the pods whose pods here are gone. Ends with 5 if there is any. With --delete it is ' +
        'deleted, but of no cluster that is a member, or may be: there the manager does that, in order. Claims, and so the data in them, stay without ' +
        '--delete-claims, and with it as long as a volume of this cluster stands for them; a namespace stays as long as anything is in it.',
    )
    .option('--delete', 'delete what is left')
    .option('--delete-claims', 'with --delete: PersistentVolumeClaims, too, whose data is lost')
    .option('--timeout <seconds>', 'with --delete: how long to wait for the ends of pods', seconds, 120);
  dryRunFlag(outputFlags(clusterFlags(memberFlags(command)))).action(
    async (flags: Flags) =>
      await cli.withHost(
        flags,
        async (host) => await withMember(cli, flags, async (member) => await orphans(cli, host, member, flags)),
      ),
  );
}

async function orphans(cli: Cli, host: Viewer, member: Viewer, flags: Flags): Promise<ExitCode> {
  const { terminal } = cli;
  const [hostUid, memberUid] = await Promise.all([clusterUidOf(host), clusterUidOf(member)]);
  if (hostUid === memberUid) {
    throw new CliError('a cluster is no member of itself', {
      exitCode: EXIT.usage,
      reason: `contexts ${host.context} and ${member.context} lead to the same cluster`,
      fix: 'name another --member-context',
    });
  }
  const hostId = hostIdOf(hostUid);
  // What is there was there before anything of the host is read: what is made meanwhile has its object in the host.
  const found: { resource: Resource; objects: KubeObject[] }[] = [];
  for (const resource of MADE_THERE) {
    const objects = await member
      .tryList(resource, { labelSelector: `${HOST_LABEL}=${hostId}` })
      .catch((error: unknown) => {
        // Not every cluster has the kinds of others.
        if (resource === SERVICE_IMPORTS && isNotServed(error)) return [];
        throw error;
      });
    if (objects instanceof MissingRight)
      terminal.note(
        `note: there may be more, as you may not ${objects.right} in the cluster of context ${member.context}`,
      );
    else found.push({ resource, objects });
  }
  const known = await host.list<KnownMember>(MEMBER_CLUSTERS);
  const members = known.filter(({ status }) => status?.identity === memberUid).map(({ metadata }) => metadata.name);
  const pods = await host.list<Pod>(PODS);
  const podUids = new Set(pods.map(({ metadata }) => metadata.uid ?? ''));
  const volumes = await volumesOf(host, memberUid);
  const left = found.flatMap(({ resource, objects }) =>
    objects.flatMap((object) => {
      const orphan = orphanOf(resource, object, { members, podUids, volumes });
      return orphan === undefined ? [] : [{ resource, orphan }];
    }),
  );
  if (flags.delete !== true) {
    terminal.out(
      listing(
        left.map(({ orphan }) => orphan),
        flags,
        terminal.now(),
      ),
    );
    if (left.length === 0) terminal.note('Nothing of this cluster is left there.');
    return left.length === 0 ? EXIT.ok : EXIT.findings;
  }
  refuseMembers(member.context, members, known);
  refuseNeeded(left.filter(({ resource, orphan }) => resource === PODS && orphan.needed).length);
  return await deleteAll(cli, member, left, hostId, flags);
}

/**
 * Volumes of the host that stand for data in the cluster with that UID; undefined where they may not be read. All are: their labels can be
 * taken off, what they stand for cannot be changed. Throws CliError.
 */
async function volumesOf(host: Viewer, identity: string): Promise<MemberVolume[] | undefined> {
  const all = await host.tryList<PersistentVolume>(PERSISTENT_VOLUMES);
  if (all instanceof MissingRight) return undefined;
  return all.flatMap((one) => readMemberVolume(one) ?? []).filter((volume) => volume.identity === identity);
}

function listing(items: readonly Orphan[], { output, headers }: OutputFlags, now: number): string {
  const columns = [
    { name: 'KIND', text: ({ kind }: Orphan) => kind },
    { name: 'NAMESPACE', text: ({ namespace }: Orphan) => namespace ?? undefined },
    { name: 'NAME', text: ({ name }: Orphan) => name },
    { name: 'AGE', text: ({ since }: Orphan) => ageSince(since ?? undefined, now) },
    { name: 'OF', text: ({ of }: Orphan) => of ?? undefined },
    { name: 'WHY', text: ({ why }: Orphan) => why, wide: true },
  ];
  if (items.length === 0 && (output === 'table' || output === 'wide')) return '';
  return listed({ kind: 'Orphan', items, columns, name: nameOf }, output, headers);
}

/** Whoever acts for a member deletes with more evidence than a look from outside can have. */
function refuseMembers(context: string, members: readonly string[], known: readonly KnownMember[]): void {
  const [one] = members;
  if (one !== undefined) {
    throw new CliError(`the cluster of context ${context} is member ${one}`, {
      reason:
        'its manager deletes what is not needed any more, and keeps what it is not sure of until somebody confirms it',
      fix: `kubectl spillway status shows what is kept and how to confirm it; kubectl spillway leave ${one} takes the member out`,
      page: PAGE,
    });
  }
  const unknown = known.filter(({ status }) => status?.identity === undefined).map(({ metadata }) => metadata.name);
  if (unknown.length === 0) return;
  throw new CliError(`the cluster of context ${context} may be a member`, {
    reason: `it is not known yet for which clusters these MemberClusters stand: ${unknown.join(', ')}`,
    fix: 'wait until they were reached once, or delete them',
    page: PAGE,
  });
}

/** Whoever took the member out by mistake can still have its pods back. */
function refuseNeeded(count: number): void {
  if (count === 0) return;
  throw new CliError(`${counted(count, 'pod')} of this cluster would be lost`, {
    reason: 'their copies run there, though no MemberCluster stands for that cluster',
    fix: 'kubectl spillway join makes it a member again, and they go on; or delete these pods here first',
    page: PAGE,
  });
}

/** Returns with `findings` when anything stays. */
async function deleteAll(
  { terminal }: Cli,
  member: Viewer,
  left: readonly { resource: Resource; orphan: Orphan }[],
  hostId: string,
  { deleteClaims, dryRun, timeout }: Flags,
): Promise<ExitCode> {
  let stays = 0;
  /** Names of namespaces in which something does. */
  const kept = new Set<string>();
  const stay = (orphan: Orphan, why: string): void => {
    stays += 1;
    if (orphan.namespace !== null) kept.add(orphan.namespace);
    terminal.out(`${told(orphan)} stays: ${why}\n`);
  };
  const pods = new Map<string, Orphan>();
  for (const { resource, orphan } of left) {
    if (resource === NAMESPACES) continue;
    if (orphan.needed) {
      stay(orphan, orphan.why);
      continue;
    }
    if (resource === PERSISTENT_VOLUME_CLAIMS && deleteClaims !== true) {
      stay(orphan, 'its data would be lost; --delete-claims deletes it');
      continue;
    }
    if (dryRun !== 'client') await deleteOne(member, resource, orphan, dryRun);
    terminal.out(`${told(orphan)} deleted${dryRunWords(dryRun)}\n`);
    if (resource === PODS) pods.set(orphan.uid, orphan);
  }
  if (dryRun !== 'none') {
    for (const { resource, orphan } of left) {
      if (resource !== NAMESPACES) continue;
      if (kept.has(orphan.name)) stay(orphan, 'what stays is in it');
      else terminal.out(`${told(orphan)} deleted if nothing else is in it${dryRunWords(dryRun)}\n`);
    }
    return stays === 0 ? EXIT.ok : EXIT.findings;
  }
  for (const uid of await untilGone(terminal, member, pods, { hostId, timeoutMs: timeout * 1_000 })) {
    const orphan = pods.get(uid);
    if (orphan !== undefined) stay(orphan, `it has not ended within ${String(timeout)} s`);
  }
  const removal = new NamespaceRemoval({ client: member.client, hostId, invariants: UNCOUNTED });
  for (const { resource, orphan } of left) {
    if (resource !== NAMESPACES) continue;
    const why = await member.ask(
      'delete namespaces',
      async (signal) => await removal.removeIfEmpty(orphan.name, signal),
    );
    if (why === undefined) terminal.out(`${told(orphan)} deleted\n`);
    else stay(orphan, cleanText(`it ${why}`, LONGEST_LINE));
  }
  return stays === 0 ? EXIT.ok : EXIT.findings;
}

/** It is this very object, or gone. */
async function deleteOne(
  member: Viewer,
  resource: Resource,
  { namespace, name, uid }: Orphan,
  dryRun: DryRun,
): Promise<void> {
  const ref = namespace === null ? { name } : { namespace, name };
  await member.ask(`delete ${inWords(resource)}`, async (signal) => {
    try {
      await remove(member.client, resource, ref, { uid }, { signal, ...dryRunOption(dryRun) });
    } catch (error) {
      if (!isNotFound(error) && !isConflict(error)) throw error;
    }
  });
}

/** Answers the UIDs of those that are still there. */
async function untilGone(
  terminal: Terminal,
  member: Viewer,
  uids: Pick<ReadonlyMap<string, unknown>, 'has' | 'size'>,
  { hostId, timeoutMs }: { hostId: string; timeoutMs: number },
): Promise<string[]> {
  const until = performance.now() + timeoutMs;
  let said = 0;
  while (uids.size > 0) {
    const pods = await member.list<Pod>(PODS, { labelSelector: `${HOST_LABEL}=${hostId}` });
    const there = pods.map(({ metadata }) => metadata.uid ?? '').filter((uid) => uids.has(uid));
    const count = there.length;
    if (count === 0 || performance.now() >= until) return there;
    if (count !== said) terminal.note(`waiting: for the ${count === 1 ? 'end' : 'ends'} of ${counted(count, 'pod')}`);
    said = count;
    await pause(LOOK_MS, terminal.signal);
  }
  return [];
}

function told(orphan: Orphan): string {
  const { namespace } = orphan;
  return namespace === null ? nameOf(orphan) : cleanText(`${nameOf(orphan)} of namespace ${namespace}`, LONGEST_LINE);
}

function nameOf({ kind, name }: Orphan): string {
  return cleanText(`${kind.toLowerCase()}/${name}`, LONGEST_LINE);
}
