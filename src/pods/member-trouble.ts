import type { ContainerStatus, PodStatus } from '../api/wire.ts';
import type { Hold } from './decide.ts';
import { MEMBER_SCHEDULED_CONDITION } from './host-status.ts';

/** Why a kubelet cannot make a container although the API server took the pod. The back-off follows one of the others. */
const CANNOT_START = new Set([
  'CreateContainerConfigError',
  'CreateContainerError',
  'ErrImageNeverPull',
  'ErrImagePull',
  'ErrRegistryUnavailable',
  'ImageInspectError',
  'ImagePullBackOff',
  'InvalidImageName',
  'RegistryUnavailable',
  'RunContainerError',
  'SignatureValidationFailed',
]);

/**
 * What a new status says that an Event should tell: the member finds no node, or cannot make a container. Each is told
 * when it comes up, not while it lasts: a pull that fails again, or waits for its next try, is no news.
 */
export function newTroubles(before: PodStatus | undefined, after: PodStatus | undefined, member: string): Hold[] {
  const troubles: Hold[] = [];
  const unscheduled = unscheduledIn(after);
  if (unscheduled !== undefined && unscheduledIn(before) === undefined) {
    troubles.push({ reason: `Member${unscheduled.reason ?? 'Unschedulable'}`, message: unscheduled.message ?? '' });
  }
  for (const field of ['initContainerStatuses', 'containerStatuses', 'ephemeralContainerStatuses'] as const) {
    for (const status of after?.[field] ?? []) {
      const reason = stoppedBy(status);
      const known = before?.[field]?.find(({ name }) => name === status.name);
      if (reason === undefined || (known !== undefined && stoppedBy(known) !== undefined)) continue;
      const words = status.state?.waiting?.message ?? reason;
      troubles.push({ reason, message: `Cluster "${member}", container ${status.name}: ${words}` });
    }
  }
  return troubles;
}

function unscheduledIn(status: PodStatus | undefined): { reason?: string; message?: string } | undefined {
  return status?.conditions?.find(
    (condition) => condition.type === MEMBER_SCHEDULED_CONDITION && condition.status === 'False',
  );
}

function stoppedBy(status: ContainerStatus): string | undefined {
  const reason = status.state?.waiting?.reason;
  return reason !== undefined && CANNOT_START.has(reason) ? reason : undefined;
}
