import { clusterInWords } from '../api/cluster.ts';
import type { DisplacedPod } from './displaced-pod.ts';
import type { WantedMove } from './wanted-move.ts';

/** A pod that would be elsewhere if it came now, of a workload that somebody wants rebalanced. */
export function rebalanceMove(
  { pod, from, better: { cluster, why } }: DisplacedPod,
  rebalancer: string,
  asked: Pick<WantedMove, 'recheck' | 'isOrdered'>,
): WantedMove {
  return {
    strategy: 'Rebalance',
    pod,
    from,
    ...asked,
    cause: `WorkloadRebalancer ${rebalancer}: it is in ${clusterInWords(from)} (${why}), and ${clusterInWords(cluster)} would take it now`,
    outcome: 'which goes there',
    stays: `WorkloadRebalancer ${rebalancer}: it would be in ${clusterInWords(cluster)} if it came now, and stays in ${clusterInWords(from)}`,
  };
}
