import type { NodeChoice } from './node-choice.ts';
import { spreadDomains } from './inter-pod-constraints.ts';
import type { InterPodConstraints } from './inter-pod-constraints.ts';
import { domainOf } from './pod-counts.ts';
import type { PodCounts } from './pod-counts.ts';
import type { NodeTable } from './node-table.ts';
import type { SpreadRule } from './pod-terms.ts';

/**
 * How many pods of one shape fit together when they have wishes about each other: `open` are the rows that take one now,
 * with how many their resources allow. Exact for one rule at a time; several rules count by the strictest of them.
 */
export function interPodSlots(
  open: ReadonlyMap<number, number>,
  rules: InterPodConstraints,
  choice: NodeChoice,
  podCounts: PodCounts,
  table: NodeTable,
): number {
  const rest = oneInEachDomain(open, rules, podCounts, table);
  let slots = total(rest);
  const [first] = rules.affinity;
  if (first !== undefined && podCounts.countsOfAll(rules.affinity).size === 0) {
    // Nobody is there yet: all of them go where the first one goes.
    slots = Math.min(slots, Math.max(0, ...sums(rest, first.topologyKey, table).values()));
  }
  for (const { rule, domains } of spreadDomains(rules, choice, podCounts, table)) {
    if (!rule.includesItself) continue;
    slots = Math.min(slots, slotsWithinSkew(sums(rest, rule.topologyKey, table), rule, domains));
  }
  return slots;
}

/** Pods that keep their like away get one place in each domain. */
function oneInEachDomain(
  open: ReadonlyMap<number, number>,
  { antiAffinity, labelledPod }: InterPodConstraints,
  podCounts: PodCounts,
  table: NodeTable,
): ReadonlyMap<number, number> {
  const against = antiAffinity.filter((term) => podCounts.meantByAll([term], labelledPod));
  if (against.length === 0) return open;
  const taken = new Set<string>();
  const left = new Map<number, number>();
  for (const [row, slots] of open) {
    const domains = against.flatMap(({ topologyKey }) => {
      const domain = domainOf(row, topologyKey, table);
      return domain === undefined ? [] : [`${topologyKey}=${domain}`];
    });
    if (domains.some((domain) => taken.has(domain))) continue;
    for (const domain of domains) taken.add(domain);
    left.set(row, domains.length === 0 ? slots : 1);
  }
  return left;
}

/** The lowest domain rises as far as it has room; the others may be ahead of it by the skew. */
function slotsWithinSkew(
  room: ReadonlyMap<string, number>,
  { maxSkew, minDomains }: SpreadRule,
  there: ReadonlyMap<string, number>,
): number {
  let least = there.size < minDomains ? 0 : Infinity;
  for (const [domain, pods] of there) least = Math.min(least, pods + (room.get(domain) ?? 0));
  let slots = 0;
  for (const [domain, free] of room) {
    slots += Math.max(0, Math.min(free, least + maxSkew - (there.get(domain) ?? 0)));
  }
  return slots;
}

function sums(open: ReadonlyMap<number, number>, topologyKey: string, table: NodeTable): Map<string, number> {
  const all = new Map<string, number>();
  for (const [row, slots] of open) {
    const domain = domainOf(row, topologyKey, table);
    if (domain !== undefined) all.set(domain, (all.get(domain) ?? 0) + slots);
  }
  return all;
}

function total(open: ReadonlyMap<number, number>): number {
  let sum = 0;
  for (const slots of open.values()) sum += slots;
  return sum;
}
