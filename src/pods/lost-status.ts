import { MIRRORED_CONDITION } from '../api/marks.ts';
import { conditionOf } from '../kube/conditions.ts';
import type { Condition, Pod, PodStatus } from '../kube/core-v1.ts';
import { lostContainer } from './lost-container.ts';

/**
 * The final status of a host pod whose member pod is gone without having told how it ended. Containers that had ended
 * keep what the member said; the others become terminated with reason MemberStatusLost, never with exit code 0.
 */
export function lostStatus(hostPod: Pod, reason: string, message: string, now: string): PodStatus {
  const status: PodStatus = { ...hostPod.status, phase: 'Failed', reason, message };
  const { containerStatuses, initContainerStatuses, ephemeralContainerStatuses } = status;
  if (containerStatuses !== undefined) status.containerStatuses = containerStatuses.map(lostContainer);
  if (initContainerStatuses !== undefined) status.initContainerStatuses = initContainerStatuses.map(lostContainer);
  if (ephemeralContainerStatuses !== undefined)
    status.ephemeralContainerStatuses = ephemeralContainerStatuses.map(lostContainer);
  status.conditions = [
    notReady(hostPod, 'Ready', now),
    notReady(hostPod, 'ContainersReady', now),
    conditionOf(hostPod, 'DisruptionTarget') ?? {
      type: 'DisruptionTarget',
      status: 'True',
      reason,
      message,
      lastTransitionTime: now,
    },
  ];
  const mirrored = conditionOf(hostPod, MIRRORED_CONDITION);
  if (mirrored !== undefined) status.conditions.push(mirrored);
  return status;
}

/** The final status of a host pod that is deleted before it had a member pod, as a kubelet ends a Pending pod: Failed. */
export function neverStartedStatus(hostPod: Pod, member: string, now: string): PodStatus {
  const others = (hostPod.status?.conditions ?? []).filter(
    ({ type }) => type !== 'Ready' && type !== 'ContainersReady',
  );
  return {
    ...hostPod.status,
    phase: 'Failed',
    reason: 'NeverStarted',
    message: `The pod was deleted before it was started in cluster "${member}".`,
    conditions: [notReady(hostPod, 'Ready', now), notReady(hostPod, 'ContainersReady', now), ...others],
  };
}

function notReady(hostPod: Pod, type: string, now: string): Condition {
  const previous = conditionOf(hostPod, type);
  if (previous?.status === 'False' && previous.reason === 'PodFailed') return previous;
  return {
    type,
    status: 'False',
    reason: 'PodFailed',
    lastTransitionTime: previous?.status === 'False' ? (previous.lastTransitionTime ?? now) : now,
  };
}
