import type { Logger } from 'pino';
import { parseWorkloadPlacement, WORKLOAD_PLACEMENTS } from '../api/workload-placement.ts';
import type { WorkloadPlacement } from '../api/workload-placement.ts';
import type { KubeClient } from '../kube/client.ts';
import type { InformerMetrics } from '../kube/informer-metrics.ts';
import { Informer } from '../kube/informer.ts';
import { keyFor } from '../kube/object.ts';
import { placementRef } from '../placement/own-placement.ts';
import type { TypedObject } from '../placement/owner-chain.ts';

/** All WorkloadPlacements of the host: what is remembered of workloads across restarts and between replicas. */
export class PlacementStore {
  readonly informer: Informer<WorkloadPlacement>;

  constructor({ host, logger, metrics }: { host: KubeClient; logger: Logger; metrics?: InformerMetrics | undefined }) {
    this.informer = new Informer<WorkloadPlacement>({
      client: host,
      resource: WORKLOAD_PLACEMENTS,
      transform: (raw) => {
        const { name, namespace = '', uid = '', resourceVersion = '' } = raw.metadata;
        const parsed = parseWorkloadPlacement({ ...raw, metadata: { name, namespace, uid, resourceVersion } });
        if (parsed === undefined) throw new Error('its spec cannot be read');
        return parsed;
      },
      logger,
      metrics,
    });
  }

  /** What is stored about a workload of that name; it may be a former one. */
  get(workload: TypedObject): WorkloadPlacement | undefined {
    const { namespace, name } = placementRef(workload);
    return this.informer.get(keyFor(namespace, name));
  }

  /** What is stored about this very workload. */
  statusOf(workload: TypedObject): WorkloadPlacement['status'] {
    const found = this.get(workload);
    return found?.spec.workload.uid === workload.metadata.uid ? found?.status : undefined;
  }
}
