import type { OverridePolicy, OverridePolicySpec } from '../api/override-policy.ts';
import type { Overriders } from '../api/overriders.ts';
import { compileAffinity } from '../placement/cluster-affinity.ts';
import type { Cluster } from '../api/cluster.ts';
import { OverrideError } from './override-error.ts';
import { type ObjectIdentity, type MatchRank, type OverrideSubject, selectPolicies } from './selection.ts';
import { resolveVariables } from './variables.ts';

/** One rule of a policy as it is applied to an object in a member: variables are resolved. */
export interface PlannedRule {
  /** `ClusterOverridePolicy name`, or `OverridePolicy namespace/name`. */
  readonly policy: string;
  /** Its place in overrideRules. */
  readonly rule: number;
  readonly rank: MatchRank;
  readonly applyTo: OverridePolicySpec['applyTo'];
  readonly overriders: Overriders;
}

/** Why an object cannot be rendered for a member. `message` is for users and says all of it. */
export interface OverrideRefusal {
  readonly policy: string;
  readonly path: string;
  readonly message: string;
}

export type PlanOutcome = { rules: PlannedRule[] } | { refused: OverrideRefusal } | { unknown: ObjectIdentity };

/** The rules that apply to an object of the host in a member, in the order they are applied. */
export function planRules(subject: OverrideSubject, policies: Iterable<OverridePolicy>, member: Cluster): PlanOutcome {
  const selection = selectPolicies(subject, policies);
  if ('unknown' in selection) return selection;
  const rules: PlannedRule[] = [];
  for (const { policy, rank } of selection.selected) {
    const { applyTo, overrideRules } = policy.spec;
    for (const [rule, { targetCluster, overriders }] of overrideRules.entries()) {
      if (targetCluster !== undefined && compileAffinity(targetCluster)(member) !== undefined) continue;
      const name = policyInWords(policy);
      try {
        rules.push({ policy: name, rule, rank, applyTo, overriders: resolveVariables(overriders, member) });
      } catch (error) {
        if (!(error instanceof OverrideError)) throw error;
        return { refused: refusalOf(error, { policy: name, rule }, subject, member.name) };
      }
    }
  }
  return { rules };
}

const CLUSTER_KIND = 'ClusterOverridePolicy';

/** As rules name it. */
export function policyInWords({ kind, metadata }: OverridePolicy): string {
  return kind === CLUSTER_KIND ? `${kind} ${metadata.name}` : `${kind} ${metadata.namespace ?? ''}/${metadata.name}`;
}

/** Written by an administrator of the host, and so trusted with what users of a namespace are not. */
export function isOfClusterPolicy({ policy }: { policy: string }): boolean {
  return policy.startsWith(`${CLUSTER_KIND} `);
}

export function refusalOf(
  error: OverrideError,
  { policy, rule }: { policy: string; rule: number },
  { namespace, identities: [object] }: OverrideSubject,
  member: string,
): OverrideRefusal {
  const path = `overrideRules[${rule}].${error.path}`;
  const what = `${object.kind} ${namespace}/${object.name} cannot be made in cluster "${member}"`;
  const message = `${policy}, ${path}: ${error.message}, so ${what}. This does not pass by itself. Correct the policy.`;
  return { policy, path, message };
}
