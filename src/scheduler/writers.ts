import type { Logger } from 'pino';
import { releasedFrom } from '../api/released.ts';
import type { Pod } from '../kube/core-v1.ts';
import { jsonEqual } from '../kube/json-equal.ts';
import { keyOf } from '../kube/object.ts';
import { controllerKeyOf, controllerOf } from '../kube/owner-references.ts';
import { pause } from '../kube/timers.ts';
import type { WorkQueueMetrics } from '../kube/workqueue-metrics.ts';
import { WorkQueue } from '../kube/workqueue.ts';
import type { HandlerResult } from '../kube/workqueue.ts';
import { workloadOf } from '../placement/owner-chain.ts';
import type { TypedObject } from '../placement/owner-chain.ts';
import type { DeletionCostWriter } from './deletion-cost-writer.ts';
import type { HostView } from './host-view.ts';
import type { PlacementStore } from './placement-store.ts';
import type { PlacementWriter } from './placement-writer.ts';
import type { PolicyStatusWriter } from './policy-status-writer.ts';
import { controllersOf } from './workload-view.ts';
import type { WorkloadState } from './workload-state.ts';

/** The right to write, held by one replica at a time. */
export interface WritersLease {
  run(o: { signal: AbortSignal; onAcquired: (signal: AbortSignal) => Promise<void> }): Promise<void>;
}

export interface WritersOptions {
  lease: WritersLease;
  view: HostView;
  workloads: WorkloadState;
  store: PlacementStore;
  costs: DeletionCostWriter;
  placements: PlacementWriter;
  policies: PolicyStatusWriter;
  /** Calls the listener after pods of some workload began, or ceased, to go the way of a migration. */
  onWays: (listener: () => void) => () => void;
  /** Calls the listener when the first scheduler has asked. */
  onAsked?: (listener: () => void) => () => void;
  queueMetrics?: WorkQueueMetrics | undefined;
  logger: Logger;
}

/** Pods come and go in crowds: one look at the end of each, in ms. */
const SETTLE_MS = 300;
/** The same for policies and members, which may concern everything. */
const EDIT_MS = 1_000;
/** All workloads are looked at again after so long, in ms: a write may have gone to another cluster that stood in for the host. */
const RESYNC_MS = 300_000;
const SYNC_POLL_MS = 100;

/** What only one replica does: costs of pods, WorkloadPlacements, conditions of policies. */
export class Writers {
  readonly #o: WritersOptions;

  constructor(options: WritersOptions) {
    this.#o = options;
  }

  /** Works whenever the lease is held, until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    await this.#o.lease.run({ signal, onAcquired: async (held) => await this.#work(held) });
  }

  async #work(signal: AbortSignal): Promise<void> {
    const { view, store, costs, placements, policies } = this.#o;
    while (!(view.hasSynced && store.informer.hasSynced)) {
      if (signal.aborted) return;
      await pause(SYNC_POLL_MS, signal);
    }
    const queues: Queues = {
      costs: this.#queue('costs', (key, aborted) => costs.bringUpToDate(key, aborted)),
      placements: this.#queue('placements', (key, aborted) => placements.bringUpToDate(key, aborted)),
      policies: this.#queue('policies', (key, aborted) => policies.bringUpToDate(key, aborted)),
      rules: this.#queue('rules', async () => {
        this.#lookAtAll(queues);
        return await Promise.resolve({ requeueAfterMs: RESYNC_MS });
      }),
    };
    const off = this.#follow(queues);
    await Promise.all(Object.values(queues).map(async (queue: WorkQueue) => await queue.run(signal)));
    for (const unsubscribe of off) unsubscribe();
  }

  #queue(name: string, handler: (key: string, signal: AbortSignal) => Promise<HandlerResult>): WorkQueue {
    const { queueMetrics, logger } = this.#o;
    return new WorkQueue({
      name: `scheduler-${name}`,
      concurrency: 4,
      handler,
      backoff: { baseMs: 250, maxMs: 60_000 },
      logger,
      metrics: queueMetrics,
    });
  }

  #follow({ costs, placements, policies, rules }: Queues): (() => void)[] {
    const { view, workloads, store } = this.#o;
    const podSeen = (pod: Pod): void => {
      const controller = controllerOf(pod)?.uid;
      // While one that is released can be given back, a cost of another one is left alone.
      const set = controller ?? releasedFrom(pod)?.uid;
      if (set !== undefined) costs.addAfter(set, SETTLE_MS);
      if (controller === undefined) return;
      const { uid } = workloadOf(view.owners.chainOf(pod)).object.metadata;
      if (uid === undefined) return;
      placements.addAfter(uid, SETTLE_MS);
    };
    const reorder = (workload: TypedObject): void => {
      for (const { metadata } of controllersOf(workload, view)) costs.addAfter(metadata.uid ?? '', SETTLE_MS);
    };
    /** Each controller below may be a workload of its own, as the ReplicaSets of a Rollout are. */
    const replan = (owner: TypedObject): void => {
      for (const { metadata } of controllersOf(owner, view)) placements.addAfter(metadata.uid ?? '', SETTLE_MS);
      reorder(owner);
    };
    const planned = (workload: TypedObject): void => {
      placements.addAfter(workload.metadata.uid ?? '', SETTLE_MS);
      reorder(workload);
    };
    const ownerSeen = (owner: TypedObject, old: TypedObject | undefined): void => {
      placements.addAfter(owner.metadata.uid ?? '', SETTLE_MS);
      // Policies choose by labels, and some annotations are rules themselves.
      if (old !== undefined && !isMarkedAlike(owner, old)) replan(owner);
    };
    const rulesChanged = (): void => rules.addAfter('all', EDIT_MS);
    const policiesChanged = (): void => {
      for (const policy of view.policies.values()) policies.addAfter(keyOf(policy), EDIT_MS);
      rulesChanged();
    };
    policiesChanged();
    return [
      view.onPod({ changed: podSeen, gone: podSeen }),
      view.owners.on(ownerSeen),
      view.owners.onKinds(policiesChanged),
      workloads.on(planned),
      view.policies.on(policiesChanged),
      ...(this.#o.onAsked === undefined ? [] : [this.#o.onAsked(policiesChanged)]),
      view.onClusters(policiesChanged),
      view.onVirtualNodes(rulesChanged),
      this.#o.onWays(rulesChanged),
      view.onNamespaceLabels(rulesChanged),
      store.informer.on({
        deleted: ({ spec }) => placements.addAfter(spec.workload.uid, SETTLE_MS),
      }),
    ];
  }

  /** Every workload that has pods, once: the rules of any of them may be others, or the clusters there are to choose from. */
  #lookAtAll({ costs, placements }: Queues): void {
    const { view } = this.#o;
    const seen = new Set<string>();
    for (const pod of view.pods.values()) {
      const controller = controllerOf(pod)?.uid;
      const key = controllerKeyOf(pod);
      if (controller === undefined || key === undefined || seen.has(key)) continue;
      seen.add(key);
      costs.add(controller);
      const { uid } = workloadOf(view.owners.chainOf(pod)).object.metadata;
      if (uid === undefined) continue;
      placements.add(uid);
    }
  }
}

function isMarkedAlike({ metadata: a }: TypedObject, { metadata: b }: TypedObject): boolean {
  return jsonEqual(a.labels, b.labels) && jsonEqual(a.annotations, b.annotations);
}

interface Queues {
  readonly costs: WorkQueue;
  readonly placements: WorkQueue;
  readonly policies: WorkQueue;
  /** One key: all workloads are to be looked at. */
  readonly rules: WorkQueue;
}
