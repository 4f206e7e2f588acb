import { Option, type Command } from 'commander';
import { HOST_LABEL, hostIdOf } from '../api/marks.ts';
import { MEMBER_CLUSTERS } from '../api/member-cluster.ts';
import { counted } from '../kube/counted.ts';
import { isNotFound } from '../kube/errors.ts';
import { NAMESPACES, PODS, type Resource } from '../kube/resource.ts';
import type { Cli } from './cli.ts';
import { CliError, isNotThere } from './cli-error.ts';
import { clusterUidOf } from './cluster-uid.ts';
import { EXIT, type ExitCode } from './exit-code.ts';
import { clusterFlags, dryRunFlag, seconds } from './flags.ts';
import { takeGrantAway } from './grant-removal.ts';
import { firstOf, ownRemains } from './host-marks.ts';
import { Leave, type Leaver, type LeaveFlags } from './leave-flow.ts';
import { refuseLetGo } from './let-go.ts';
import { memberFlags, namesMember, withMember } from './member-flags.ts';
import { removeCredentials, secretOf } from './member-credentials.ts';
import { withMembersThereAre } from './member-named.ts';
import type { Viewer } from './viewer.ts';

export function addLeave(program: Command, cli: Cli): void {
  const command = program
    .command('leave')
    .summary('take a member out, in order, to the end')
    .description(
      'Deletes the MemberCluster, which Spillway keeps until nothing of it is left there, and waits for that; at the end it says by name what may remain in ' +
        'the member, and ends with 5 if there is anything. Mode drain evicts the pods that run there, as kubectl drain does: budgets hold, and controllers make ' +
        'others elsewhere. Mode detach evicts none: they go on until they end or somebody deletes them, and are never left behind. Mode force is for a member ' +
        'that is gone for good: once it has not answered for 5 minutes without a break, its nodes and pods here are given up. The Secret that join made goes, too, and with --member-context all that join brought the member, when no other host ' +
        'uses it; where rights stay there for others it ends with 5 and says for whom. It can be repeated: it goes on where it was.',
    )
    .argument('<cluster>', 'the member')
    .addOption(
      new Option('--mode <mode>', 'what becomes of its pods: drain, detach or force')
        .choices(['drain', 'detach', 'force'])
        .default('drain'),
    )
    .option('--force', 'with drain: evict pods without a controller, too, which nobody makes anew')
    .option('--delete-emptydir-data', 'with drain: evict pods with emptyDir volumes, too, whose content is lost')
    .option('--no-wait', 'do not wait until it has left, and evict nothing')
    .option('--timeout <seconds>', 'wait no longer; the member goes on leaving (default: for ever)', seconds);
  dryRunFlag(clusterFlags(memberFlags(command))).action(
    async (name: string, flags: LeaveFlags) =>
      await cli.withHost(flags, async (host) =>
        namesMember(flags)
          ? await withMember(cli, flags, async (member) => await leaveAndRevoke(cli, { name, host, member, flags }))
          : await leave(cli, host, name, flags),
      ),
  );
}

async function leave(cli: Cli, host: Viewer, name: string, flags: LeaveFlags): Promise<ExitCode> {
  let member: Leaver;
  try {
    member = await host.get<Leaver>(MEMBER_CLUSTERS, { name });
  } catch (error) {
    // It may have left since an earlier run, which did not wait for that.
    const isGone = isNotThere(error) && isNotFound(error.cause);
    if (!isGone || !(await removeCredentialsOfGone(cli, host, name, flags)))
      throw (await withMembersThereAre(host, name, error)) ?? error;
    noteAccount(cli, name, flags);
    return EXIT.ok;
  }
  const code = await new Leave(cli, host, member, flags).run();
  if (!flags.wait) return code;
  await removeCredentials(cli.terminal, host, member, flags.dryRun);
  if (!namesMember(flags)) noteAccount(cli, name, flags);
  return code;
}

async function removeCredentialsOfGone(cli: Cli, host: Viewer, name: string, flags: LeaveFlags): Promise<boolean> {
  const gone = { metadata: { name }, spec: { credentials: { secretRef: secretOf(name) } } };
  return await removeCredentials(cli.terminal, host, gone, flags.dryRun, async () => {
    await refuseLetGo(host, gone);
  });
}

