import { LOCAL } from '../api/cluster-tiers.ts';
import { chooseGroup } from './affinity-group.ts';
import { stillAvoided } from './avoided.ts';
import { findCandidates } from './candidates.ts';
import type { Candidate } from './candidates.ts';
import type { Choice, Decision, Outcome, PlacementFacts, Plan } from './choice.ts';
import type { Cluster } from './cluster.ts';
import type { Group } from './compiled-placement.ts';
import { sum } from './highest-averages.ts';
import { placeByScore } from './place-by-score.ts';
import { placeBySeat } from './place-by-seat.ts';
import { listInWords, refuseAll } from './refusal.ts';
import { scoreCandidates } from './score.ts';
import { selectSpread } from './spread-selection.ts';
import { ofAllRevisions, ofRevision } from './workload.ts';

/**
 * Where the next pod of a workload may go. A function of its arguments only, so the same pod gets the same answer from
 * every replica of the program. Soft spread constraints give way as a whole when no cluster is left with them.
 */
export function nextPlace(facts: PlacementFacts): Decision {
  const { workload, pod } = facts;
  const placed = sum(ofRevision(workload.pods, pod.revision));
  return decide(facts, placed, Math.max(workload.replicas ?? 0, placed + 1));
}

/**
 * The plan as it is without a pod that asks: for a workload that has shrunk, so that what is remembered shrinks with it.
 * The facts of the pod are those of any pod of the workload. Growth is divided by the room for it: while that is not known
 * (`roomIsKnown`), the first pod that asks must find it undivided, or it would keep to shares that nobody has looked at.
 */
export function refreshPlan(facts: PlacementFacts, roomIsKnown = true): Plan {
  const { workload, pod, remembered } = facts;
  const placed = sum(ofRevision(workload.pods, pod.revision));
  const replicas = workload.replicas ?? placed;
  const { plan } = decide(facts, placed, replicas);
  const grows = replicas > sum(remembered?.targets ?? ofAllRevisions(workload.pods));
  return grows && !roomIsKnown ? { ...plan, targets: remembered?.targets } : plan;
}

function decide(facts: PlacementFacts, placed: number, replicas: number): Decision {
  const { placement, workload, pod, clusters } = facts;
  const avoided = stillAvoided(facts.avoided, facts.now);
  const here = ofRevision(workload.pods, pod.revision);
  const all = ofAllRevisions(workload.pods);
  const find = (group: Group): ReturnType<typeof findCandidates> =>
    findCandidates({
      placement,
      group,
      clusters,
      tolerations: pod.tolerations,
      avoided,
      rooms: facts.rooms,
      here,
      inUse: new Set(all.keys()),
      replicas,
    });
  const group = chooseGroup({
    placement,
    clusters,
    pods: all,
    remembered: facts.remembered?.affinityName,
    need: Math.max(0, replicas - placed),
    fits: (one) => fitsInGroup(find(one).candidates, one, replicas),
  });
  const found = find(group);
  const tiers = tiersOf(group, clusters);
  const choice: Choice = { facts, group, here, tiers, replicas, ...ranked(found.candidates, facts), rules: [] };
  const hard = placement.spread.filter((rule) => rule.hard);
  const attempts = hard.length < placement.spread.length ? [placement.spread, hard] : [hard];
  let outcome: Outcome = { allowed: [], refusals: [] };
  for (const rules of attempts) {
    outcome = attempt({ ...choice, rules }, Math.max(0, replicas - placed));
    if (outcome.allowed.length > 0) break;
  }
  const refusals = [...found.refusals, ...outcome.refusals].toSorted((a, b) => (a.cluster < b.cluster ? -1 : 1));
  return {
    allowed: outcome.allowed,
    refusals,
    plan: { affinityName: group.name, targets: outcome.targets, tiers },
  };
}

function attempt(choice: Choice, need: number): Outcome {
  const { facts, candidates, scores, rules } = choice;
  const { division } = facts.placement;
  const byWeight = division.kind === 'static' || division.kind === 'preferences';
  const selection = selectSpread(candidates, { rules, scores, need: byWeight ? undefined : need });
  if ('problem' in selection) {
    return { allowed: [], refusals: refuseAll(candidates, 'Spread', selection.problem) };
  }
  const { chosen } = selection;
  const left = refuseAll(
    candidates.filter((candidate) => !chosen.includes(candidate)),
    'Spread',
    `other clusters were chosen to spread pods over ${listInWords(rules.map(({ by }) => by))} as the policy says`,
  );
  const narrowed = { ...choice, candidates: chosen };
  const outcome = division.kind === 'none' ? placeByScore(narrowed) : placeBySeat(narrowed);
  return { ...outcome, refusals: [...outcome.refusals, ...left] };
}

/** Pods that candidates of a group could take in all, by room and by what its tiers may have. */
function fitsInGroup(candidates: readonly Candidate[], group: Group, replicas: number): number | undefined {
  if (candidates.length === 0) return undefined;
  return group.tiers.reduce((all, tier, index) => {
    const members = candidates.filter((candidate) => candidate.tier === index);
    const room = members.reduce((sum, one) => sum + one.room, 0);
    const taken = members.reduce((sum, one) => sum + one.here, 0);
    return all + Math.max(0, Math.min(room, tier.max(replicas) - taken));
  }, 0);
}

function ranked(candidates: readonly Candidate[], facts: PlacementFacts): Pick<Choice, 'candidates' | 'scores'> {
  const { scoreWeights: weights, hysteresis } = facts.placement;
  const homeRegion = facts.clusters.find(({ name }) => name === LOCAL)?.region;
  const scores = scoreCandidates(candidates, { ...facts, weights, hysteresis, homeRegion });
  const score = ({ name }: Candidate): number => scores.get(name) ?? 0;
  const localFirst = ({ name }: Candidate): number => (name === LOCAL ? 0 : 1);
  const isPlain = facts.placement.division.kind === 'none';
  const sorted = candidates.toSorted(
    (a, b) =>
      a.tier - b.tier ||
      (isPlain ? localFirst(a) - localFirst(b) : 0) ||
      score(b) - score(a) ||
      b.room - a.room ||
      (a.name < b.name ? -1 : 1),
  );
  return { candidates: sorted, scores };
}

function tiersOf(group: Group, clusters: readonly Cluster[]): Map<string, number> {
  const tiers = new Map<string, number>();
  for (const cluster of clusters) {
    const tier = group.tiers.findIndex(({ whyNot }) => whyNot(cluster) === undefined);
    if (tier >= 0) tiers.set(cluster.name, tier);
  }
  return tiers;
}
