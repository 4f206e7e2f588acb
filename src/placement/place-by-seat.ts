import type { Candidate } from './candidates.ts';
import { HighestAverages } from './highest-averages.ts';
import type { Choice, Outcome, Place } from './decision.ts';
import { noRoom } from './place-by-score.ts';
import type { Refusal } from './placement-refusal.ts';
import { spreadMinimums } from './spread-minimums.ts';
import { targetsOf } from './targets.ts';
import type { TargetFacts } from './targets.ts';
import { mostInWords, tierLimits } from './tier-limits.ts';
import type { TierLimit } from './tier-limits.ts';
import { tiesDescend } from './ties.ts';
import { ofAllRevisions } from './workload.ts';

/**
 * With division a pod may go to every cluster that has fewer pods of its revision than it is to have in the end; whichever
 * it is, the division comes out exactly. Where none of these has room, a division by room is worked out anew without them.
 */
export function placeBySeat(choice: Choice): Outcome {
  const facts = targetFacts(choice);
  let targets = targetsOf(facts)?.counts ?? new Map<string, number>();
  const behind = choice.candidates.filter((candidate) => isBehind(candidate, targets));
  const { kind } = facts.placement.division;
  const byRoom = kind === 'dynamic' || kind === 'aggregated';
  if (byRoom && behind.length > 0 && behind.every(({ room }) => room === 0)) {
    const previous = new Map(targets);
    for (const { name, here } of behind) previous.set(name, here);
    targets = targetsOf({ ...facts, previous })?.counts ?? targets;
  }
  return outcomeOf(choice, targets);
}

function isBehind({ name, here }: Candidate, targets: ReadonlyMap<string, number>): boolean {
  return here < (targets.get(name) ?? 0);
}

function targetFacts(choice: Choice): TargetFacts {
  const { facts, group, candidates, tiers, here, replicas } = choice;
  const elsewhere = new Map<number, number>();
  const add = (tier: number, count: number) => elsewhere.set(tier, (elsewhere.get(tier) ?? 0) + count);
  for (const [cluster, count] of here) add(tiers.get(cluster) ?? -1, count);
  for (const { tier, here: own } of candidates) add(tier, -own);
  return {
    placement: facts.placement,
    group,
    candidates,
    replicas,
    elsewhere,
    previous: previousOf(choice),
    shares: facts.remembered?.shares,
    leavesGrowth: !choice.asks,
    minimums: spreadMinimums(choice),
    descending: tiesDescend(facts.workload.uid),
    key: facts.workload.uid ?? '',
  };
}

/** What a cluster was to have. One that is back, or chosen for the first time, keeps what it has. */
function previousOf({ facts, here }: Choice): TargetFacts['previous'] {
  const targets = facts.remembered?.targets;
  if (targets === undefined) return ofAllRevisions(facts.workload.pods);
  return { get: (cluster) => targets.get(cluster) ?? here.get(cluster) };
}

function outcomeOf(choice: Choice, targets: ReadonlyMap<string, number>): Outcome {
  const limits = tierLimits(choice);
  const open = choice.candidates
    .filter((one) => hasSeat(one, targets, limits[one.tier]))
    .map(({ name, tier, here }) => ({ name, tier, here, weight: targets.get(name) ?? 0 }));
  const order = new HighestAverages([], tiesDescend(choice.facts.workload.uid));
  open.sort((a, b) => a.tier - b.tier || order.compare(a, b, choice.here));
  const allowed = open.map(({ name, here, weight }, index): Place => ({
    cluster: name,
    score: index === 0 ? 100 : Math.round((80 * (open.length - index)) / open.length),
    seat: here + 1,
    seats: weight,
  }));
  const refusals = (): Refusal[] =>
    choice.candidates
      .filter((one) => !hasSeat(one, targets, limits[one.tier]))
      .map((one) => whyNoSeat(choice, one, targets, limits[one.tier]));
  return { allowed, refusals, targets };
}

function hasSeat(candidate: Candidate, targets: ReadonlyMap<string, number>, limit: TierLimit | undefined): boolean {
  const isOpen = limit?.full === undefined && limit?.waits === undefined;
  return isOpen && candidate.room > 0 && isBehind(candidate, targets);
}

function whyNoSeat(
  choice: Choice,
  candidate: Candidate,
  targets: ReadonlyMap<string, number>,
  limit: TierLimit | undefined,
): Refusal {
  const { name, cluster, here, room } = candidate;
  const { division } = choice.facts.placement;
  if (limit?.full !== undefined) return { cluster: name, reason: 'AtMax', message: limit.full };
  if (!isBehind(candidate, targets)) {
    const max = division.kind === 'preferences' ? division.limitsOf(cluster)?.maxReplicas : undefined;
    if (max !== undefined && here >= max) return { cluster: name, reason: 'AtMax', message: mostInWords(max, name) };
    if (room === 0) return noRoom(candidate);
    const message = shareInWords(here, targets.get(name) ?? 0, choice.replicas);
    return { cluster: name, reason: 'HasItsShare', message };
  }
  if (room === 0 || limit?.waits === undefined) return noRoom(candidate);
  return { cluster: name, reason: 'LaterTier', message: limit.waits };
}

function shareInWords(here: number, target: number, replicas: number): string {
  if (target === 0) return `its share of ${String(replicas)} replicas is 0`;
  return `it has its share of ${String(replicas)} replicas (${String(here)} of ${String(target)})`;
}