function noteAccount({ terminal }: Cli, name: string, { dryRun }: LeaveFlags): void {
  if (dryRun !== 'none') return;
  terminal.note(
    `note: the account that it had in the member is still there; kubectl spillway leave ${name} --member-context CONTEXT takes it away`,
  );
}

/** A MemberCluster that has left already is no obstacle: then only what was granted in the member is left to do. */
async function leaveAndRevoke(
  cli: Cli,
  { name, host, member, flags }: { name: string; host: Viewer; member: Viewer; flags: LeaveFlags },
): Promise<ExitCode> {
  const { terminal } = cli;
  if (!flags.wait || flags.mode === 'force') {
    const flag = flags.wait ? '--mode=force' : '--no-wait';
    throw new CliError(`--member-context and ${flag} exclude each other`, {
      exitCode: EXIT.usage,
      reason: 'rights are taken away in the member once it has left',
      fix: `run it with ${flag} first, and again with --member-context once the member has left and answers`,
    });
  }
  const [hostUid, memberUid] = await Promise.all([clusterUidOf(host), clusterUidOf(member)]);
  const known = await host.list<Leaver>(MEMBER_CLUSTERS);
  const leaver = known.find(({ metadata }) => metadata.name === name);
  const identity = leaver?.status?.identity;
  if (identity !== undefined && identity !== memberUid) {
    throw new CliError(`the cluster of context ${member.context} is not member ${name}`, {
      exitCode: EXIT.usage,
      reason: `that one has the identity ${identity}, this one ${memberUid}`,
      fix: 'name another --member-context',
    });
  }
  let code: ExitCode = EXIT.ok;
  if (leaver === undefined) await removeCredentialsOfGone(cli, host, name, flags);
  else code = await leave(cli, host, name, flags);
  const stays = await whyRightsStay({ host, member, memberUid, hostId: hostIdOf(hostUid), leaver, flags });
  if (stays !== undefined) {
    terminal.note(`note: rights stay in the member, as ${stays.why}`);
    return stays.isFinding ? EXIT.findings : code;
  }
  const granted = await takeGrantAway(member, hostIdOf(hostUid), flags.dryRun, terminal);
  return granted === EXIT.ok ? code : granted;
}

/** A member may have left for days: so it is what both clusters say now. Throws CliError where the member is another cluster by now. */
async function whyRightsStay(o: {
  host: Viewer;
  member: Viewer;
  memberUid: string;
  hostId: string;
  leaver: Leaver | undefined;
  flags: LeaveFlags;
}): Promise<{ why: string; isFinding: boolean } | undefined> {
  const { host, member, memberUid, hostId, leaver, flags } = o;
  if ((await clusterUidOf(member)) !== memberUid) {
    throw new CliError(`nothing was taken away in the cluster of context ${member.context}`, {
      reason: 'another cluster answers by now than when this began',
      fix: 'name the context of the one that left, and run it again',
    });
  }
  const users = (await host.list<Leaver>(MEMBER_CLUSTERS)).filter(
    ({ metadata, status }) => metadata.uid !== leaver?.metadata.uid && (status?.identity ?? memberUid) === memberUid,
  );
  if (users.length > 0) {
    const names = users.map(({ metadata }) => metadata.name).join(', ');
    return { why: `it is, or may be, also: ${names}`, isFinding: false };
  }
  const remains = await ownRemains(member, hostId, kindsThatGoFirst(leaver, flags));
  if (remains.length === 0) return undefined;
  const where =
    (flags.memberKubeconfig === undefined ? '' : ` --member-kubeconfig ${flags.memberKubeconfig}`) +
    (flags.memberContext === undefined ? '' : ` --member-context ${flags.memberContext}`);
  const why =
    `${counted(remains.length, 'object')} of this cluster ${remains.length === 1 ? 'is' : 'are'} still there: ${firstOf(remains)}. ` +
    `First kubectl spillway orphans${where} --delete, or join it again, then this once more; of a namespace that is to stay take off the mark there: kubectl label namespace NAME ${HOST_LABEL}-`;
  return { why, isFinding: true };
}

/** A member that leaves in order says itself which namespaces stay, and why. Before it does, as in a dry run, its pods are there. */
function kindsThatGoFirst(leaver: Leaver | undefined, { dryRun }: LeaveFlags): readonly Resource[] {
  if (leaver === undefined) return [PODS, NAMESPACES];
  return dryRun === 'none' ? [PODS] : [];
}
