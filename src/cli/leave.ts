import { Option, type Command } from 'commander';
import { HOST_LABEL, hostIdOf } from '../api/marks.ts';
import { MEMBER_CLUSTERS } from '../api/member-cluster.ts';
import { counted } from '../kube/counted.ts';
import { isNotFound } from '../kube/errors.ts';
import type { Cli } from './cli.ts';
import { CliError } from './cli-error.ts';
import { clusterUidOf } from './cluster-uid.ts';
import { EXIT, type ExitCode } from './exit-code.ts';
import { clusterFlags, dryRunFlag, seconds } from './flags.ts';
import { takeGrantAway } from './grant-removal.ts';
import { firstOf, ownRemains } from './host-marks.ts';
import { Leave, type Leaver, type LeaveFlags } from './leave-flow.ts';
import { memberFlags, namesMember, withMember } from './member-flags.ts';
import { removeCredentials, secretOf } from './member-credentials.ts';
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
    const isGone = error instanceof CliError && error.exitCode === EXIT.notFound && isNotFound(error.cause);
    if (!isGone || !(await removeCredentialsOfGone(cli, host, name, flags))) throw error;
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
  return await removeCredentials(cli.terminal, host, gone, flags.dryRun);
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
  const users = known.filter((one) => one !== leaver && (one.status?.identity ?? memberUid) === memberUid);
  if (users.length > 0) {
    const names = users.map(({ metadata }) => metadata.name).join(', ');
    terminal.note(`note: rights stay in the member, as it is, or may be, also: ${names}`);
    return code;
  }
  const hostId = hostIdOf(hostUid);
  // After --mode=force: a member that leaves in order says itself what stays, and why.
  const remains = leaver === undefined ? await ownRemains(member, hostId) : [];
  if (remains.length > 0) {
    const where =
      (flags.memberKubeconfig === undefined ? '' : ` --member-kubeconfig ${flags.memberKubeconfig}`) +
      (flags.memberContext === undefined ? '' : ` --member-context ${flags.memberContext}`);
    terminal.note(
      `note: rights stay in the member, as ${counted(remains.length, 'object')} of this cluster ${remains.length === 1 ? 'is' : 'are'} still there: ${firstOf(remains)}. ` +
        `First kubectl spillway orphans${where} --delete, or join it again, then this once more; of a namespace that is to stay take off the mark there: kubectl label namespace NAME ${HOST_LABEL}-`,
    );
    return EXIT.findings;
  }
  const granted = await takeGrantAway(member, hostId, flags.dryRun, terminal);
  return granted === EXIT.ok ? code : granted;
}
