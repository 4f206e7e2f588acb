import { LRUCache } from 'lru-cache';
import type { Pod } from '../kube/core-v1.ts';
import type { KubeClient } from '../kube/client.ts';
import { isAnotherObject, isForbidden, isPermanent, isRightMissing } from '../kube/errors.ts';
import { atMost } from '../kube/lru-limit.ts';
import { keyOf } from '../kube/object.ts';
import { CAUGHT_UP_MS } from '../kube/reflector-timings.ts';
import { isOlder } from '../kube/resource-version.ts';
import { PODS } from '../kube/resource.ts';
import { patch } from '../kube/verbs.ts';
import type { CompiledPlacement } from '../placement/compiled-placement.ts';
import {
  costAnnotations,
  DELETION_COST_ANNOTATION,
  deletionCostOf,
  deletionCosts,
  FIRST_TO_GO,
} from '../placement/deletion-cost.ts';
import type { CostedPod } from '../placement/costed-pod.ts';
import { removalOrder } from '../placement/removal-order.ts';
import { steadyOrder } from '../placement/steady-order.ts';
import { awaitsEnd } from './awaited-end.ts';
import type { HostView } from './host-view.ts';
import type { SchedulerMetrics } from './scheduler-metrics.ts';
import type { WorkloadState } from './workload-state.ts';
import { holdsPlace, ruledWorkload } from './workload-view.ts';

/** Controllers that look at the cost of their pods when they have to remove some. */
const HEEDS_COST = new Set(['ReplicaSet', 'ReplicationController']);

export interface DeletionCostWriterOptions {
  host: KubeClient;
  view: HostView;
  workloads: WorkloadState;
  metrics: SchedulerMetrics;
}

interface Sent {
  readonly cost: number;
  /** Of the pod with that cost. */
  readonly resourceVersion: string | undefined;
}

/**
 * Keeps the deletion costs of the pods of one controller in the order in which they should go. Writes only what the order
 * needs: see `deletionCosts`. The descheduler writes costs, too, maybe from another process: what it wrote is never overwritten unseen, and the pod that
 * it wants to go next counts as gone.
 */
export class DeletionCostWriter {
  readonly #o: DeletionCostWriterOptions;
  /** By UID of the pod, what was written and the cache may not show yet. */
  readonly #sent = new LRUCache<string, Sent>({ ...atMost(10_000), ttl: CAUGHT_UP_MS });

  constructor(options: DeletionCostWriterOptions) {
    this.#o = options;
  }

  /** Throws what the host answers, of refused costs the first, when the others are written; pods that are gone or changed meanwhile are no failure. */
  async bringUpToDate(controllerUid: string, signal: AbortSignal): Promise<void> {
    const { view, workloads } = this.#o;
    const controller = view.owners.byUid(controllerUid);
    if (controller === undefined || !HEEDS_COST.has(controller.kind)) return;
    const pods = view.podsOf(controller).filter(holdsPlace);
    const hasEnd = awaitsEnd(controller, view);
    const isShared = view.podsOut(controller).length > 0;
    const costed = pods
      .map((pod) => ({ pod, known: deletionCostOf(pod) }))
      .filter(({ known }) => !known.foreign && !(hasEnd && known.cost === FIRST_TO_GO))
      .map(({ pod, known }) => ({
        pod,
        uid: pod.metadata.uid ?? '',
        cluster: view.nodes.clusterOf(pod.spec.nodeName ?? ''),
        cost: this.#newest(pod, known.cost),
      }));
    const counts = new Map<string, number>();
    for (const { cluster } of costed) counts.set(cluster, (counts.get(cluster) ?? 0) + 1);
    if (counts.size < 2 && costed.every(({ cost }) => cost === undefined)) return;
    const ruled = ruledWorkload(controller, view);
    if (ruled === undefined) return;
    const plan = workloads.plan(ruled.object);
    const { placement } = ruled.rules;
    const exact = removalOrder({
      placement,
      clusters: view.nodes.clusters(),
      uid: ruled.object.metadata.uid,
      affinityName: plan?.affinityName,
      pods: counts,
      shares: plan?.shares ?? plan?.targets,
    });
    const changes = deletionCosts(wantedOrder(exact, costed, placement), costed);
    let refused: unknown;
    for (const { uid, pod } of costed) {
      const cost = changes.get(uid);
      if (cost === undefined) continue;
      try {
        await this.#write(pod, cost, isShared, signal);
      } catch (error) {
        if (!isOfThisPod(error)) throw error;
        refused ??= error;
      }
    }
    if (refused !== undefined) throw refused;
  }

  /** The cost that the pod has, or will be shown to have in a moment. */
  #newest({ metadata: { uid = '', resourceVersion } }: Pod, shown: number | undefined): number | undefined {
    const sent = this.#sent.get(uid);
    if (sent === undefined || isOlder(resourceVersion, sent.resourceVersion)) return sent?.cost ?? shown;
    this.#sent.delete(uid);
    return shown;
  }

  /** For the pod as it was decided about: of one whose cost is another one by now the watch will tell, and then all is looked at again. */
  async #write(decided: Pod, cost: number, isShared: boolean, signal: AbortSignal): Promise<void> {
    const pod = this.#o.view.pods.get(keyOf(decided));
    if (pod === undefined || costTextOf(pod) !== costTextOf(decided)) return;
    const { name, namespace, resourceVersion } = pod.metadata;
    const { uid } = decided.metadata;
    // While none is released the descheduler writes no costs, and other news of the pod is no reason to be refused, and to write again.
    const asRead = isShared ? { resourceVersion } : {};
    const body = { metadata: { uid, ...asRead, annotations: costAnnotations(cost) } };
    try {
      const written = await patch<Pod>(this.#o.host, PODS, { namespace, name }, body, { type: 'merge' }, { signal });
      this.#sent.set(uid ?? '', { cost, resourceVersion: written.metadata.resourceVersion });
      this.#o.metrics.costWrites.inc();
    } catch (error) {
      if (!isAnotherObject(error)) throw error;
    }
  }
}

/** With division by room the exact order of many pods need not be kept to the pod. */
function wantedOrder(
  exact: readonly string[],
  pods: readonly CostedPod[],
  { division, spread, groups }: CompiledPlacement,
): readonly string[] {
  if (division.kind !== 'dynamic' && division.kind !== 'aggregated') return exact;
  return steadyOrder(exact, pods, spread.length > 0 || groups.some(({ tiers }) => tiers.length > 1));
}

function costTextOf({ metadata }: Pod): string | undefined {
  return metadata.annotations?.[DELETION_COST_ANNOTATION];
}

/** The host refuses this very write, by a policy or as invalid, which says nothing of the next one. */
function isOfThisPod(error: unknown): boolean {
  return isPermanent(error) || (isForbidden(error) && !isRightMissing(error));
}
