import { isFinished } from '../api/pod-phase.ts';
import type { Pod } from '../kube/core-v1.ts';
import { clusterInWords } from '../placement/cluster.ts';
import type { WantedMove } from './wanted-move.ts';

/**
 * A pod of a gang that did not get all of its nodes in time. It goes whether another place takes the gang or not: what it holds
 * is of no use to it, and others may need it.
 */
export function gangMove(pod: Pod, at: string): WantedMove {
  return {
    strategy: 'GangTimedOut',
    pod,
    from: at,
    recheck: (live) => (isFinished(live) ? 'void' : undefined),
    leavesAnyway: true,
    reason: 'GangPodGivenBack',
    heldReason: 'GangPodHeld',
    cause: `not all pods of its gang got a node in ${clusterInWords(at)} in time`,
    outcome: (controller) => `it was evicted, so that ${controller} makes another one, and the gang is placed anew`,
    stays: `not all pods of its gang got a node in ${clusterInWords(at)} in time; what it has it keeps for now`,
  };
}
