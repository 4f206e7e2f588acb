import type { Candidate } from './candidates.ts';
import type { Choice } from './decision.ts';
import { refuseAll } from './placement-refusal.ts';
import type { Refusal } from './placement-refusal.ts';

/**
 * One pod each for the best clusters of as many groups as every spread rule asks for, replicas allowing: what a division by
 * weight must leave them. Groups that have pods of the revision come first.
 */
export function spreadMinimums({ candidates, rules, replicas }: Choice): Map<string, number> {
  const minimums = new Map<string, number>();
  for (const rule of rules) {
    const covered = new Set<string>(
      candidates.filter(({ name }) => minimums.has(name)).flatMap(({ cluster }) => rule.groupsOf(cluster)),
    );
    for (const { name, cluster } of candidates.toSorted((a, b) => Number(b.here > 0) - Number(a.here > 0))) {
      if (covered.size >= Math.min(rule.min, replicas) || minimums.size >= replicas) break;
      const groups = rule.groupsOf(cluster);
      if (!groups.some((group) => !covered.has(group))) continue;
      for (const group of groups) covered.add(group);
      minimums.set(name, 1);
    }
  }
  return minimums;
}

/**
 * While a revision is in fewer groups than a rule asks for, only clusters that add a group are left; of a soft rule only
 * where there are such clusters with room.
 */
export function newGroupsFirst({ candidates, rules, replicas }: Choice): {
  candidates: readonly Candidate[];
  refusals: Refusal[];
} {
  let left = candidates;
  const refusals: Refusal[] = [];
  for (const rule of rules) {
    const used = new Set(candidates.filter(({ here }) => here > 0).flatMap(({ cluster }) => rule.groupsOf(cluster)));
    if (used.size >= Math.min(rule.min, replicas)) continue;
    const adding = left.filter(({ cluster }) => rule.groupsOf(cluster).some((group) => !used.has(group)));
    if (!rule.hard && !adding.some(({ room }) => room > 0)) continue;
    const message = `pods are to be spread over at least ${String(rule.min)} groups by ${rule.by}, and its group has some already`;
    refusals.push(
      ...refuseAll(
        left.filter((one) => !adding.includes(one)),
        'Spread',
        message,
      ),
    );
    left = adding;
  }
  return { candidates: left, refusals };
}
