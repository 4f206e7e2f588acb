import { isAnswering } from '../api/unreachable.ts';
import type { Hold } from './hold.ts';

/** Reasons of condition `Reachable` that pass by themselves: the cluster, or the way to it, comes back. */
const PASSING = new Set(['Timeout', 'Refused', 'ConnectionReset', 'NameNotFound', 'Aborted']);

/** Why a new pod waits for its member, which is not reachable for that reason of condition `Reachable`; undefined: it is not known yet. */
export function memberUnreachable(member: string, because: string | undefined): Hold {
  const reason = 'MemberUnreachable';
  if (because === undefined || PASSING.has(because) || isAnswering(because)) {
    const what =
      because !== undefined && isAnswering(because) ? `does not answer as it should (${because})` : 'does not answer';
    return {
      reason,
      message: `Cluster "${member}" ${what}. The pod starts there as soon as it does; nothing needs to be done.`,
    };
  }
  if (because === 'ProxyFailed') {
    return {
      reason,
      message: `Cluster "${member}" cannot be reached through its proxy. The pod starts there as soon as it can; where that does not pass by itself, condition Reachable of MemberCluster "${member}" says what the proxy answers.`,
    };
  }
  return {
    reason,
    message: `Cluster "${member}" cannot be asked (${because}), which does not pass by itself. The pod starts there as soon as that is mended: condition Reachable of MemberCluster "${member}" says what is wrong.`,
  };
}
