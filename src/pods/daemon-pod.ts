import { MIRRORED_CONDITION } from '../api/marks.ts';
import { isSystemNamespace } from '../api/namespace-mapping.ts';
import { conditionOf } from '../kube/conditions.ts';
import type { Condition, Pod, PodStatus } from '../kube/core-v1.ts';
import { controllerOf, isDaemonSet } from '../kube/owner-references.ts';

const IGNORED_REASON = 'DaemonSetIgnored';

export function isDaemonPod(pod: Pod): boolean {
  const controller = controllerOf(pod);
  return controller !== undefined && isDaemonSet(controller);
}

/**
 * Whether the pod is one of a DaemonSet that is not to run in the member. Those of the host's own system never are:
 * their namespaces exist in no member.
 */
export function ignoresPod(pod: Pod, policy: 'Ignore' | 'Run'): boolean {
  return isDaemonPod(pod) && (policy === 'Ignore' || isSystemNamespace(pod.metadata.namespace ?? ''));
}

/** The pod is shown as one that does not run here, and never had a copy. */
export function isShownIgnored(pod: Pod): boolean {
  const mirrored = conditionOf(pod, MIRRORED_CONDITION);
  return mirrored?.status === 'False' && mirrored.reason === IGNORED_REASON;
}

/**
 * What a pod of a DaemonSet shows that does not run in the member: ready, so that roll-outs end and nobody is alarmed,
 * with no container and no address, and with the truth in reason and message. Failed or Succeeded it would be replaced
 * for ever; Pending it would use up what may be unavailable in a roll-out.
 */
export function ignoredStatus(pod: Pod, member: string, now: string): PodStatus {
  const message =
    `Pods of DaemonSets do not run in cluster "${member}". This one counts as ready, so that its DaemonSet is not ` +
    'held up; nothing runs. See spec.daemonSets of the MemberCluster.';
  const condition = (type: string, status: 'True' | 'False'): Condition => {
    const before = conditionOf(pod, type);
    // What is there already stays byte for byte: API servers add empty fields.
    if (before?.status === status && before.reason === IGNORED_REASON && before.message === message) return before;
    const lastTransitionTime = before?.status === status ? (before.lastTransitionTime ?? now) : now;
    return { type, status, reason: IGNORED_REASON, message, lastTransitionTime };
  };
  return {
    ...pod.status,
    phase: 'Running',
    reason: IGNORED_REASON,
    message,
    conditions: [condition('Ready', 'True'), condition(MIRRORED_CONDITION, 'False')],
  };
}
