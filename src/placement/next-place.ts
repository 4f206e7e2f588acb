import type { Candidate } from './candidates.ts';
import { choiceOf } from './choice-of.ts';
import type { Choice, Decision, Outcome, Place, PlacementFacts, Plan } from './decision.ts';
import { sum } from './highest-averages.ts';
import type { Counts } from './share.ts';
import { placeByScore } from './place-by-score.ts';
import { placeBySeat } from './place-by-seat.ts';
import { listInWords, type Refusal, refuseAll } from './placement-refusal.ts';
import { selectSpread } from './spread-selection.ts';
import { ofAllRevisions, ofRevision } from './workload.ts';

/**
 * Where the next pod of a workload may go. A function of its arguments only, so the same pod gets the same answer from
 * every replica of the program. Soft spread constraints give way as a whole when no cluster is left with them.
 */
export function nextPlace(facts: PlacementFacts): Decision {
  const found = decideNext(facts);
  const refusals = [...found.refused, ...found.refusals()].toSorted((a, b) => (a.cluster < b.cluster ? -1 : 1));
  return { allowed: found.allowed, refusals, plan: planOf(found) };
}

/** The best of the places that {@link nextPlace} allows, for those who read neither why not the others nor the plan. */
export function firstPlace(facts: PlacementFacts): Place | undefined {
  return decideNext(facts).allowed[0];
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
  const plan = planOf(decide(facts, placed, replicas, false));
  const grows = replicas > sum(remembered?.targets ?? ofAllRevisions(workload.pods));
  return grows && !roomIsKnown ? { ...plan, targets: remembered?.targets } : plan;
}

/** What came of a choice; `refused`: clusters that were out of the question. */
interface Found extends Outcome {
  readonly choice: Choice;
  readonly refused: readonly Refusal[];
}

function decideNext(facts: PlacementFacts): Found {
  const { workload, pod } = facts;
  const placed = sum(ofRevision(workload.pods, pod.revision));
  return decide(facts, placed, Math.max(workload.replicas ?? 0, placed + 1), true);
}

function decide(facts: PlacementFacts, placed: number, replicas: number, asks: boolean): Found {
  const { placement } = facts;
  const { choice, refusals: refused } = choiceOf(facts, placed, replicas);
  const hard = placement.spread.filter((rule) => rule.hard);
  const attempts = hard.length < placement.spread.length ? [placement.spread, hard] : [hard];
  let outcome: Outcome = { allowed: [], refusals: () => [] };
  for (const rules of attempts) {
    outcome = attempt({ ...choice, rules, asks }, Math.max(0, replicas - placed));
    // While all pods have their places, none is open anywhere.
    const isComplete = !asks && replicas <= placed && outcome.targets !== undefined;
    if (outcome.allowed.length > 0 || isComplete) break;
  }
  return { ...outcome, choice, refused };
}

function planOf({ choice: { facts, group, tiers }, targets }: Found): Plan {
  const shares = sharesWhileShrinking(facts, targets);
  return { affinityName: group.name, targets, ...(shares === undefined ? {} : { shares }), tiers };
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
  if (change > 0) return undefined;
  const shares = remembered?.shares ?? (change < 0 ? before : undefined);
  return [...targets].every(([name, count]) => count <= (shares?.get(name) ?? 0)) ? shares : undefined;
}

function attempt(choice: Choice, need: number): Outcome {
  const { facts, candidates, scores, rules } = choice;
  const { division } = facts.placement;
  const byWeight = division.kind === 'static' || division.kind === 'preferences';
  const selection = selectSpread(candidates, { rules, scores, need: byWeight ? undefined : need });
  if ('problem' in selection) {
    return { allowed: [], refusals: () => refuseAll(candidates, 'Spread', selection.problem) };
  }
  const { chosen } = selection;
  const narrowed = { ...choice, candidates: chosen };
  const outcome = division.kind === 'none' ? placeByScore(narrowed) : placeBySeat(narrowed);
  return { ...outcome, refusals: () => [...outcome.refusals(), ...notChosen(choice, chosen)] };
}

function notChosen({ candidates, rules }: Choice, chosen: readonly Candidate[]): Refusal[] {
  return refuseAll(
    candidates.filter((candidate) => !chosen.includes(candidate)),
    'Spread',
    `other clusters were chosen to spread pods over ${listInWords(rules.map(({ by }) => by))} as the policy says`,
  );
}
