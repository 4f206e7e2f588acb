import type { Candidate } from './candidates.ts';
import type { CompiledPlacement, Division, Group, Limits } from './compiled-placement.ts';
import { HighestAverages, sum } from './highest-averages.ts';
import type { Counts, Share } from './share.ts';
import { divideRemainder } from './remainder-division.ts';
import { staticWeights } from './static-weights.ts';
import { sumOver } from './workload.ts';

const UNLIMITED = Number.POSITIVE_INFINITY;
const NO_SHARE: Limits = { minReplicas: 0, weight: 0 };

export interface TargetFacts {
  readonly placement: CompiledPlacement;
  readonly group: Group;
  /** Those that may get pods, best first. */
  readonly candidates: readonly Candidate[];
  /** Pods the workload will have. */
  readonly replicas: number;
  /** Those of the replicas that are in clusters that are no candidates, by tier; they stay where they are. */
  readonly elsewhere: ReadonlyMap<number, number>;
  /** What they were to have before, or have now. */
  readonly previous: Pick<Counts, 'get'>;
  /** What they were to have before the workload began to shrink; undefined: it does not. */
  readonly shares: Counts | undefined;
  /** No pod asks: growth is not divided by the room there is. */
  readonly leavesGrowth: boolean;
  /** Pods that clusters get before all others, so that spread constraints are kept. */
  readonly minimums: Counts;
  /** Which way the alphabet breaks ties. */
  readonly descending: boolean;
  /** Tells workloads apart where the division needs that. */
  readonly key: string;
}

export interface Targets {
  readonly counts: ReadonlyMap<string, number>;
  /** Pods that no cluster can or may take. */
  readonly unplaced: number;
}

/** How many pods each candidate should have in the end. With division `none` there are no targets. */
export function targetsOf(facts: TargetFacts): Targets | undefined {
  const { division } = facts.placement;
  switch (division.kind) {
    case 'none':
      return undefined;
    case 'static':
      return staticTargets(facts, division);
    case 'preferences':
      return division.remainder ? remainderTargets(facts, division) : preferenceTargets(facts, division);
    case 'dynamic':
    case 'aggregated':
      return steadyTargets(facts, division.kind === 'aggregated');
  }
}

function staticTargets(facts: TargetFacts, division: Division & { kind: 'static' }): Targets {
  const { candidates, minimums, descending } = facts;
  const weights = staticWeights(
    division,
    candidates.map(({ cluster }) => cluster),
  );
  const shares = candidates.map(({ name, here, room }, index): Share => ({
    name,
    weight: weights[index] ?? 0,
    min: minimums.get(name) ?? 0,
    ...(division.waitWhenFull ? {} : { max: here + room }),
  }));
  const total = totalOf(facts);
  const allowed = Math.min(total, roomInTier(facts, 0));
  const { counts, unplaced } = new HighestAverages(shares, descending).divide(allowed);
  return { counts, unplaced: unplaced + total - allowed };
}

function preferenceTargets(facts: TargetFacts, division: Division & { kind: 'preferences' }): Targets {
  const shares = facts.candidates.map(({ name, cluster, here, room }): Share & { max: number } => {
    const { minReplicas, maxReplicas, weight } = division.limitsOf(cluster) ?? NO_SHARE;
    const max = Math.min(maxReplicas ?? UNLIMITED, division.waitWhenFull ? UNLIMITED : here + room);
    return { name, weight, min: Math.min(max, Math.max(minReplicas, facts.minimums.get(name) ?? 0)), max };
  });
  const method = new HighestAverages(shares, facts.descending);
  if (division.rebalance) return method.divide(totalOf(facts));
  const kept = shares.map(({ name, max }) => [name, Math.min(facts.previous.get(name) ?? 0, max)] as const);
  return method.divide(totalOf(facts), new Map(kept));
}

function remainderTargets(facts: TargetFacts, division: Division & { kind: 'preferences' }): Targets {
  const { previous, candidates, minimums, key } = facts;
  const shares = candidates.map(({ name, cluster, here, room }) => {
    const { minReplicas, maxReplicas, weight } = division.limitsOf(cluster) ?? NO_SHARE;
    const capacity = division.waitWhenFull ? undefined : here + room;
    const [first, current] = [minimums.get(name) ?? 0, previous.get(name) ?? 0];
    return { name, weight, first, min: minReplicas, max: maxReplicas, current, capacity };
  });
  return divideRemainder(totalOf(facts), shares, { rebalance: division.rebalance, key });
}

