import { parseWorkloadPlacement, type WorkloadPlacement, workloadPlacementName } from '../api/workload-placement.ts';
import type { KubeObject } from '../kube/object.ts';
import type { TypedObject } from './owner-chain.ts';

/** Where what is remembered of a workload is stored; it may be that of a former one of the name. */
export function placementRef({ apiVersion, kind, metadata }: TypedObject): {
  namespace: string | undefined;
  name: string;
} {
  return {
    namespace: metadata.namespace,
    name: workloadPlacementName({ apiVersion, kind, name: metadata.name }),
  };
}

/** What was read there, if it is of this very workload, and can be read. */
export function placementOf(
  raw: KubeObject | undefined,
  { metadata: { uid } }: TypedObject,
): WorkloadPlacement | undefined {
  const found = raw === undefined ? undefined : parseWorkloadPlacement(raw);
  return found?.spec.workload.uid === uid ? found : undefined;
}
