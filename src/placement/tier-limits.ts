import type { Choice } from './decision.ts';
import { durationInWords } from './duration.ts';
import { listInWords } from './placement-refusal.ts';

/** What keeps a pod out of a whole tier, in words; undefined when nothing does. */
export interface TierLimit {
  /** The tier may take no more pods of the revision. */
  readonly full: string | undefined;
  /** The tier is not tried yet for this pod. */
  readonly waits: string | undefined;
}

/**
 * The limits of every tier. A pod that comes to a tier must have waited for the tiers before it, without those that may take
 * no more pods anyway or have no cluster that can be used.
 */
export function tierLimits(choice: Choice): readonly TierLimit[] {
  const { group, tiers, here, candidates, replicas, facts } = choice;
  const pods = group.tiers.map(() => 0);
  for (const [cluster, count] of here) {
    const tier = tiers.get(cluster);
    if (tier !== undefined) pods[tier] = (pods[tier] ?? 0) + count;
  }
  let wait = 0;
  return group.tiers.map(({ max, tryNextAfterMs }, index) => {
    const most = max(replicas);
    const full = (pods[index] ?? 0) < most ? undefined : fullInWords(choice, index, most);
    const waits = facts.pod.waitedMs < wait ? waitInWords(wait) : undefined;
    if (full === undefined && candidates.some(({ tier }) => tier === index)) wait += tryNextAfterMs;
    return { full, waits };
  });
}

function fullInWords({ tiers }: Choice, tier: number, most: number): string {
  const members = [...tiers].filter(([, own]) => own === tier).map(([name]) => name);
  return mostInWords(most, members.length > 1 ? `${listInWords(members.toSorted())} together` : (members[0] ?? ''));
}

function waitInWords(wait: number): string {
  return `it is tried ${durationInWords(wait)} after the pod came, if the clusters before it still have no room`;
}

/** `the policy allows at most 3 pods in east`. */
export function mostInWords(most: number, where: string): string {
  return `the policy allows at most ${String(most)} ${most === 1 ? 'pod' : 'pods'} in ${where}`;
}
