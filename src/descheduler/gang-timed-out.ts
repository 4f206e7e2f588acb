import { isFinished } from '../api/pod-phase.ts';
import type { Pod } from '../kube/core-v1.ts';
import { clusterInWords } from '../placement/cluster.ts';
import type { WantedMove } from './wanted-move.ts';

/**
 * A pod of a gang that did not get all of its nodes in time. It goes whether another place takes the gang or not: what it holds
 * is of no use to it, and others may need it. `isStillToGo`: asked of the pod as it is right before.
 */
export function gangMove(pod: Pod, at: string, isStillToGo: (live: Pod) => boolean): WantedMove {
  return {
    strategy: 'GangTimedOut',
    pod,
    from: at,
    recheck: (live) => (isFinished(live) || !isStillToGo(live) ? 'void' : undefined),
    leavesAnyway: true,
    reason: 'GangPodGivenBack',
    heldReason: 'GangPodHeld',
    cause: `not all pods of its gang got a node in ${clusterInWords(at)} in time`,
    outcome: (controller) => `it was evicted, so that ${controller} makes another one, and the gang is placed anew`,
    stays: `not all pods of its gang got a node in ${clusterInWords(at)} in time; what it has it keeps for now`,
  };
}
