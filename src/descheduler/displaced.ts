import type { Pod } from '../kube/core-v1.ts';
import type { BetterPlace } from '../placement/better-place.ts';
import { clusterInWords } from '../api/cluster.ts';
import { durationInWords } from '../placement/duration.ts';
import type { WantedMove } from './wanted-move.ts';

/** A pod that would be elsewhere if it came now, for so long already. */
export function displacedMove(
  pod: Pod,
  from: string,
  { strategy, cluster, why }: BetterPlace,
  forMs: number,
  recheck: WantedMove['recheck'],
): WantedMove {
  const there = `${clusterInWords(cluster)} would take it for ${durationInWords(forMs)} now`;
  const cause = `it is in ${clusterInWords(from)} (${why}), and ${there}`;
  return {
    strategy,
    pod,
    from,
    recheck,
    cause,
    outcome: 'which goes where the rules want it first',
    stays: `it is in ${clusterInWords(from)}, and would be in ${clusterInWords(cluster)} if it came now; it stays`,
  };
}
