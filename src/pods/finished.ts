import type { ContainerStatus, Pod } from '../kube/core-v1.ts';

/**
 * Whether a member pod that finished while being deleted did so because of that deletion: some container ended at or
 * after the moment the deletion was asked for (`deletionTimestamp` minus the grace period). The kubelet reports such a
 * pod as Succeeded when its processes exit 0 on SIGTERM; its work was cut short all the same.
 */
export function wasCutShort(memberPod: Pod): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds = 0 } = memberPod.metadata;
  if (deletionTimestamp === undefined) return false;
  const askedAt = Date.parse(deletionTimestamp) - deletionGracePeriodSeconds * 1000;
  const statuses = memberPod.status?.containerStatuses ?? [];
  if (statuses.length === 0) return true;
  return statuses.some((status) => endedAt(status) >= askedAt);
}

function endedAt(status: ContainerStatus): number {
  const finishedAt = status.state?.terminated?.finishedAt;
  return finishedAt === undefined ? Number.POSITIVE_INFINITY : Date.parse(finishedAt);
}
