import type { Pod } from '../kube/core-v1.ts';
import { clusterInWords } from '../api/cluster.ts';
import type { PodRefusal } from '../placement/placed-pods.ts';
import type { WantedMove } from './wanted-move.ts';

/** Move of a pod that has been Pending in its member for too long. */
export function unschedulableMove(
  pod: Pod,
  { cluster, message }: Pick<PodRefusal, 'cluster' | 'message'>,
  recheck: WantedMove['recheck'],
): WantedMove {
  return {
    strategy: 'UnschedulableInMember',
    pod,
    from: cluster,
    recheck,
    cause: `${clusterInWords(cluster)} has had no node for it for too long, and it never started there`,
    outcome: `which goes elsewhere: ${cluster} is avoided for a while. The member's scheduler said: ${message}`,
    stays: `it waits in ${clusterInWords(cluster)}, which has no node for it, and starts there once there is one`,
  };
}
