import { clusterInWords } from '../api/cluster.ts';
import type { Failover } from '../api/failover.ts';
import type { Displacement } from '../placement/better-place.ts';
import { durationInWords, parseDuration } from '../placement/duration.ts';
import type { DisplacedPod } from './displaced-pod.ts';
import type { WantedMove } from './wanted-move.ts';

/** An edit is seen by all replicas by then, and one that is taken back at once has moved nothing, in ms. */
const EAGER_AFTER_MS = 15_000;

/** How long a better place must have been there before pods move to it, in ms, by why it is better; what is not there moves nothing. */
export function displacedAfterMs(failover: Failover | undefined): ReadonlyMap<Displacement, number> {
  const { repatriate, divisionDrift, spreadViolation, activation } = failover ?? {};
  const found = new Map<Displacement, number>();
  if (repatriate !== undefined) found.set('Repatriate', parseDuration(repatriate.after));
  if (divisionDrift !== undefined) found.set('DivisionDrift', parseDuration(divisionDrift.after));
  if (spreadViolation !== undefined) found.set('SpreadViolation', parseDuration(spreadViolation.after));
  if (activation === 'Eager') found.set('PolicyChanged', EAGER_AFTER_MS);
  return found;
}

/** It would be elsewhere if it came now, for so long already. */
export function displacedMove(
  { pod, from, better: { strategy, cluster, why } }: DisplacedPod,
  forMs: number,
  recheck: WantedMove['recheck'],
): WantedMove {
  const there = `${clusterInWords(cluster)} would take it for ${durationInWords(forMs)} now`;
  return {
    strategy,
    pod,
    from,
    recheck,
    cause: `it is in ${clusterInWords(from)} (${why}), and ${there}`,
    outcome: 'which goes where the rules want it first',
    stays: `it is in ${clusterInWords(from)}, and would be in ${clusterInWords(cluster)} if it came now; it stays`,
  };
}

/** The same of a workload that somebody wants rebalanced. */
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
