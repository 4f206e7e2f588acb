import { choiceOf } from './choice-of.ts';
import type { Choice, Decision, Outcome, PlacementFacts, Plan } from './decision.ts';
import { sum } from './highest-averages.ts';
import type { Counts } from './share.ts';
import { placeByScore } from './place-by-score.ts';
import { placeBySeat } from './place-by-seat.ts';
import { listInWords, refuseAll } from './placement-refusal.ts';
import { selectSpread } from './spread-selection.ts';
import { ofAllRevisions, ofRevision } from './workload.ts';

/**
 * Where the next pod of a workload may go. A function of its arguments only, so the same pod gets the same answer from
 * every replica of the program. Soft spread constraints give way as a whole when no cluster is left with them.
 */
export function nextPlace(facts: PlacementFacts): Decision {
  const { workload, pod } = facts;
  const placed = sum(ofRevision(workload.pods, pod.revision));
  return decide(facts, placed, Math.max(workload.replicas ?? 0, placed + 1), true);
}

/**
 * The plan as it is without a pod that asks: what is remembered follows a workload that has shrunk, clusters that came or
 * went, and rules that were edited. Once more with that plan it is the same. The facts of the pod are those of any pod of the
 * workload. Growth that is divided by room is left to the pods that ask, but for those that have their places already. While
 * the room is not known (`roomIsKnown`), the first pod that asks must find no growth divided at all, or it would keep to
 * shares that nobody has looked at.
 */
export function refreshPlan(facts: PlacementFacts, roomIsKnown = true): Plan {
  const { workload, pod, remembered } = facts;
  const placed = sum(ofRevision(workload.pods, pod.revision));
  const replicas = workload.replicas ?? placed;
  const { plan } = decide(facts, placed, replicas, false);
  const grows = replicas > sum(remembered?.targets ?? ofAllRevisions(workload.pods));
  return grows && !roomIsKnown ? { ...plan, targets: remembered?.targets } : plan;
}

function decide(facts: PlacementFacts, placed: number, replicas: number, asks: boolean): Decision {
  const { placement } = facts;
  const { choice, refusals: found } = choiceOf(facts, placed, replicas);
  const hard = placement.spread.filter((rule) => rule.hard);
  const attempts = hard.length < placement.spread.length ? [placement.spread, hard] : [hard];
  let outcome: Outcome = { allowed: [], refusals: [] };
  for (const rules of attempts) {
    outcome = attempt({ ...choice, rules, asks }, Math.max(0, replicas - placed));
    // While all pods have their places, none is open anywhere.
    const isComplete = !asks && replicas <= placed && outcome.targets !== undefined;
    if (outcome.allowed.length > 0 || isComplete) break;
  }
  const refusals = [...found, ...outcome.refusals].toSorted((a, b) => (a.cluster < b.cluster ? -1 : 1));
  const shares = sharesWhileShrinking(facts, outcome.targets);
  return {
    allowed: outcome.allowed,
    refusals,
    plan: {
      affinityName: choice.group.name,
      targets: outcome.targets,
      ...(shares === undefined ? {} : { shares }),
      tiers: choice.tiers,
    },
  };
}

/** One step down after the other would be in proportion to ever more rounded numbers: all of them are to the same ones. */
function sharesWhileShrinking(
  { placement, remembered }: PlacementFacts,
  targets: Counts | undefined,
): Counts | undefined {
  const { kind } = placement.division;
  const before = remembered?.targets;
  if ((kind !== 'dynamic' && kind !== 'aggregated') || before === undefined || targets === undefined) return undefined;
  const change = sum(targets) - sum(before);
  const shares = remembered?.shares ?? (change < 0 ? before : undefined);
  const isWithin = [...targets].every(([name, count]) => count <= (shares?.get(name) ?? 0));
  return change <= 0 && isWithin ? shares : undefined;
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
