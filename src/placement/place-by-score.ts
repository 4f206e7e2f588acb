import { LOCAL } from '../api/cluster-tiers.ts';
import type { Candidate } from './candidates.ts';
import type { Choice, Outcome, Place } from './decision.ts';
import { listInWords } from './placement-refusal.ts';
import type { Refusal } from './placement-refusal.ts';
import { newGroupsFirst } from './spread-minimums.ts';
import { type TierLimit, tierLimits } from './tier-limits.ts';

/**
 * Without division a pod goes to the first tier that has room for it; within the tier to `local`, if that is in it, else
 * to the cluster with the best score.
 */
export function placeByScore(choice: Choice): Outcome {
  const { candidates, refusals } = newGroupsFirst(choice);
  const limits = tierLimits(choice);
  const hasRoom = (one: Candidate, tier: number): boolean => one.tier === tier && one.room > 0;
  const at = limits.findIndex(
    ({ full, waits }, tier) =>
      full === undefined && (waits !== undefined || candidates.some((one) => hasRoom(one, tier))),
  );
  const open = limits[at]?.waits === undefined ? candidates.filter((one) => hasRoom(one, at)) : [];
  const local = open.filter(({ name }) => name === LOCAL);
  const best = local.length > 0 ? local : open;
  const tiers = { limits, at: at < 0 ? limits.length : at };
  return {
    allowed: best.map(({ name }): Place => ({ cluster: name, score: choice.scores.get(name) ?? 0 })),
    refusals: () => [
      ...refusals,
      ...candidates.filter((one) => !best.includes(one)).map((one) => whyLeft(one, best, tiers)),
    ],
  };
}

/** `at`: the tier that the pod goes to, or waits for. */
function whyLeft(
  one: Candidate,
  best: readonly Candidate[],
  { limits, at }: { limits: readonly TierLimit[]; at: number },
): Refusal {
  const cluster = one.name;
  const full = one.tier < at ? limits[one.tier]?.full : undefined;
  if (full !== undefined) return { cluster, reason: 'AtMax', message: full };
  if (one.tier < at) return noRoom(one);
  const waits = limits[at]?.waits;
  if (waits !== undefined) return { cluster, reason: 'LaterTier', message: waits };
  if (one.tier > at) return { cluster, reason: 'LaterTier', message: firstInWords(best) };
  return one.room > 0 ? { cluster, reason: 'LocalFirst', message: 'local comes first and has room' } : noRoom(one);
}

function firstInWords(best: readonly Candidate[]): string {
  const names = listInWords(best.map(({ name }) => name));
  return best.length === 1 ? `${names} comes first and has room` : `${names} come first and have room`;
}

export function noRoom({ name, whyNoRoom }: Candidate): Refusal {
  return { cluster: name, reason: 'NoRoom', message: whyNoRoom };
}
