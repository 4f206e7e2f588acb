import type { Decision, PlacementFacts } from './decision.ts';
import type { RefusalReason } from './placement-refusal.ts';
import { spreadToMend } from './spread-violation.ts';

/** Why a pod that runs would be elsewhere if it came now. */
export type Displacement = 'Repatriate' | 'DivisionDrift' | 'PolicyChanged' | 'SpreadViolation';

export interface BetterPlace {
  readonly strategy: Displacement;
  /** Where it would go first. */
  readonly cluster: string;
  /** Why not where it is, without the cluster's name. */
  readonly why: string;
}

/** It is not known whether there is a better one, and why, in words. */
export interface PlaceUnknown {
  readonly unknown: string;
}

/** What an edit of policies, or of the labels of clusters, leaves behind. That a cluster is tainted, full or avoided is for pods that come. */
const NOT_CHOSEN: ReadonlySet<RefusalReason> = new Set(['NotSelected', 'OtherGroup', 'NoShare']);
/** The cluster has more pods than it is to have. */
const TOO_MANY: ReadonlySet<RefusalReason> = new Set(['HasItsShare', 'AtMax']);

/**
 * Where a pod that is in `from` would go instead if it came now, by the decision about one like it without it, for the first reason that
 * counts. Undefined where it is as good as anywhere: equal clusters, and better scores, are no reason to move what runs.
 */
export function betterPlace(
  facts: PlacementFacts,
  decision: Decision,
  from: string,
  counts: (reason: Displacement) => boolean = () => true,
): BetterPlace | undefined {
  const found = displacedBy(decision, from);
  if (found !== undefined && counts(found.strategy)) return found;
  const [first] = decision.allowed;
  const why = first !== undefined && counts('SpreadViolation') ? spreadToMend(facts, decision, from) : undefined;
  return first === undefined || why === undefined
    ? undefined
    : { strategy: 'SpreadViolation', cluster: first.cluster, why };
}

function displacedBy({ allowed, refusals, plan }: Decision, from: string): BetterPlace | undefined {
  const [first] = allowed;
  const refusal = refusals.find(({ cluster }) => cluster === from);
  if (first === undefined || refusal === undefined) return undefined;
  const { reason, message: why } = refusal;
  const found = (strategy: Displacement): BetterPlace => ({ strategy, cluster: first.cluster, why });
  if (NOT_CHOSEN.has(reason)) return found('PolicyChanged');
  if (TOO_MANY.has(reason)) return found('DivisionDrift');
  const [tier, better] = [plan.tiers.get(from), plan.tiers.get(first.cluster)];
  const isEarlier = tier !== undefined && better !== undefined && better < tier;
  return reason === 'LaterTier' && isEarlier ? found('Repatriate') : undefined;
}
