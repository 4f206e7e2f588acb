import type { Pod } from '../kube/core-v1.ts';
import { mirroredUid } from './host-status.ts';

/**
 * Whether a pod may refer to other objects than before, or its copy to those that were not needed yet: a copy whose
 * creation was answered late, or by a former process, is there without anybody having asked what it needs.
 */
export function mayNeedOther(pod: Pod, old: Pod): boolean {
  const { generation } = pod.metadata;
  // Hosts before 1.35 do not count generations of pods.
  return generation === undefined || generation !== old.metadata.generation || mirroredUid(pod) !== mirroredUid(old);
}
