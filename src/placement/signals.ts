import type { PlacementScore } from '../api/placement-score.ts';

/** Scores from outside by their name, then by cluster, each from -100 to 100. */
export type Signals = ReadonlyMap<string, ReadonlyMap<string, number>>;

/** The scores that count at one time, and when (in ms) the first of them ends; never: infinity. */
export interface SignalsNow {
  readonly signals: Signals;
  readonly until: number;
}

/** Of several objects that score one cluster under one name the first in the alphabet counts. `now` in ms. */
export function signalsAt(objects: Iterable<PlacementScore>, now: number): SignalsNow {
  const signals = new Map<string, Map<string, number>>();
  let until = Number.POSITIVE_INFINITY;
  for (const { spec } of [...objects].toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))) {
    const end = spec.validUntil === undefined ? Number.POSITIVE_INFINITY : Date.parse(spec.validUntil);
    if (end <= now) continue;
    until = Math.min(until, end);
    for (const { name, value } of spec.scores) {
      const byCluster = signals.get(name) ?? new Map<string, number>();
      signals.set(name, byCluster);
      if (!byCluster.has(spec.clusterName)) byCluster.set(spec.clusterName, value);
    }
  }
  return { signals, until };
}
