import type { PodStatus } from '../kube/core-v1.ts';

/** A pod whose phase never changes again. */
export function isFinished(pod: { status?: PodStatus }): boolean {
  const phase = pod.status?.phase;
  return phase === 'Succeeded' || phase === 'Failed';
}
