import { LOCAL } from '../api/cluster-tiers.ts';
import type { OwnScoring, Scoring } from '../api/scoring.ts';
import type { Candidate, Rooms } from './candidates.ts';
import type { Signals } from './signals.ts';

/** What a score looks at of a cluster. */
export type Scored = Pick<Candidate, 'name' | 'cluster' | 'inUse'>;

export interface ScoreFacts {
  readonly scoring: Scoring;
  readonly rooms: Rooms;
  readonly signals: Signals;
  /** Region of the host, if known. */
  readonly homeRegion: string | undefined;
}

/** What is neither good nor bad, because nobody knows it. */
const UNKNOWN = 50;

/**
 * How good each candidate is, with two decimals: the weighted mean of its parts, each from 0 to 100. A cluster with pods of
 * the workload has `hysteresis` points more, so it stays ahead of every other that is better by less.
 */
export function scoreCandidates(candidates: readonly Scored[], facts: ScoreFacts): Map<string, number> {
  const { weights, hysteresis } = facts.scoring;
  const priceOf = priceScores(candidates);
  const roomOf = roomScores(candidates, facts.rooms);
  const total = weights.signals.reduce(
    (sum, { weight }) => sum + weight,
    weights.locality + weights.freeRoom + weights.price + weights.images,
  );
  const scores = new Map<string, number>();
  for (const candidate of candidates) {
    let sum =
      weights.locality * locality(candidate, facts.homeRegion) +
      weights.freeRoom * roomOf(candidate) +
      weights.price * priceOf(candidate) +
      weights.images * (facts.rooms.get(candidate.name)?.images ?? UNKNOWN);
    for (const { name, weight } of weights.signals) sum += weight * signal(candidate, name, facts);
    const mean = total === 0 ? 0 : sum / total;
    scores.set(candidate.name, Math.round((mean + (candidate.inUse ? hysteresis : 0)) * 100) / 100);
  }
  return scores;
}

/** What the configuration says, with what a policy says over it. */
export function scoringOf(configured: Scoring, own: OwnScoring | undefined): Scoring {
  const { hysteresis = configured.hysteresis } = own ?? {};
  return { weights: { ...configured.weights, ...own?.weights }, hysteresis };
}

function locality({ name, cluster }: Scored, homeRegion: string | undefined): number {
  if (name === LOCAL) return 100;
  return homeRegion !== undefined && cluster.region === homeRegion ? 50 : 0;
}

/** 100 for the most room; not known is neither good nor bad. */
function roomScores(candidates: readonly Scored[], rooms: ScoreFacts['rooms']): (candidate: Scored) => number {
  const fits = ({ name }: Scored): number | undefined => rooms.get(name)?.fits;
  const most = Math.max(1, ...candidates.map((candidate) => fits(candidate) ?? 0));
  return (candidate) => {
    const own = fits(candidate);
    return own === undefined ? UNKNOWN : (100 * Math.max(0, own)) / most;
  };
}

/** 100 for the cheapest, 0 for the dearest. The host's own nodes are there anyway, so without a price they cost nothing. */
function priceScores(candidates: readonly Scored[]): (candidate: Scored) => number {
  const price = ({ name, cluster }: Scored): number | undefined => cluster.price ?? (name === LOCAL ? 0 : undefined);
  const known = candidates.map(price).filter((one) => one !== undefined);
  const [low, high] = [Math.min(...known), Math.max(...known)];
  return (candidate) => {
    const own = price(candidate);
    if (own === undefined) return 0;
    return high === low ? 100 : (100 * (high - own)) / (high - low);
  };
}

/** A cluster without the score counts as one with 0, which is in the middle. */
function signal({ name: cluster }: Scored, name: string, { signals }: ScoreFacts): number {
  const value = signals.get(name)?.get(cluster) ?? 0;
  return (Math.max(-100, Math.min(100, value)) + 100) / 2;
}
