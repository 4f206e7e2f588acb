import { gangPlace } from '../../api/gang-place.ts';
import { GANG_GATE } from '../../api/marks.ts';
import type { Pod } from '../../kube/core-v1.ts';

/**
 * The merge patch that binds a pod behind its gate to a place. While a pod has a gate its node selector and affinity may be narrowed
 * (KEP-3838), so any scheduler keeps to the place.
 */
export function pinPatch({ metadata, spec }: Pod, cluster: string, at: number): object {
  const { uid, resourceVersion } = metadata;
  const place = gangPlace(spec, cluster, at);
  return { metadata: { uid, resourceVersion, annotations: place.annotations }, spec: place.spec };
}

/** The merge patch that takes the gate away, and no other. */
export function openPatch({ metadata, spec }: Pod): object {
  const { uid, resourceVersion } = metadata;
  const schedulingGates = (spec.schedulingGates ?? []).filter(({ name }) => name !== GANG_GATE);
  return { metadata: { uid, resourceVersion }, spec: { schedulingGates } };
}
