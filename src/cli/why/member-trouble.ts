import type { MemberCluster } from '../../api/member-cluster.ts';
import type { Advice } from './explanation.ts';

/** Why a member cannot be reached, and whether that ends without anybody. */
export interface MemberTrouble extends Advice {
  says: string;
  /** Somebody has to do something. */
  stays: boolean;
}

/** Reasons of condition Reachable that do not pass by themselves: what helps. */
const REACHED_IN_VAIN: ReadonlyMap<string, string> = new Map([
  [
    'TLSVerifyFailed',
    'see who answers at the address in the kubeconfig of the member, and whether its CA is still the one in there',
  ],
  ['NotAKubernetesAPI', 'correct the address in the kubeconfig of the member'],
  ['Forbidden', 'apply manifests/member in the member: the credentials lack a right'],
]);

/** Undefined: it is reachable, or nobody has said otherwise. */
export function memberTrouble(member: MemberCluster | undefined): MemberTrouble | undefined {
  const conditions = member?.status?.conditions ?? [];
  const credentials = conditions.find(({ type, status }) => type === 'CredentialsValid' && status === 'False');
  const lost = conditions.find(({ type, status }) => type === 'Reachable' && status === 'False');
  if (member === undefined) return undefined;
  if (credentials !== undefined) {
    const { namespace, name } = member.spec.credentials.secretRef;
    return {
      says: `its credentials are of no use (${credentials.reason}): ${credentials.message}`,
      stays: true,
      help: `put a kubeconfig that works into Secret ${namespace}/${name}, or repeat kubectl spillway join: all goes on by itself then`,
      page: 'reference/events.md#memberclusters',
    };
  }
  if (lost === undefined) return undefined;
  const help = REACHED_IN_VAIN.get(lost.reason);
  return {
    says: `it cannot be reached: ${lost.message}`,
    stays: help !== undefined,
    ...(help === undefined
      ? {
          help: `see kubectl spillway clusters ${member.metadata.name}: all goes on by itself when it answers again`,
          page: 'concepts/failover.md',
        }
      : { help, page: 'reference/events.md#memberclusters' }),
  };
}
