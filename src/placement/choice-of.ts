import { LOCAL } from '../api/cluster-tiers.ts';
import { chooseGroup } from './affinity-group.ts';
import { stillAvoided } from './avoided.ts';
import { findCandidates } from './candidates.ts';
import type { Candidate } from './candidates.ts';
import type { Choice, PlacementFacts } from './decision.ts';
import type { Group } from './compiled-placement.ts';
import { type Migrating, whyNotOnTheWay } from './migrating.ts';
import type { Refusal } from './placement-refusal.ts';
import type { Counts } from './share.ts';
import { scoreCandidates, scoringOf } from './score.ts';
import { ofAllRevisions, ofRevision } from './workload.ts';

/**
 * The clusters there are to choose from, ranked, and why the others are out of the question. `placed`: pods of the revision
 * that have a place; `replicas`: pods the workload will have.
 */
export function choiceOf(
  facts: PlacementFacts,
  placed: number,
  replicas: number,
): { choice: Choice; refusals: readonly Refusal[] } {
  const { placement, workload, pod, clusters } = facts;
  const avoided = stillAvoided(facts.avoided, facts.now);
  const here = ofRevision(workload.pods, pod.revision);
  const all = ofAllRevisions(workload.pods);
  const find = (group: Group): ReturnType<typeof findCandidates> =>
    findCandidates({
      placement,
      group,
      clusters,
      avoided,
      migrating: facts.migrating,
      rooms: facts.rooms,
      here,
      inUse: all,
      replicas,
    });
  const group = chooseGroup({
    placement,
    clusters,
    pods: all,
    remembered: facts.remembered?.affinityName,
    need: Math.max(0, replicas - placed) + leaving(here, facts.migrating),
    isMoved: facts.migrating !== undefined,
    fits: (one) => fitsInGroup(find(one).candidates, one, replicas),
  });
  const { candidates, refusals, tiers } = find(group);
  const choice = { facts, group, here, tiers, replicas, ...ranked(candidates, facts), rules: [], asks: true };
  return { choice, refusals };
}

/** Pods that are where the workload is being moved out of: these need a place, too. */
function leaving(here: Counts, migrating: Migrating | undefined): number {
  if (migrating === undefined) return 0;
  const { from } = migrating;
  return whyNotOnTheWay(from, migrating) === undefined ? 0 : (here.get(from) ?? 0);
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
  const scoring = scoringOf(facts.scoring, facts.placement.scoring);
  const homeRegion = facts.clusters.find(({ name }) => name === LOCAL)?.region;
  const scores = scoreCandidates(candidates, { ...facts, scoring, homeRegion });
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
