import { UNREACHABLE_TAINT } from '../api/marks.ts';
import type { Pod } from '../kube/core-v1.ts';
import { timestamp } from '../kube/timestamps.ts';
import { clusterInWords } from '../api/cluster.ts';
import { durationInWords, parseDuration } from '../placement/duration.ts';
import { toleratedMs } from '../kube/taints.ts';
import type { MoveRules } from '../placement/placed-pods.ts';
import { whyNotReplaced } from './replaceable.ts';
import type { Held, MoveWords } from './wanted-move.ts';

/** Default of Kubernetes' tolerationSeconds for unreachable nodes (ms). */
const LOST_AFTER_MS = 300_000;
/**
 * Least time for which this process itself must have seen the member lost (ms): the condition may have been written by an
 * earlier process and not been probed since.
 */
export const CONFIRM_MS = 15_000;

/** How long its member has to be lost before a pod may be replaced, in ms; its own toleration may ask for longer. */
export function replacedAfterMs({ failover }: Pick<MoveRules, 'failover'>): number {
  const after = failover?.onMemberLost?.after;
  return Math.max(CONFIRM_MS, after === undefined ? LOST_AFTER_MS : parseDuration(after));
}

/**
 * Why a pod of a member that is lost for `lostMs` (not counting what was before the end of a pause) stays; undefined when it is to be
 * replaced. `live`: as it is in the host, whole.
 */
export function whyItStaysLost(live: Pod, rules: MoveRules, lostMs: number): Held | undefined {
  const why = whyNotReplaced(live, rules);
  if (why !== undefined) return { why };
  const own = toleratedMs(live.spec.tolerations, { key: UNREACHABLE_TAINT });
  if (own === Number.POSITIVE_INFINITY) return { why: `it tolerates ${UNREACHABLE_TAINT} for ever` };
  const rest = Math.max(own, replacedAfterMs(rules)) - lostMs;
  return rest > 0 ? { why: `it tolerates ${UNREACHABLE_TAINT} for ${durationInWords(own)}`, forMs: rest } : undefined;
}

export function lostWords(member: string, since: number): MoveWords {
  return {
    cause: `${clusterInWords(member)} has not answered since ${timestamp(since)}`,
    outcome: `which goes elsewhere. It ends in ${member} as soon as that answers again`,
    stays: `${clusterInWords(member)} does not answer; the pod stays what it is, and may run there`,
  };
}
