import type { Logger } from 'pino';
import type { Pod } from '../kube/core-v1.ts';
import { keyOf } from '../kube/object.ts';
import type { WorkQueueMetrics } from '../kube/workqueue-metrics.ts';
import { WorkQueue } from '../kube/workqueue.ts';
import type { HandlerResult } from '../kube/workqueue.ts';
import type { HostView } from './host-view.ts';
import { memberRefusal } from './member-refusals.ts';
import type { WorkloadState } from './workload-state.ts';

export interface RefusalWatchOptions {
  view: HostView;
  workloads: WorkloadState;
  queueMetrics?: WorkQueueMetrics | undefined;
  logger: Logger;
  /** Wall clock in ms. */
  clock: () => number;
}

/** So long before the end of its time a refusal that still stands counts anew, in ms: in between no pod may slip through. */
const RENEW_MS = 2_000;

/**
 * Notes which members refused pods of which workloads, as the pods say it: every replica sees the same. A refusal counts
 * once, from the moment it happened, so that a restart does not make it longer; where the pod is to make way for another one
 * (`onRefusal: TryNext`, `failover.onUnschedulable`) it counts for as long as the pod shows it, as many pods make way one after the other.
 */
export class RefusalWatch {
  readonly #o: RefusalWatchOptions;
  readonly #queue: WorkQueue;
  /** By UID of the pod, what was counted last. */
  readonly #counted = new Map<string, string>();

  constructor(options: RefusalWatchOptions) {
    this.#o = options;
    const { queueMetrics, logger } = options;
    this.#queue = new WorkQueue({
      name: 'scheduler-refusals',
      concurrency: 1,
      handler: async (key) => await Promise.resolve(this.#look(key)),
      logger,
      metrics: queueMetrics,
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    const { view } = this.#o;
    const changed = (pod: Pod): void => {
      if (pod.status?.conditions?.some(({ status }) => status === 'False') === true) this.#queue.add(keyOf(pod));
    };
    const off = [
      view.onPod({ changed, gone: ({ metadata }) => this.#counted.delete(metadata.uid ?? '') }),
      view.policies.on(() => [...view.pods.values()].forEach(changed)),
    ];
    await this.#queue.run(signal);
    for (const unsubscribe of off) unsubscribe();
  }

  #look(key: string): HandlerResult {
    const { view, workloads, clock } = this.#o;
    if (!view.hasSynced) return { requeueAfterMs: 500 };
    const pod = view.pods.get(key);
    const refusal = pod === undefined ? undefined : memberRefusal(pod, view);
    if (pod === undefined || refusal === undefined) return undefined;
    const { workload, rules, cluster, reason, message, at, triesNext } = refusal;
    const now = clock();
    if (at > now) return { requeueAfterMs: at - now };
    const { uid = '' } = pod.metadata;
    const { avoidForMs } = rules.placement;
    const times = triesNext ? 1 + Math.floor((now + RENEW_MS - at) / avoidForMs) : 1;
    const until = at + times * avoidForMs;
    const again = triesNext ? { requeueAfterMs: until - RENEW_MS - now } : undefined;
    const words = `${cluster} ${reason} ${String(until)}`;
    if (this.#counted.get(uid) === words) return again;
    this.#counted.set(uid, words);
    if (until > now) workloads.refused(workload, { cluster, reason, message }, until - now);
    return again;
  }
}
