import type { ScoreWeights } from '../api/placement.ts';
import { LOCAL } from '../api/cluster-tiers.ts';
import type { Candidate, Room } from './candidates.ts';

/** Scores from outside by their name, then by cluster, each from -100 to 100. */
export type Signals = ReadonlyMap<string, ReadonlyMap<string, number>>;

export interface ScoreFacts {
  readonly weights: ScoreWeights;
  /** Points that a cluster with pods of the workload is ahead. */
  readonly hysteresis: number;
  readonly rooms: ReadonlyMap<string, Room>;
  readonly signals: Signals;
  /** Region of the host, if known. */
  readonly homeRegion: string | undefined;
}

/** How good each candidate is, 0 to 100 with two decimals: the weighted mean of its parts, each from 0 to 100. */
export function scoreCandidates(candidates: readonly Candidate[], facts: ScoreFacts): Map<string, number> {
  const { weights, hysteresis } = facts;
  const priceOf = priceScores(candidates);
  const roomOf = roomScores(candidates, facts.rooms);
  return new Map(
    candidates.map((candidate) => {
      const parts: [number, number][] = [
        [weights.locality, locality(candidate, facts.homeRegion)],
        [weights.freeRoom, roomOf(candidate)],
        [weights.price, priceOf(candidate)],
        [weights.images, facts.rooms.get(candidate.name)?.images ?? 0],
        ...(weights.signals ?? []).map(({ name, weight }): [number, number] => [
          weight,
          signal(candidate, name, facts),
        ]),
      ];
      const total = parts.reduce((all, [weight]) => all + weight, 0);
      const mean = total === 0 ? 0 : parts.reduce((all, [weight, part]) => all + weight * part, 0) / total;
      const score = Math.min(100, mean + (candidate.inUse ? hysteresis : 0));
      return [candidate.name, Math.round(score * 100) / 100];
    }),
  );
}

function locality({ name, cluster }: Candidate, homeRegion: string | undefined): number {
  if (name === LOCAL) return 100;
  return homeRegion !== undefined && cluster.region === homeRegion ? 50 : 0;
}

/** 100 for the most room; not known is neither good nor bad. */
function roomScores(candidates: readonly Candidate[], rooms: ScoreFacts['rooms']): (candidate: Candidate) => number {
  const fits = ({ name }: Candidate): number | undefined => rooms.get(name)?.fits;
  const most = Math.max(1, ...candidates.map((candidate) => fits(candidate) ?? 0));
  return (candidate) => {
    const own = fits(candidate);
    return own === undefined ? 50 : (100 * Math.max(0, own)) / most;
  };
}

/** 100 for the cheapest, 0 for the dearest. The host's own nodes are there anyway, so without a price they cost nothing. */
function priceScores(candidates: readonly Candidate[]): (candidate: Candidate) => number {
  const price = ({ name, cluster }: Candidate): number | undefined => cluster.price ?? (name === LOCAL ? 0 : undefined);
  const known = candidates.map(price).filter((one) => one !== undefined);
  const [low, high] = [Math.min(...known), Math.max(...known)];
  return (candidate) => {
    const own = price(candidate);
    if (own === undefined) return 0;
    return high === low ? 100 : (100 * (high - own)) / (high - low);
  };
}

function signal({ name: cluster }: Candidate, name: string, { signals }: ScoreFacts): number {
  const value = signals.get(name)?.get(cluster);
  return value === undefined ? 0 : (Math.max(-100, Math.min(100, value)) + 100) / 2;
}
