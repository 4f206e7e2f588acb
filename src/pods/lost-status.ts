import { MIRRORED_CONDITION } from '../api/marks.ts';
import type { Condition, ContainerStatus, Pod, PodStatus } from '../api/wire.ts';
import { conditionOf } from './host-status.ts';

/** Exit code for containers whose real one can no longer be learned; the kubelet uses the same for unknown ones. */
export const LOST_EXIT_CODE = 137;

/**
 * The final status of a host pod whose member pod is gone without having told how it ended. Containers that had ended
 * keep what the member said; the others become terminated with reason MemberStatusLost, never with exit code 0.
 */
export function lostStatus(hostPod: Pod, reason: string, message: string, now: string): PodStatus {
  const status: PodStatus = { ...hostPod.status, phase: 'Failed', reason, message };
  const { containerStatuses, initContainerStatuses, ephemeralContainerStatuses } = status;
  if (containerStatuses !== undefined) status.containerStatuses = containerStatuses.map(lost);
  if (initContainerStatuses !== undefined) status.initContainerStatuses = initContainerStatuses.map(lost);
  if (ephemeralContainerStatuses !== undefined)
    status.ephemeralContainerStatuses = ephemeralContainerStatuses.map(lost);
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

function lost(status: ContainerStatus): ContainerStatus {
  if (status.state?.running === undefined) return { ...status, ready: false };
  const { startedAt } = status.state.running;
  const terminated = {
    exitCode: LOST_EXIT_CODE,
    reason: 'MemberStatusLost',
    message: 'The container ran in a member cluster and vanished there before its exit code could be read.',
    ...(startedAt === undefined ? {} : { startedAt }),
    ...(status.containerID === undefined ? {} : { containerID: status.containerID }),
  };
  return { ...status, ready: false, started: false, state: { terminated } };
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
