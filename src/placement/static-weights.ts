import type { Cluster } from '../api/cluster.ts';
import type { Division } from './compiled-placement.ts';

/** The weight of each cluster: that of its rule, else none; but all weigh the same where no rule matches any of them. */
export function staticWeights(
  division: Division & { kind: 'static' },
  clusters: readonly (Cluster | undefined)[],
): number[] {
  const weights = clusters.map((cluster) => (cluster === undefined ? undefined : division.weightOf(cluster)));
  const unlisted = weights.every((weight) => weight === undefined) ? 1 : 0;
  return weights.map((weight) => weight ?? unlisted);
}
