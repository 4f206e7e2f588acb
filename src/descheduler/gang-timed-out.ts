import { isFinished } from '../api/pod-phase.ts';
import type { Pod } from '../kube/core-v1.ts';
import { clusterInWords } from '../api/cluster.ts';
import type { WantedMove } from './wanted-move.ts';

/**
 * Move of a pod whose gang did not get all of its nodes in time. It is evicted even if no other place takes the gang, as the
 * capacity it holds is useless to it. For the same reason the limit of moves within an hour does not hold it, though it counts there.
 * `isStillToGo` is asked with the live pod right before the eviction.
 */
export function gangMove(pod: Pod, at: string, isStillToGo: (live: Pod) => boolean): WantedMove {
  return {
    strategy: 'GangTimedOut',
    pod,
    from: at,
    recheck: (live) => (isFinished(live) || !isStillToGo(live) ? 'notWanted' : undefined),
    leavesAnyway: true,
    cause: `not all pods of its gang got a node in ${clusterInWords(at)} in time`,
    outcome: 'and the gang is placed anew',
    stays: `not all pods of its gang got a node in ${clusterInWords(at)} in time; what it has it keeps for now`,
  };
}
