import { LOCAL } from '../api/cluster-tiers.ts';
import { type Condition, conditionNow } from '../api/conditions.ts';
import type { ClusterTaintPolicy, ClusterTaintPolicyStatus } from '../api/cluster-taint-policy.ts';
import type { MemberCluster } from '../api/member-cluster.ts';
import { conditionOf } from '../kube/conditions.ts';
import { compileAffinity } from './cluster-affinity.ts';
import { clusterOf } from '../api/cluster.ts';

/** The status of a policy for what was found out about it; times of conditions that stay as they are do not change. */
export function taintPolicyStatus(found: {
  metadata: { generation?: number };
  problems: readonly string[];
  policy: ClusterTaintPolicy | undefined;
  status: ClusterTaintPolicyStatus | undefined;
  /** Names of members that have taints of it. */
  taintedClusters: string[];
  members: readonly MemberCluster[];
  /** Wall clock in ms. */
  now: number;
}): ClusterTaintPolicyStatus {
  const { metadata, problems, policy, status: before, taintedClusters, members, now } = found;
  const { generation: observedGeneration = 0 } = metadata;
  const condition = (type: string, isTrue: boolean, reason: string, message: string): Condition => {
    const status = isTrue ? 'True' : 'False';
    return conditionNow(before, { type, status, observedGeneration, reason, message }, now);
  };
  const accepted =
    problems.length === 0
      ? condition('Accepted', true, 'Accepted', 'the policy is in use')
      : condition(
          'Accepted',
          false,
          'Invalid',
          `taints stay as they are until this is put right: ${problems.join('; ')}`,
        );
  const wrong = [...problems, ...(policy === undefined ? [] : whatItMisses(policy, members))].join('; ');
  const consistent =
    wrong === ''
      ? condition('Consistent', true, 'Consistent', 'no contradictions were found')
      : condition('Consistent', false, 'Contradictory', wrong);
  return { observedGeneration, conditions: [accepted, consistent], taintedClusters };
}

/** What in a policy has no effect because members, or their conditions, are not there, each with the field's path. */
function whatItMisses({ spec }: ClusterTaintPolicy, members: readonly MemberCluster[]): string[] {
  const { targetClusters = {}, addOnConditions, removeOnConditions } = spec;
  const { clusterNames = [], exclude = [] } = targetClusters;
  const names = new Set(members.map(({ metadata }) => metadata.name));
  const missing = [...new Set([...clusterNames, ...exclude])].filter((name) => !names.has(name));
  const path = 'spec.targetClusters';
  const whyNot = compileAffinity(targetClusters);
  const chosen = members.filter((member) => whyNot(clusterOf(member)) === undefined);
  const types = [...new Set([...addOnConditions, ...removeOnConditions].map(({ conditionType }) => conditionType))];
  const unknown = types.filter((type) => chosen.every((member) => conditionOf(member, type) === undefined));
  return [
    ...missing.map((name) =>
      name === LOCAL
        ? `${path}: the host's own nodes get no taints by policies`
        : `${path}: there is no member ${name}`,
    ),
    ...(members.length > 0 && chosen.length === 0 && missing.length === 0
      ? [`${path}: chooses none of the members there are`]
      : []),
    ...(chosen.length > 0 ? unknown.map((type) => `no member that it is for has a condition ${type}`) : []),
  ];
}
