import { LOCAL } from '../api/cluster-tiers.ts';
import { GANG_LABEL, GANG_PLACED_ANNOTATION } from '../api/marks.ts';
import type { KubeObject } from '../kube/object.ts';
import { type Candidate, NO_SHARE, sharesIn } from './candidates.ts';
import { choiceOf } from './choice-of.ts';
import type { Choice, PlacementFacts } from './decision.ts';
import type { Cluster } from '../api/cluster.ts';
import type { CompiledPlacement } from './compiled-placement.ts';
import { sumOver, ofRevision } from './workload.ts';
import { sum } from './highest-averages.ts';
import { noRoom } from './place-by-score.ts';
import { refuseAll } from './placement-refusal.ts';
import type { Refusal } from './placement-refusal.ts';
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

/**
 * The rules as they count for a pod. How a workload is divided and spread does not for one whose gang was given a place as a whole,
 * nor how long a pod waits for the next tier. What only numbers keep it from, it is kept from all the same: who may write
 * a pod can write that its gang has a place.
 */
export function placementFor({ metadata }: KubeObject, facts: PlacementFacts): CompiledPlacement {
  const isPlaced =
    metadata.labels?.[GANG_LABEL] !== undefined && metadata.annotations?.[GANG_PLACED_ANNOTATION] !== undefined;
  return isPlaced ? forPlacedGang(facts) : facts.placement;
}

function forPlacedGang({ placement, workload, pod, clusters }: PlacementFacts): CompiledPlacement {
  const here = ofRevision(workload.pods, pod.revision);
  const whyFull = (cluster: Cluster): string | undefined => {
    const most = mostOf(placement, cluster);
    return most === undefined || (here.get(cluster.name) ?? 0) < most ? undefined : mostInWords(most, cluster.name);
  };
  const [first, ...others] = placement.groups.map((group) => {
    const hasShare = sharesIn(group, placement.division, clusters);
    const whyNoShare = (cluster: Cluster) => (hasShare(cluster) ? undefined : NO_SHARE);
    const tiers = group.tiers.map((tier) => ({
      ...tier,
      whyNot: (cluster: Cluster) => tier.whyNot(cluster) ?? whyNoShare(cluster) ?? whyFull(cluster),
      tryNextAfterMs: 0,
    }));
    return { name: group.name, tiers };
  });
  if (first === undefined) return placement;
  return { ...placement, groups: [first, ...others], spread: [], division: { kind: 'none' } };
}

/** What the preferences of the workload allow one cluster; undefined: as many as there are. */
function mostOf({ division }: CompiledPlacement, cluster: Cluster): number | undefined {
  return division.kind === 'preferences' ? division.limitsOf(cluster)?.maxReplicas : undefined;
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
  const own = mostOf(facts.placement, cluster);
  if (own === undefined || here + count <= own) return undefined;
  return { cluster: name, reason: 'AtMax', message: mostInWords(own, name) };
}
