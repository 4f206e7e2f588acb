import type { Pod } from '../kube/core-v1.ts';
import { type Taint, taintInWords } from '../kube/taints.ts';
import { clusterInWords } from '../api/cluster.ts';
import { toleratedMs } from './eviction-time.ts';
import type { MoveRules, PlacedMember } from '../placement/placed-pods.ts';
import { whyNotMoved, whyNotReplaced } from './replaceable.ts';
import type { Held, WantedMove } from './wanted-move.ts';

/** The taint that a pod may stay for the least time with, and that time in ms; undefined without any that it does not tolerate for ever. */
function shortestTaint(
  live: Pod,
  { clusterTolerations }: MoveRules,
  member: PlacedMember,
): { taint: Taint; forMs: number } | undefined {
  const all = [
    ...nodeTaintsOf(live, member).map((taint) => ({ taint, forMs: toleratedMs(live.spec.tolerations, taint) })),
    ...member.clusterTaints.map((taint) => ({ taint, forMs: toleratedMs(clusterTolerations, taint) })),
  ];
  return all.filter(({ forMs }) => forMs < Number.POSITIVE_INFINITY).toSorted((a, b) => a.forMs - b.forMs)[0];
}

/** All that stand against the pod, tolerated or not. */
export function taintsAgainst(pod: Pod, member: PlacedMember): readonly Taint[] {
  return [...nodeTaintsOf(pod, member), ...member.clusterTaints];
}

function nodeTaintsOf({ spec }: Pod, { nodeTaints }: PlacedMember): readonly Taint[] {
  return nodeTaints.get(spec.nodeName ?? '') ?? [];
}

/**
 * Why a pod stays in a member with taints of effect NoExecute; undefined when it is to be moved.
 * `sinceMs`: how long a taint has stood. `paused`: why pods of lost members are not moved at present, in words; taints that a policy
 * gave to a member that does not answer move none then either: no person has looked at it.
 */
export function whyItStaysTainted(
  live: Pod,
  rules: MoveRules,
  member: PlacedMember,
  sinceMs: (taint: Taint) => number,
  paused?: string,
): Held | 'void' | undefined {
  if (shortestTaint(live, rules, member) === undefined) return 'void';
  const answers = member.reachable !== false;
  const why = answers ? whyNotMoved(live) : whyNotReplaced(live, rules.failover?.onMemberLost?.action);
  if (why !== undefined) return { why };
  const found = shortestTaint(live, rules, answers || paused === undefined ? member : withoutPolicies(member));
  // Only policies want it moved.
  if (found === undefined) return { why: paused ?? '' };
  const rest = found.forMs - sinceMs(found.taint);
  return rest > 0 ? { why: `it tolerates ${taintInWords(found.taint)} for so long`, forMs: rest } : undefined;
}

function withoutPolicies(member: PlacedMember): PlacedMember {
  return { ...member, clusterTaints: member.clusterTaints.filter(({ policy }) => policy === undefined) };
}

export function taintMove(pod: Pod, member: PlacedMember, recheck: WantedMove['recheck']): WantedMove {
  const { name } = member;
  const taints = taintsAgainst(pod, member).map(taintInWords).join(', ');
  return {
    strategy: 'TaintNoExecute',
    pod,
    from: name,
    recheck,
    // A virtual node of another pool may have none of them; those that have them take no such pod.
    mayStayInMember: true,
    reason: 'TaintedPodMoved',
    heldReason: 'TaintedPodHeld',
    cause: `${clusterInWords(name)} has taints that it does not tolerate (${taints})`,
    outcome: (controller) => `it was evicted, so that ${controller} makes another one, which goes elsewhere`,
    stays: `${clusterInWords(name)} has taints that it does not tolerate (${taints}), and it stays there for now`,
  };
}
