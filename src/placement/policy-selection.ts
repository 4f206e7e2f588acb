import type { Failover } from '../api/failover.ts';
import type { PlacementPolicy } from '../api/placement-policy.ts';
import { compilePlacement } from './compiled-placement.ts';
import type { CompiledPlacement } from './compiled-placement.ts';
import { federationPreferences } from './federation-preferences.ts';
import { burstPlacement, mayBurst } from './namespace-burst.ts';
import type { OwnerChain, TypedObject } from './owner-chain.ts';
import { policyProblems } from './policy-problems.ts';
import { compileSelector } from './resource-match.ts';
import type { MatchRank } from './resource-match.ts';

/** A policy ready for use; of a PlacementPolicy if it has a namespace. */
export interface CompiledPolicy {
  readonly policy: PlacementPolicy;
  readonly placement: CompiledPlacement;
  readonly rankOf: (object: TypedObject) => MatchRank;
}

/** Makes a policy ready for use, or tells field by field why it cannot be used. */
export function compilePolicy(policy: PlacementPolicy): CompiledPolicy | { problems: string[] } {
  const problems = policyProblems(policy);
  if (problems.length > 0) return { problems };
  const selectors = policy.spec.resourceSelectors.map((one) => compileSelector(one, policy.metadata.namespace));
  return {
    policy,
    placement: compilePlacement(policy.spec.placement),
    rankOf: (object) => Math.max(0, ...selectors.map((selector) => selector(object))) as MatchRank,
  };
}

/** Where the rules for a pod come from. */
export interface PolicySource {
  readonly kind: 'PlacementPolicy' | 'ClusterPlacementPolicy' | 'Annotation' | 'Namespace';
  /** Name of the policy, key of the annotation, or name of the namespace. */
  readonly name: string;
  readonly generation?: number;
}

/** What is to be done with a pod. */
export interface Rules {
  readonly placement: CompiledPlacement;
  /** Of a policy that says something about it. */
  readonly failover?: Failover;
  readonly source: PolicySource;
}

export interface Selection {
  /** Undefined when nothing says that the pod may leave the host. */
  readonly chosen: Rules | undefined;
  /** What is wrong with annotations that were passed over, for an Event. */
  readonly problem?: string;
}

/**
 * The rules for a pod: the PlacementPolicy of its namespace, else the Federation v1 annotations of its owners, else a
 * ClusterPlacementPolicy, else the label of its namespace. Of several policies of one kind the highest priority counts,
 * then the closest match (name, label, kind) with the pod or any of its owners, then the alphabet.
 */
export function selectPolicy(
  chain: OwnerChain,
  policies: Iterable<CompiledPolicy>,
  namespaceLabels: Readonly<Record<string, string>> | undefined,
): Selection {
  const namespace = chain[0].metadata.namespace;
  const [own, clusterWide]: CompiledPolicy[][] = [[], []];
  for (const one of policies) {
    if (one.policy.metadata.namespace === undefined) clusterWide?.push(one);
    else if (one.policy.metadata.namespace === namespace) own?.push(one);
  }
  const named = best(chain, own ?? []);
  if (named !== undefined) return { chosen: rulesOf(named, 'PlacementPolicy') };
  const federation = federationPreferences(chain);
  if (federation !== undefined && 'placement' in federation) {
    return { chosen: { placement: federation.placement, source: { kind: 'Annotation', name: federation.key } } };
  }
  const passedOver = federation === undefined ? {} : { problem: federation.problem };
  const general = best(chain, clusterWide ?? []);
  if (general !== undefined) {
    return { chosen: rulesOf(general, 'ClusterPlacementPolicy'), ...passedOver };
  }
  if (!mayBurst(namespaceLabels, chain)) return { chosen: undefined, ...passedOver };
  const source: PolicySource = { kind: 'Namespace', name: namespace ?? '' };
  return { chosen: { placement: burstPlacement(), source }, ...passedOver };
}

function best(chain: OwnerChain, policies: readonly CompiledPolicy[]): CompiledPolicy | undefined {
  let winner: { one: CompiledPolicy; rank: number } | undefined;
  for (const one of policies) {
    const rank = Math.max(...chain.map((object) => one.rankOf(object)));
    if (rank === 0) continue;
    if (winner === undefined || comesBefore({ one, rank }, winner)) winner = { one, rank };
  }
  return winner?.one;
}

type Match = { one: CompiledPolicy; rank: number };

function comesBefore(a: Match, b: Match): boolean {
  const [left, right] = [a.one.policy, b.one.policy];
  if (left.spec.priority !== right.spec.priority) return left.spec.priority > right.spec.priority;
  if (a.rank !== b.rank) return a.rank > b.rank;
  return left.metadata.name < right.metadata.name;
}

function rulesOf({ policy, placement }: CompiledPolicy, kind: PolicySource['kind']): Rules {
  const { name, generation } = policy.metadata;
  const { failover } = policy.spec;
  const source = { kind, name, ...(generation === undefined ? {} : { generation }) };
  return { placement, ...(failover === undefined ? {} : { failover }), source };
}
