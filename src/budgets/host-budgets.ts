import type { Logger } from 'pino';
import { MEMBER_EVICTIONS_ANNOTATION } from '../api/marks.ts';
import type { Pod } from '../kube/core-v1.ts';
import type { PodDisruptionBudget } from '../kube/policy-v1.ts';
import type { KubeClient } from '../kube/client.ts';
import type { InformerMetrics } from '../kube/informer-metrics.ts';
import { Informer } from '../kube/informer.ts';
import { jsonEqual } from '../kube/json-equal.ts';
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
  metrics?: InformerMetrics | undefined;
}

type Labels = Readonly<Record<string, string>>;

const NO_LABELS: Labels = {};

interface NamespaceBudgets {
  readonly budgets: Map<string, HostBudget>;
  /** Keys of those that cover pods with these labels, until a selector of the namespace changes: caches of pods share labels. */
  covering: WeakMap<Labels, readonly string[]>;
}

/** The PodDisruptionBudgets of the host, read once for all members. */
export class HostBudgets {
  readonly #host: KubeClient;
  readonly #informer: Informer<PodDisruptionBudget>;
  readonly #budgets = new Map<string, HostBudget>();
  readonly #byNamespace = new Map<string, NamespaceBudgets>();
  readonly #listeners = new Set<(key: string) => void>();

  constructor({ host, logger, metrics }: HostBudgetsOptions) {
    this.#host = host;
    this.#informer = new Informer<PodDisruptionBudget>({
      client: host,
      resource: POD_DISRUPTION_BUDGETS,
      transform: (raw) => projection(raw as PodDisruptionBudget),
      timings: { backoffMaxMs: RETRY_MS },
      logger,
      metrics,
    });
  }

  /** Works until the signal aborts; never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const off = this.#informer.on({
      added: (raw) => this.#put(raw),
      updated: (raw, old) => this.#put(raw, old),
      deleted: (raw) => this.#delete(keyOf(raw)),
    });
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
    if (there === undefined) return [];
    const { labels = NO_LABELS } = metadata;
    let keys = there.covering.get(labels);
    if (keys === undefined) {
      keys = [...there.budgets.values()].filter((budget) => budget.covers(labels)).map(({ key }) => key);
      there.covering.set(labels, keys);
    }
    return keys.map((key) => there.budgets.get(key)).filter((budget) => budget !== undefined);
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

  #put(raw: PodDisruptionBudget, old?: PodDisruptionBudget): void {
    const before = this.#budgets.get(keyOf(raw));
    const isSame = old !== undefined && before !== undefined && jsonEqual(old.spec.selector, raw.spec.selector);
    const budget = readHostBudget(raw, isSame ? before.covers : undefined);
    this.#budgets.set(budget.key, budget);
    const there = this.#byNamespace.get(budget.namespace) ?? { budgets: new Map(), covering: new WeakMap() };
    there.budgets.set(budget.key, budget);
    if (!isSame) there.covering = new WeakMap();
    this.#byNamespace.set(budget.namespace, there);
    this.#notify(budget.key);
  }

  #delete(key: string): void {
    const namespace = this.#budgets.get(key)?.namespace ?? '';
    this.#budgets.delete(key);
    const there = this.#byNamespace.get(namespace);
    there?.budgets.delete(key);
    if (there !== undefined) there.covering = new WeakMap();
    if (there?.budgets.size === 0) this.#byNamespace.delete(namespace);
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
