import { isReady } from '../kube/conditions.ts';
import type { Pod } from '../kube/core-v1.ts';
import { type Taint, taintInWords, toleratedMs } from '../kube/taints.ts';
import { clusterInWords } from '../api/cluster.ts';
import { CONFIRM_MS } from './member-lost.ts';
import type { MoveRules, PlacedMember } from '../placement/placed-pods.ts';
import { whyNotMoved, whyNotReplaced } from './replaceable.ts';
import { whyUnasked, whyUnheard } from '../placement/lost-members.ts';
import type { Held, MoveWords } from './wanted-move.ts';

/** How long a taint of that virtual node, or of the member as a whole (undefined), has stood against the pod, in ms. */
type SinceMs = (taint: Taint, node: string | undefined) => number;

/** Of moves for loss. */
export interface Pause {
  /** Why they are paused at present, in words. */
  readonly why: string | undefined;
  /** For how long they have not been, in ms. */
  readonly unpausedForMs: number;
}
const NO_PAUSE: Pause = { why: undefined, unpausedForMs: Number.POSITIVE_INFINITY };

/** The taint that is the first to move the pod, and in how many ms; undefined without any that it does not tolerate for ever. */
function soonestTaint(
  live: Pod,
  { clusterTolerations }: MoveRules,
  member: PlacedMember,
  sinceMs: SinceMs,
  { unpausedForMs }: Pause,
): { taint: Taint; restMs: number } | undefined {
  const { nodeName, tolerations } = live.spec;
  // What a former process or a pause left says nothing until the member has been asked again.
  const isUnsure = ({ policy }: { policy?: string }): boolean => policy !== undefined && member.reachable === false;
  const clusterRestMs = (taint: PlacedMember['clusterTaints'][number]): number => {
    const tolerated = toleratedMs(clusterTolerations, taint);
    const forMs = sinceMs(taint, undefined);
    return isUnsure(taint) ? Math.max(tolerated, CONFIRM_MS) - Math.min(forMs, unpausedForMs) : tolerated - forMs;
  };
  const all = [
    ...nodeTaintsOf(live, member).map((taint) => ({
      taint,
      restMs: toleratedMs(tolerations, taint) - sinceMs(taint, nodeName),
    })),
    ...member.clusterTaints.map((taint) => ({ taint, restMs: clusterRestMs(taint) })),
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
 * Taints that a policy gave to a member that does not answer move none while moves for loss are paused: no person has looked at it.
 * Nor do they at once after that, or after a restart: that member may only have yet to be asked.
 */
export function whyItStaysTainted(
  live: Pod,
  rules: MoveRules,
  member: PlacedMember,
  sinceMs: SinceMs,
  pause = NO_PAUSE,
): Held | 'notWanted' | undefined {
  if (soonestTaint(live, rules, member, sinceMs, pause) === undefined) return 'notWanted';
  const answers = member.reachable === true;
  const own = whyUnasked(member) ?? (answers ? whyNotMoved(live) : whyNotReplaced(live, rules));
  // What is shown as not Ready by now goes: so a person says that a member is gone of which nobody here can tell.
  const why = own ?? (isReady(live) ? whyUnheard(member) : undefined);
  if (why !== undefined) return { why };
  const counted = answers || pause.why === undefined ? member : withoutPolicies(member);
  const found = soonestTaint(live, rules, counted, sinceMs, pause);
  // Only policies want it moved.
  if (found === undefined) return { why: pause.why ?? '' };
  const { taint, restMs } = found;
  return restMs > 0 ? { why: `it tolerates ${taintInWords(taint)} for so long`, forMs: restMs } : undefined;
}

function withoutPolicies(member: PlacedMember): PlacedMember {
  return { ...member, clusterTaints: member.clusterTaints.filter(({ policy }) => policy === undefined) };
}

export function taintWords(pod: Pod, member: PlacedMember): MoveWords {
  const taints = taintsAgainst(pod, member).map(taintInWords).join(', ');
  const cause = `${clusterInWords(member.name)} has taints that it does not tolerate (${taints})`;
  return { cause, outcome: 'which goes elsewhere', stays: `${cause}, and it stays there for now` };
}
