import { isReady } from '../kube/conditions.ts';
import type { Pod } from '../kube/core-v1.ts';
import { type Taint, taintInWords } from '../kube/taints.ts';
import { clusterInWords } from '../api/cluster.ts';
import { toleratedMs } from './eviction-time.ts';
import type { MoveRules, PlacedMember } from '../placement/placed-pods.ts';
import { whyNotMoved, whyNotReplaced } from './replaceable.ts';
import { whyUnheard } from './unheard-member.ts';
import type { Held, WantedMove } from './wanted-move.ts';

/** How long a taint of that virtual node, or of the member as a whole (undefined), has stood against the pod, in ms. */
type SinceMs = (taint: Taint, node: string | undefined) => number;

/** The taint that is the first to move the pod, and in how many ms; undefined without any that it does not tolerate for ever. */
function soonestTaint(
  live: Pod,
  { clusterTolerations }: MoveRules,
  member: PlacedMember,
  sinceMs: SinceMs,
): { taint: Taint; restMs: number } | undefined {
  const { nodeName, tolerations } = live.spec;
  const all = [
    ...nodeTaintsOf(live, member).map((taint) => ({
      taint,
      restMs: toleratedMs(tolerations, taint) - sinceMs(taint, nodeName),
    })),
    ...member.clusterTaints.map((taint) => ({
      taint,
      restMs: toleratedMs(clusterTolerations, taint) - sinceMs(taint, undefined),
    })),
  ];
  return all.filter(({ restMs }) => restMs < Number.POSITIVE_INFINITY).toSorted((a, b) => a.restMs - b.restMs)[0];
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
 * `paused`: why pods of lost members are not moved at present, in words; taints that a policy
 * gave to a member that does not answer move none then either: no person has looked at it.
 */
export function whyItStaysTainted(
  live: Pod,
  rules: MoveRules,
  member: PlacedMember,
  sinceMs: SinceMs,
  paused?: string,
): Held | 'notWanted' | undefined {
  if (soonestTaint(live, rules, member, sinceMs) === undefined) return 'notWanted';
  const answers = member.reachable !== false;
  const own = answers ? whyNotMoved(live) : whyNotReplaced(live, rules);
  // What is shown as not Ready by now goes: so a person says that a member is gone of which nobody here can tell.
  const why = own ?? (isReady(live) ? whyUnheard(member) : undefined);
  if (why !== undefined) return { why };
  const counted = answers || paused === undefined ? member : withoutPolicies(member);
  const found = soonestTaint(live, rules, counted, sinceMs);
  // Only policies want it moved.
  if (found === undefined) return { why: paused ?? '' };
  const { taint, restMs } = found;
  return restMs > 0 ? { why: `it tolerates ${taintInWords(taint)} for so long`, forMs: restMs } : undefined;
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
