import type { Logger } from 'pino';
import { MEMBER_EVICTIONS_ANNOTATION } from '../api/marks.ts';
import type { Pod, PodDisruptionBudget } from '../kube/core-v1.ts';
import type { KubeClient } from '../kube/client.ts';
import type { InformerMetrics } from '../kube/informer-metrics.ts';
import { Informer } from '../kube/informer.ts';
import { matchesLabels } from '../kube/label-selector.ts';
import { identifying, keyOf } from '../kube/object.ts';
import { POD_DISRUPTION_BUDGETS } from '../kube/resource.ts';
import { patch } from '../kube/verbs.ts';
import { type Claims, formatClaims } from './claims.ts';
import { type HostBudget, readHostBudget } from './host-budget.ts';

/** Longest wait between tries to read them, which the manager may have no right to do, in ms. */
const RETRY_MS = 60_000;

export interface HostBudgetsOptions {
  host: KubeClient;
  logger: Logger;
  metrics?: InformerMetrics;
}

/** The PodDisruptionBudgets of the host, read once for all members. */
export class HostBudgets {
  readonly #host: KubeClient;
  readonly #informer: Informer<PodDisruptionBudget>;
  readonly #budgets = new Map<string, HostBudget>();
  readonly #byNamespace = new Map<string, Map<string, HostBudget>>();
  readonly #listeners = new Set<(key: string) => void>();

  constructor({ host, logger, metrics }: HostBudgetsOptions) {
    this.#host = host;
    this.#informer = new Informer<PodDisruptionBudget>({
      client: host,
      resource: POD_DISRUPTION_BUDGETS,
      transform: (raw) => projection(raw as PodDisruptionBudget),
      timings: { backoffMaxMs: RETRY_MS },
      logger,
      ...(metrics === undefined ? {} : { metrics }),
    });
  }

  /** Works until the signal aborts; never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const put = (raw: PodDisruptionBudget): void => this.#put(raw);
    const off = this.#informer.on({ added: put, updated: put, deleted: (raw) => this.#delete(keyOf(raw)) });
    await this.#informer.run(signal);
    off();
  }

  get synced(): boolean {
    return this.#informer.hasSynced;
  }

  async whenSynced(signal: AbortSignal): Promise<void> {
    await this.#informer.whenSynced(signal);
  }

  /** Why they cannot be read, in words; undefined while they are. */
  get problem(): string | undefined {
    return this.#informer.problem;
  }

  get(key: string): HostBudget | undefined {
    return this.#budgets.get(key);
  }

  keys(): Iterable<string> {
    return this.#budgets.keys();
  }

  /** Those that cover a pod. */
  covering({ metadata }: Pod): HostBudget[] {
    const there = this.#byNamespace.get(metadata.namespace ?? '');
    return [...(there?.values() ?? [])].filter(({ selector }) => matchesLabels(selector, metadata.labels));
  }

  /** Called with the key of one that came, changed or went. Returns how to stop that. */
  on(listener: (key: string) => void): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  /**
   * Writes who may evict how many, if the budget is still as it was read.
   * @throws ApiError 409 when it is not.
   */
  async writeClaims(
    { namespace, name, uid, resourceVersion }: HostBudget,
    claims: Claims,
    signal: AbortSignal,
  ): Promise<void> {
    const annotations = { [MEMBER_EVICTIONS_ANNOTATION]: formatClaims(claims) ?? null };
    const body = { metadata: { uid, resourceVersion, annotations } };
    const ref = { namespace, name };
    await patch(this.#host, POD_DISRUPTION_BUDGETS, ref, body, { type: 'merge' }, { signal });
  }

  #put(raw: PodDisruptionBudget): void {
    const budget = readHostBudget(raw);
    this.#budgets.set(budget.key, budget);
    const there = this.#byNamespace.get(budget.namespace) ?? new Map<string, HostBudget>();
    there.set(budget.key, budget);
    this.#byNamespace.set(budget.namespace, there);
    this.#notify(budget.key);
  }

  #delete(key: string): void {
    const namespace = this.#budgets.get(key)?.namespace ?? '';
    this.#budgets.delete(key);
    const there = this.#byNamespace.get(namespace);
    there?.delete(key);
    if (there?.size === 0) this.#byNamespace.delete(namespace);
    this.#notify(key);
  }

  #notify(key: string): void {
    for (const listener of this.#listeners) listener(key);
  }
}

function projection({ metadata, spec, status }: PodDisruptionBudget): PodDisruptionBudget {
  const claims = metadata.annotations?.[MEMBER_EVICTIONS_ANNOTATION];
  return {
    metadata: {
      ...identifying(metadata),
      ...(claims === undefined ? {} : { annotations: { [MEMBER_EVICTIONS_ANNOTATION]: claims } }),
    },
    spec,
    ...(status === undefined ? {} : { status }),
  };
}
