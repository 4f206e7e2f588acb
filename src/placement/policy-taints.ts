import type { ClusterTaint } from '../api/cluster-taint.ts';
import { isSameTaint } from '../api/cluster-taint.ts';
import type { ClusterTaintPolicy, ClusterTaintPolicySpec } from '../api/cluster-taint-policy.ts';
import type { MemberCluster } from '../api/member-cluster.ts';
import { MOST_TAINTS, type PolicyTaint } from '../api/member-cluster-status.ts';
import { conditionOf } from '../kube/conditions.ts';
import { timestamp } from '../kube/timestamps.ts';
import { compileAffinity } from './cluster-affinity.ts';
import { clusterOf } from './cluster.ts';

type MatchConditions = ClusterTaintPolicySpec['addOnConditions'];

/** What is known of a policy of that name. `unknown`: it is there and cannot be read, or it is not certain that it is gone. */
export type KnownPolicy = ClusterTaintPolicy | 'unknown' | undefined;

/**
 * The taints that a member is to have by policies, by Karmada's rules: the oldest policy first; a policy adds its taints when
 * all its conditions to add hold, removes them when all those to remove do, and otherwise leaves what is there. Unlike Karmada's,
 * they go with the policy, with the taint in it, and with its choice of the member.
 *
 * `policies`: all that can be read. `now`: wall clock in ms.
 */
export function policyTaints(
  member: MemberCluster,
  policies: readonly ClusterTaintPolicy[],
  known: (name: string) => KnownPolicy,
  now: number,
): PolicyTaint[] {
  const before = member.status?.taints ?? [];
  const kept = before.flatMap((taint): PolicyTaint[] => {
    const policy = known(taint.policy);
    if (policy === 'unknown') return [taint];
    const wanted = policy?.spec.taints.find((one) => isSameTaint(one, taint));
    if (policy === undefined || wanted === undefined || !isFor(policy, member) || removes(policy, member, now))
      return [];
    return [{ ...policyTaint(wanted, taint.policy), timeAdded: taint.timeAdded }];
  });
  const taints = [...kept];
  for (const policy of policies.toSorted(byAge)) {
    if (!adds(policy, member, now) || !isFor(policy, member) || removes(policy, member, now)) continue;
    for (const taint of policy.spec.taints) {
      const mine = policyTaint(taint, policy.metadata.name);
      const index = taints.findIndex((one) => isSameTaint(one, taint));
      const other = taints[index];
      if (other === undefined) {
        if (taints.length < MOST_TAINTS) taints.push({ ...mine, timeAdded: timestamp(now) });
      } else if (isOlder(policy, known(other.policy))) taints[index] = { ...mine, timeAdded: other.timeAdded };
    }
  }
  return taints;
}

function policyTaint({ key, value, effect }: ClusterTaint, policy: string): Omit<PolicyTaint, 'timeAdded'> {
  return { key, ...(value === undefined ? {} : { value }), effect, policy };
}

function isFor({ spec }: ClusterTaintPolicy, member: MemberCluster): boolean {
  return spec.targetClusters === undefined || compileAffinity(spec.targetClusters)(clusterOf(member)) === undefined;
}

function adds({ spec }: ClusterTaintPolicy, member: MemberCluster, now: number): boolean {
  return holdForMs(spec.addOnConditions, member, now) >= spec.addAfterSeconds * 1_000;
}

function removes({ spec }: ClusterTaintPolicy, member: MemberCluster, now: number): boolean {
  return holdForMs(spec.removeOnConditions, member, now) >= spec.removeAfterSeconds * 1_000;
}

/** For how long all of them have held, in ms; -1 when not all do, or there are none. A clock behind that of the conditions is 0. */
function holdForMs(wanted: MatchConditions, member: MemberCluster, now: number): number {
  if (wanted.length === 0) return -1;
  const since = wanted.map(({ conditionType, operator, statusValues }) => {
    const condition = conditionOf(member, conditionType);
    if (condition === undefined) return undefined;
    const isListed = statusValues.some((value) => value === condition.status);
    return isListed === (operator === 'In') ? Date.parse(condition.lastTransitionTime ?? '') : undefined;
  });
  if (since.some((at) => at === undefined)) return -1;
  return Math.max(0, now - Math.max(...since.map((at = now) => (Number.isNaN(at) ? now : at))));
}

function isOlder(policy: ClusterTaintPolicy, other: KnownPolicy): boolean {
  return other !== undefined && other !== 'unknown' && byAge(policy, other) < 0;
}

function byAge(a: ClusterTaintPolicy, b: ClusterTaintPolicy): number {
  const [left = '', right = ''] = [a.metadata.creationTimestamp, b.metadata.creationTimestamp];
  if (left !== right) return left < right ? -1 : 1;
  return a.metadata.name.localeCompare(b.metadata.name);
}
