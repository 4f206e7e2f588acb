import type { Pod } from '../kube/core-v1.ts';
import type { BetterPlace, Displacement } from '../placement/better-place.ts';
import { clusterInWords } from '../api/cluster.ts';
import { durationInWords } from '../placement/duration.ts';
import type { WantedMove } from './wanted-move.ts';

const REASONS = {
  Repatriate: ['PodRepatriated', 'PodNotRepatriated'],
  DivisionDrift: ['PodRedivided', 'PodNotRedivided'],
  SpreadViolation: ['PodSpread', 'PodNotSpread'],
  PolicyChanged: ['PodMovedByPolicy', 'PodNotMovedByPolicy'],
} as const satisfies Record<Displacement, readonly [string, string]>;

/** A pod that would be elsewhere if it came now, for so long already. */
export function displacedMove(
  pod: Pod,
  from: string,
  { strategy, cluster, why }: BetterPlace,
  forMs: number,
  recheck: WantedMove['recheck'],
): WantedMove {
  const [reason, heldReason] = REASONS[strategy];
  const there = `${clusterInWords(cluster)} would take it for ${durationInWords(forMs)} now`;
  const cause = `it is in ${clusterInWords(from)} (${why}), and ${there}`;
  return {
    strategy,
    pod,
    from,
    recheck,
    reason,
    heldReason,
    cause,
    outcome: (controller) =>
      `it was evicted, so that ${controller} makes another one, which goes where the rules want it first`,
    stays: `it is in ${clusterInWords(from)}, and would be in ${clusterInWords(cluster)} if it came now; it stays`,
  };
}
