import { LOCAL } from '../api/cluster-tiers.ts';
import { GANG_PLACED_ANNOTATION } from '../api/marks.ts';
import type { KubeObject } from '../kube/object.ts';
import type { Candidate } from './candidates.ts';
import { choiceOf } from './choice-of.ts';
import type { Choice, PlacementFacts } from './choice.ts';
import type { CompiledPlacement } from './compiled-placement.ts';
import { sumOver, ofRevision } from './workload.ts';
import { sum } from './highest-averages.ts';
import { noRoom } from './place-by-score.ts';
import { refuseAll } from './refusal.ts';
import type { Refusal } from './refusal.ts';
import { mostInWords, tierLimits } from './tier-limits.ts';

/** Clusters that may get `count` pods that have to be together, the best first, and why the others may not. */
export interface GangOrder {
  readonly order: readonly string[];
  readonly refusals: readonly Refusal[];
}

/**
 * Tier by tier, `local` first, then by score. Which clusters are chosen, and how many pods a tier or a cluster may have at the
 * most, holds for gangs too; how the replicas of a workload are divided or spread does not, as a gang is all in one cluster.
 */
export function gangOrder(facts: PlacementFacts, count: number): GangOrder {
  const placed = sum(ofRevision(facts.workload.pods, facts.pod.revision));
  const { choice, refusals } = choiceOf(facts, placed, Math.max(facts.workload.replicas ?? 0, placed + count));
  const all = [...refusals];
  const order: string[] = [];
  for (const [tier, { waits }] of tierLimits(choice).entries()) {
    const members = choice.candidates.filter((candidate) => candidate.tier === tier);
    const later = choice.candidates.filter((candidate) => candidate.tier > tier);
    if (waits !== undefined) {
      all.push(...refuseAll([...members, ...later], 'LaterTier', waits));
      break;
    }
    for (const candidate of [...members.filter(isLocal), ...members.filter((one) => !isLocal(one))]) {
      const refusal = candidate.room === 0 ? noRoom(candidate) : whyTooMany(choice, candidate, count);
      if (refusal === undefined) order.push(candidate.name);
      else all.push(refusal);
    }
  }
  return { order, refusals: all };
}

/** The same rules for a pod whose gang has its place: which clusters may be used, and nothing that depends on numbers. */
export function forPlacedGang(placement: CompiledPlacement): CompiledPlacement {
  const [first, ...others] = placement.groups.map(({ name, tiers }) => ({
    name,
    tiers: tiers.map((tier) => ({ ...tier, max: () => Number.POSITIVE_INFINITY, tryNextAfterMs: 0 })),
  }));
  if (first === undefined) return placement;
  return { ...placement, groups: [first, ...others], spread: [], division: { kind: 'none' } };
}

/** The rules as they count for a pod: for a placed gang it was decided as a whole how many of its pods go where. */
export function placementFor({ metadata }: KubeObject, placement: CompiledPlacement): CompiledPlacement {
  return metadata.annotations?.[GANG_PLACED_ANNOTATION] === undefined ? placement : forPlacedGang(placement);
}

function isLocal({ name }: Candidate): boolean {
  return name === LOCAL;
}

function whyTooMany(choice: Choice, { name, cluster, tier, here }: Candidate, count: number): Refusal | undefined {
  const { group, tiers, replicas, facts } = choice;
  const inTier = [...tiers].filter(([, own]) => own === tier).map(([one]) => one);
  const most = group.tiers[tier]?.max(replicas) ?? 0;
  if (sumOver(choice.here, inTier) + count > most) {
    return { cluster: name, reason: 'AtMax', message: mostInWords(most, inTier.toSorted().join(' and ')) };
  }
  const { division } = facts.placement;
  const own = division.kind === 'preferences' ? division.limitsOf(cluster)?.maxReplicas : undefined;
  if (own === undefined || here + count <= own) return undefined;
  return { cluster: name, reason: 'AtMax', message: mostInWords(own, name) };
}
