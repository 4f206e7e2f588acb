import { SILENT_MS } from '../api/fencing.ts';
import { GANG_LABEL, OUT_OF_SERVICE_TAINT } from '../api/marks.ts';
import type { Pod } from '../kube/core-v1.ts';
import { type Taint, taintInWords, toleratedMs } from '../kube/taints.ts';
import { clusterInWords } from '../api/cluster.ts';
import type { MoveRules, PlacedMember } from '../placement/placed-pods.ts';
import { whyNotMadeAnew } from './replaceable.ts';
import type { Held, MoveWords } from './wanted-move.ts';

/**
 * The member with those words of an administrator that count for the descheduler. `lostMs`: how long it has seen the member lost itself, by
 * its condition Reachable. The word that is stored may be of a former process, and stays while the member answers with errors.
 */
export function withWordsThatCount(member: PlacedMember, lostMs: number): PlacedMember {
  return member.outOfService.size === 0 || lostMs >= SILENT_MS ? member : { ...member, outOfService: new Map() };
}

/** Whether an administrator says of the pod's virtual node that nothing runs there any more, and that counts. */
export function isOutOfService(pod: Pod, member: PlacedMember): boolean {
  return member.outOfService.has(pod.spec.nodeName ?? '');
}

/**
 * Why a pod on a virtual node that is out of service stays; undefined when it is to be replaced, which pods are, too, that must not
 * run twice: by the administrator's word they do not run. `sinceMs`: how long a taint has stood.
 */
export function whyItStaysOutOfService(
  live: Pod,
  { failover }: MoveRules,
  member: PlacedMember,
  sinceMs: (taint: Taint) => number,
): Held | 'notWanted' | undefined {
  const taints = member.outOfService.get(live.spec.nodeName ?? '');
  if (taints === undefined) return 'notWanted';
  if (failover?.onMemberLost?.action === 'Hold') return { why: 'its policy says Hold' };
  const why = whyNotMadeAnew(live);
  if (why !== undefined) return { why: `${why}; kubectl delete pod ends it at once` };
  const rests = taints.map((taint) => ({ taint, forMs: toleratedMs(live.spec.tolerations, taint) - sinceMs(taint) }));
  const [soonest] = rests.toSorted((a, b) => a.forMs - b.forMs);
  if (soonest === undefined || soonest.forMs <= 0) return undefined;
  const { taint, forMs } = soonest;
  if (forMs === Number.POSITIVE_INFINITY) return { why: `it tolerates ${taintInWords(taint)} for ever` };
  return { why: `it tolerates ${taintInWords(taint)} for so long`, forMs };
}

export function outOfServiceWords(pod: Pod, member: string): MoveWords {
  const isOut = `${pod.spec.nodeName ?? ''} is out of service (taint ${OUT_OF_SERVICE_TAINT})`;
  return {
    // Those of a gang have one place together: the first ones of it find none while the others are where they are.
    leavesAnyway: pod.metadata.labels?.[GANG_LABEL] !== undefined,
    cause: `${clusterInWords(member)} does not answer, and ${isOut}`,
    outcome: 'which goes elsewhere',
    stays: `${isOut}, and it stays there for now`,
  };
}
