import type { Command } from 'commander';
import type { Cli } from './cli.ts';
import { CliError } from './cli-error.ts';
import { EXIT } from './exit-code.ts';
import type { ClusterFlags } from './viewer-access.ts';
import { Viewer } from './viewer.ts';

/** Which cluster is the member, beside {@link ClusterFlags}, which say which is the host. */
export interface MemberFlags extends ClusterFlags {
  memberContext?: string;
  memberKubeconfig?: string;
}

export function memberFlags(command: Command): Command {
  return command
    .option('--member-context <name>', 'context of the member (default: the current one of --member-kubeconfig)')
    .option('--member-kubeconfig <file>', 'kubeconfig of the member, where it is another one');
}

export function namesMember({ memberContext, memberKubeconfig }: MemberFlags): boolean {
  return memberContext !== undefined || memberKubeconfig !== undefined;
}

/** Does the work with the member that the flags name. Throws CliError when they name none. */
export async function withMember<T>(
  cli: Cli,
  memberFlags: MemberFlags,
  work: (member: Viewer, flags: ClusterFlags) => Promise<T>,
): Promise<T> {
  const { kubeconfig, memberContext, memberKubeconfig } = memberFlags;
  if (!namesMember(memberFlags)) {
    throw new CliError('which cluster is the member?', { exitCode: EXIT.usage, fix: 'name its --member-context' });
  }
  const flags: ClusterFlags = { kubeconfig: memberKubeconfig ?? kubeconfig, context: memberContext };
  const member = await Viewer.connect(flags, cli.terminal);
  try {
    return await work(member, flags);
  } finally {
    await member.close();
  }
}