/**
 * Growth only divides what is added, by the room there is now; shrinking divides the new total in proportion to what each
 * had before it began; an equal total changes nothing. Tiers are filled in their order and emptied in the reverse one.
 */
function steadyTargets(facts: TargetFacts, aggregated: boolean): Targets {
  const { previous, candidates } = facts;
  const counts = new Map<string, number>();
  for (const { name } of candidates) counts.set(name, previous.get(name) ?? 0);
  let change = totalOf(facts) - sum(counts);
  if (facts.leavesGrowth && change > 0) return keepPlaced(counts, change, candidates);
  const tiers = facts.group.tiers.map((_, index) => ({
    index,
    members: candidates.filter((candidate) => candidate.tier === index),
  }));
  for (const { index, members } of change > 0 ? tiers : []) {
    const had = sumOver(counts, names(members));
    const added = Math.min(change, Math.max(0, roomInTier(facts, index) - had), roomOf(members));
    grow(members, counts, added, aggregated, facts);
    change -= added;
  }
  for (const { members } of change < 0 ? tiers.toReversed() : []) {
    const had = sumOver(counts, names(members));
    const left = Math.max(0, had + change);
    shrink(members, counts, left, facts);
    change += had - left;
  }
  return { counts, unplaced: Math.max(0, change) };
}

/** Of growth as much as has its place already. */
function keepPlaced(counts: Map<string, number>, added: number, candidates: readonly Candidate[]): Targets {
  let left = added;
  for (const { name, here } of candidates) {
    const had = counts.get(name) ?? 0;
    const given = Math.max(0, Math.min(here - had, left));
    counts.set(name, had + given);
    left -= given;
  }
  return { counts, unplaced: left };
}

function grow(
  members: readonly Candidate[],
  counts: Map<string, number>,
  added: number,
  aggregated: boolean,
  facts: TargetFacts,
): void {
  let left = added;
  const open: Open[] = [];
  for (const { name, room, inUse } of members) {
    const had = counts.get(name) ?? 0;
    const given = Math.max(0, Math.min((facts.minimums.get(name) ?? 0) - had, left, room));
    counts.set(name, had + given);
    left -= given;
    open.push({ name, weight: room - given, max: room - given, isUsed: inUse || had + given > 0 });
  }
  const shares = aggregated ? fewest(open, left) : open;
  for (const [name, more] of new HighestAverages(shares, facts.descending).divide(left).counts) {
    counts.set(name, (counts.get(name) ?? 0) + more);
  }
}

/** A cluster by the room that it has left. */
interface Open extends Share {
  readonly isUsed: boolean;
}

/** The first clusters that have the room together: those with pods already, then the roomiest. */
function fewest(open: readonly Open[], need: number): readonly Open[] {
  const sorted = open.toSorted(
    (a, b) => Number(b.isUsed) - Number(a.isUsed) || b.weight - a.weight || (a.name < b.name ? -1 : 1),
  );
  let room = 0;
  const enough = sorted.findIndex(({ weight }) => (room += weight) >= need);
  return enough < 0 ? sorted : sorted.slice(0, enough + 1);
}

function shrink(members: readonly Candidate[], counts: Map<string, number>, total: number, facts: TargetFacts): void {
  const had = (name: string): number => counts.get(name) ?? 0;
  const began = members.every(({ name }) => had(name) <= (facts.shares?.get(name) ?? 0)) ? facts.shares : undefined;
  const shares = members.map(({ name }) => ({
    name,
    weight: began?.get(name) ?? had(name),
    max: had(name),
    min: Math.min(facts.minimums.get(name) ?? 0, counts.get(name) ?? 0),
  }));
  for (const [name, count] of new HighestAverages(shares, facts.descending).divide(total).counts)
    counts.set(name, count);
}

/** Pods for the candidates together. */
function totalOf({ replicas, elsewhere }: TargetFacts): number {
  return Math.max(0, replicas - [...elsewhere.values()].reduce((all, one) => all + one, 0));
}

/** What the policy lets the candidates of a tier have together. */
function roomInTier({ replicas, elsewhere, group }: TargetFacts, tier: number): number {
  const max = group.tiers[tier]?.max(replicas) ?? UNLIMITED;
  return Math.max(0, max - (elsewhere.get(tier) ?? 0));
}

const names = (candidates: readonly Candidate[]): string[] => candidates.map(({ name }) => name);
const roomOf = (candidates: readonly Candidate[]): number => candidates.reduce((all, { room }) => all + room, 0);
