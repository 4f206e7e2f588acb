import { LOCAL } from '../api/cluster-tiers.ts';
import type { Candidate } from './candidates.ts';
import type { Choice, Outcome, Place } from './decision.ts';
import { listInWords, refuseAll } from './placement-refusal.ts';
import type { Refusal } from './placement-refusal.ts';
import { newGroupsFirst } from './spread-minimums.ts';
import { tierLimits } from './tier-limits.ts';

/**
 * Without division a pod goes to the first tier that has room for it; within the tier to `local`, if that is in it, else
 * to the cluster with the best score.
 */
export function placeByScore(choice: Choice): Outcome {
  const { candidates, refusals } = newGroupsFirst(choice);
  const all = [...refusals];
  for (const [tier, { full, waits }] of tierLimits(choice).entries()) {
    const members = candidates.filter((candidate) => candidate.tier === tier);
    const later = candidates.filter((candidate) => candidate.tier > tier);
    if (full !== undefined) {
      all.push(...refuseAll(members, 'AtMax', full));
    } else if (waits !== undefined) {
      return { allowed: [], refusals: [...all, ...refuseAll([...members, ...later], 'LaterTier', waits)] };
    } else {
      all.push(...members.filter(({ room }) => room === 0).map(noRoom));
      const open = members.filter(({ room }) => room > 0);
      if (open.length > 0) return place(choice, open, later, all);
    }
  }
  return { allowed: [], refusals: all };
}

function place(choice: Choice, open: readonly Candidate[], later: readonly Candidate[], refusals: Refusal[]): Outcome {
  const best = open.some(({ name }) => name === LOCAL) ? open.filter(({ name }) => name === LOCAL) : open;
  const names = listInWords(best.map(({ name }) => name));
  return {
    allowed: best.map(({ name }): Place => ({ cluster: name, score: choice.scores.get(name) ?? 0 })),
    refusals: [
      ...refusals,
      ...refuseAll(
        open.filter((one) => !best.includes(one)),
        'LocalFirst',
        'local comes first and has room',
      ),
      ...refuseAll(
        later,
        'LaterTier',
        `${names} ${best.length === 1 ? 'comes' : 'come'} first and ${best.length === 1 ? 'has' : 'have'} room`,
      ),
    ],
  };
}

export function noRoom({ name, whyNoRoom }: Candidate): Refusal {
  return { cluster: name, reason: 'NoRoom', message: whyNoRoom };
}
