import { DRAIN_TAINT } from '../api/marks.ts';
import type { Pod } from '../kube/core-v1.ts';
import { firstUntolerated } from '../kube/taints.ts';
import type { MoveRules, PlacedMember } from '../placement/placed-pods.ts';
import { whyNotMoved, whyNotReplaced } from './replaceable.ts';
import { whyUnasked, whyUnheard } from '../placement/lost-members.ts';
import type { Held, MoveWords } from './wanted-move.ts';

/** Whether the pod's virtual node is being drained. */
export function isOnDrained({ spec }: Pod, { drained }: PlacedMember): boolean {
  return drained.has(spec.nodeName ?? '');
}

/**
 * Why a pod stays on a virtual node that is being drained; undefined when it should be moved, `notWanted` when draining does not apply to it.
 * It goes only where the taints that the Node has, effects included, keep its successor off.
 */
export function whyItStaysDrained(live: Pod, rules: MoveRules, member: PlacedMember): Held | 'notWanted' | undefined {
  const taints = member.drained.get(live.spec.nodeName ?? '') ?? [];
  if (firstUntolerated(live.spec.tolerations ?? [], taints) === undefined) return 'notWanted';
  const own = whyUnasked(member) ?? (member.reachable === true ? whyNotMoved(live) : whyNotReplaced(live, rules));
  // It is in no hurry: what may serve all the time goes in order once that can be seen again.
  const why = own ?? whyUnheard(member);
  return why === undefined ? undefined : { why };
}

export function drainWords({ spec }: Pod): MoveWords {
  const cause = `virtual node ${spec.nodeName ?? ''} is to be emptied (taint ${DRAIN_TAINT})`;
  return { cause, outcome: 'which goes elsewhere', stays: `${cause}, and it stays there for now` };
}
