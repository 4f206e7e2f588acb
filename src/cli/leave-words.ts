import type { MemberClusterStatus } from '../api/member-cluster-status.ts';
import { conditionOf } from '../kube/conditions.ts';

/** What keeps a MemberCluster that was deleted: the first sentence of its condition, which goes on with what helps. */
export function leavingWords(status: MemberClusterStatus | undefined): string {
  const said = conditionOf({ status }, 'Leaving');
  if (said === undefined)
    return 'a manager to look at what is left of it; kubectl spillway status says whether one works';
  const [first = ''] = said.message.split(/\.\s/);
  const { reason } = said;
  // These are about what the person can do alone.
  const whole = reason === 'MemberUnreachable' || / cannot be asked /.test(said.message);
  return `${reason}: ${whole ? said.message : `${first.replace(/\.$/, '')}.`}`;
}
