import type { Pod, PodStatus } from '../kube/core-v1.ts';

/** A pod whose phase never changes again. */
export function isFinished(pod: { status?: PodStatus }): boolean {
  const phase = pod.status?.phase;
  return phase === 'Succeeded' || phase === 'Failed';
}

/** Neither finished nor being deleted, as `IsPodActive` of Kubernetes' controllers. */
export function isActive(pod: Pick<Pod, 'metadata' | 'status'>): boolean {
  return pod.metadata.deletionTimestamp === undefined && !isFinished(pod);
}
