import type { ContainerStatus, Pod } from '../kube/core-v1.ts';

/**
 * Whether a member pod that finished while being deleted did so because of that deletion: some container ended at or
 * after the moment the deletion was asked for (`deletionTimestamp` minus the grace period). The kubelet reports such a
 * pod as Succeeded when its processes exit 0 on SIGTERM; its work was cut short all the same.
 *
 * The one time is by the node's clock, the other by the API server's. Behind a clock that is slow such a pod is Succeeded, as it always is
 * on a node of its own cluster, where a Job counts it as done. No margin is added for that, nor does condition DisruptionTarget
 * tell: a pod may end by itself right before it is evicted, and to call it Failed would have its work done twice.
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
