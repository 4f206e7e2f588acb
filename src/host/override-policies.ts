import type { Logger } from 'pino';
import {
  CLUSTER_OVERRIDE_POLICIES,
  OVERRIDE_POLICIES,
  type OverridePolicy,
  type OverridePolicyKind,
  parseOverridePolicy,
} from '../api/override-policy.ts';
import { readOverridePolicyStatus } from '../api/override-policy-status.ts';
import type { KubeClient } from '../kube/client.ts';
import type { EventRecorder } from '../kube/event-recorder.ts';
import type { InformerMetrics } from '../kube/informer-metrics.ts';
import { Informer } from '../kube/informer.ts';
import { jsonEqual } from '../kube/json-equal.ts';
import { identifying, keyOf, type KubeObject } from '../kube/object.ts';
import { apiVersionOf } from '../kube/resource.ts';
import type { SeenPolicy } from './override-policy-statuses.ts';

export interface OverridePoliciesOptions {
  host: KubeClient;
  events: Pick<EventRecorder, 'record'>;
  logger: Logger;
  metrics: InformerMetrics;
}

const NAMESPACE = 'namespace';
/** Edits come in crowds, as when a directory of policies is applied. */
const SETTLE_MS = 100;

/** The override policies of the host, read once for all members. */
export class OverridePolicies {
  readonly #o: OverridePoliciesOptions;
  readonly #cluster: Informer<OverridePolicy>;
  readonly #namespaced: Informer<OverridePolicy>;
  readonly #lists = new Map<string, readonly OverridePolicy[]>();
  readonly #handlers = new Set<() => void>();
  /** What each policy was when it was seen last, by kind and key. */
  readonly #seen = new Map<string, SeenPolicy>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: OverridePoliciesOptions) {
    const { host, logger, metrics } = options;
    this.#o = options;
    const common = { client: host, logger, metrics };
    this.#cluster = new Informer({
      ...common,
      resource: CLUSTER_OVERRIDE_POLICIES,
      transform: (raw) => this.#read('ClusterOverridePolicy', raw),
    });
    this.#namespaced = new Informer({
      ...common,
      resource: OVERRIDE_POLICIES,
      transform: (raw) => this.#read('OverridePolicy', raw),
      indexes: { [NAMESPACE]: ({ metadata }) => [metadata.namespace ?? ''] },
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    const changed = {
      added: () => this.#changed(),
      // A status that was written is none of anybody's business here.
      updated: (policy: OverridePolicy, old: OverridePolicy) => {
        if (!jsonEqual(policy.spec, old.spec)) this.#changed();
      },
      deleted: (policy: OverridePolicy) => {
        this.#seen.delete(`${policy.kind} ${keyOf(policy)}`);
        this.#changed();
      },
    };
    const informers = [this.#cluster, this.#namespaced];
    const off = informers.map((informer) => informer.on(changed));
    const synced = Promise.all(informers.map(async (informer) => await informer.whenSynced(signal))).then(
      () => this.#changed(),
      () => undefined,
    );
    await Promise.all([...informers.map(async (informer) => await informer.run(signal)), synced]);
    for (const unsubscribe of off) unsubscribe();
    clearTimeout(this.#timer);
  }

  /** Set until all policies have been read, with what keeps them from being read. */
  unknown(): { problem: string | undefined } | undefined {
    const missing = [this.#cluster, this.#namespaced].filter(({ hasSynced }) => !hasSynced);
    if (missing.length === 0) return undefined;
    return { problem: missing.map(({ problem }) => problem).find((problem) => problem !== undefined) };
  }

  /** Every policy as it is, readable or not. */
  seen(): Iterable<SeenPolicy> {
    return this.#seen.values();
  }

  /** Those that may concern objects of a namespace. The same list until a policy changes. */
  in(namespace: string): readonly OverridePolicy[] {
    let list = this.#lists.get(namespace);
    if (list === undefined) {
      list = [...this.#cluster.values(), ...this.#namespaced.byIndex(NAMESPACE, namespace)];
      this.#lists.set(namespace, list);
    }
    return list;
  }

  /** Calls the handler a moment after policies changed, or were read for the first time. Returns what ends that. */
  on(handler: () => void): () => void {
    this.#handlers.add(handler);
    return () => this.#handlers.delete(handler);
  }

  #changed(): void {
    this.#lists.clear();
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      for (const handler of this.#handlers) handler();
    }, SETTLE_MS);
  }

  /** Throws for what is no policy, which leaves the last readable state in force. */
  #read(kind: OverridePolicyKind, raw: KubeObject): OverridePolicy {
    const metadata = identifying(raw.metadata);
    const result = parseOverridePolicy(kind, { ...raw, metadata });
    const { generation } = raw.metadata;
    const key = `${kind} ${keyOf(raw)}`;
    const before = this.#seen.get(key);
    this.#seen.set(key, {
      kind,
      metadata: { ...metadata, ...(generation === undefined ? {} : { generation }) },
      status: readOverridePolicyStatus(raw),
      problems: 'policy' in result ? [] : result.problems,
      policy: 'policy' in result ? result.policy : undefined,
    });
    if ('policy' in result) return result.policy;
    const problems = result.problems.join('; ');
    const message = `The policy cannot be read and is not followed as it is now: ${problems}. Apply the newest manifests/crds, then correct it.`;
    const apiVersion = apiVersionOf(kind === 'OverridePolicy' ? OVERRIDE_POLICIES : CLUSTER_OVERRIDE_POLICIES);
    // A status that was written is no news.
    if (!jsonEqual(before?.problems, result.problems))
      this.#o.events.record({ apiVersion, kind, ...metadata }, 'Warning', 'InvalidPolicy', message);
    throw new Error(`${kind} ${keyOf({ metadata })}: ${problems}`);
  }
}
