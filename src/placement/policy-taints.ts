import type { ClusterTaint } from '../api/cluster-taint.ts';
import { isSameTaint } from '../api/cluster-taint.ts';
import type { ClusterTaintPolicy, ClusterTaintPolicySpec } from '../api/cluster-taint-policy.ts';
import type { MemberCluster } from '../api/member-cluster.ts';
import { MOST_TAINTS, type PolicyTaint } from '../api/member-cluster-status.ts';
import { conditionOf } from '../kube/conditions.ts';
import type { Condition } from '../kube/core-v1.ts';
import { timestamp } from '../kube/timestamps.ts';
import { compileAffinity } from './cluster-affinity.ts';
import { clusterOf } from '../api/cluster.ts';

type MatchConditions = ClusterTaintPolicySpec['addOnConditions'];
/** For how long a condition has been as it is, in ms. */
type HeldForMs = (condition: Condition) => number;

/**
 * The taints that a member is to have by policies, by Karmada's rules: the oldest policy first; a policy adds its taints when
 * all its conditions to add hold, removes them, and adds none, when all those to remove do, and otherwise leaves what is there. Unlike Karmada's,
 * they go with the policy, with the taint in it, and with its choice of the member.
 *
 * `policies`: all that can be read. `gone`: names of those that are certainly gone; taints of others stay. `now`: wall clock in ms, to be
 * written on them.
 */
export function policyTaints(
  member: MemberCluster,
  policies: readonly ClusterTaintPolicy[],
  gone: ReadonlySet<string>,
  now: number,
  heldForMs: HeldForMs,
): PolicyTaint[] {
  const holdsFor = (wanted: MatchConditions): number => holdForMs(wanted, member, heldForMs);
  const known = new Map(
    policies.map((policy) => [policy.metadata.name, { policy, verdict: verdictOn(policy, member, holdsFor) }]),
  );
  const taints = (member.status?.taints ?? []).flatMap((taint): PolicyTaint[] => {
    const found = known.get(taint.policy);
    if (found === undefined) return gone.has(taint.policy) ? [] : [taint];
    const wanted = found.policy.spec.taints.find((one) => isSameTaint(one, taint));
    if (wanted === undefined || found.verdict === 'remove') return [];
    return [{ ...policyTaint(wanted, taint.policy), timeAdded: taint.timeAdded }];
  });
  const adding = [...known.values()].flatMap(({ policy, verdict }) => (verdict === 'add' ? policy : []));
  for (const policy of adding.toSorted(byAge)) {
    for (const taint of policy.spec.taints) {
      const mine = policyTaint(taint, policy.metadata.name);
      const index = taints.findIndex((one) => isSameTaint(one, taint));
      const other = taints[index];
      if (other === undefined) {
        if (taints.length < MOST_TAINTS) taints.push({ ...mine, timeAdded: timestamp(now) });
      } else if (isOlder(policy, known.get(other.policy)?.policy))
        taints[index] = { ...mine, timeAdded: other.timeAdded };
    }
  }
  return taints;
}

/** What a policy says of its taints on a member; `keep`: those that are there stay, and none come. */
function verdictOn(
  { spec }: ClusterTaintPolicy,
  member: MemberCluster,
  holdsFor: (wanted: MatchConditions) => number,
): 'add' | 'keep' | 'remove' {
  const isFor =
    spec.targetClusters === undefined || compileAffinity(spec.targetClusters)(clusterOf(member)) === undefined;
  const removing = holdsFor(spec.removeOnConditions);
  if (!isFor || removing >= spec.removeAfterSeconds * 1_000) return 'remove';
  // Both lists may hold: added meanwhile, it would come and go with each process that has yet to see for how long.
  if (removing >= 0) return 'keep';
  return holdsFor(spec.addOnConditions) >= spec.addAfterSeconds * 1_000 ? 'add' : 'keep';
}

function policyTaint({ key, value, effect }: ClusterTaint, policy: string): Omit<PolicyTaint, 'timeAdded'> {
  return { key, ...(value === undefined ? {} : { value }), effect, policy };
}

/** For how long all of them have held, in ms; -1 when not all do, or there are none. */
function holdForMs(wanted: MatchConditions, member: MemberCluster, heldForMs: HeldForMs): number {
  if (wanted.length === 0) return -1;
  const held = wanted.map(({ conditionType, operator, statusValues }) => {
    const condition = conditionOf(member, conditionType);
    if (condition === undefined) return -1;
    const isListed = statusValues.some((value) => value === condition.status);
    return isListed === (operator === 'In') ? heldForMs(condition) : -1;
  });
  return Math.min(...held);
}

function isOlder(policy: ClusterTaintPolicy, other: ClusterTaintPolicy | undefined): boolean {
  return other !== undefined && byAge(policy, other) < 0;
}

function byAge(a: ClusterTaintPolicy, b: ClusterTaintPolicy): number {
  const [left = '', right = ''] = [a.metadata.creationTimestamp, b.metadata.creationTimestamp];
  if (left !== right) return left < right ? -1 : 1;
  return a.metadata.name.localeCompare(b.metadata.name);
}
