import type { Logger } from 'pino';
import {
  CLUSTER_PLACEMENT_POLICIES,
  parsePlacementPolicy,
  PLACEMENT_POLICIES,
  type PlacementPolicy,
  type PlacementPolicyStatus,
} from '../api/placement-policy.ts';
import type { KubeClient } from '../kube/client.ts';
import type { Pod } from '../kube/core-v1.ts';
import type { InformerMetrics } from '../kube/informer-metrics.ts';
import { Informer } from '../kube/informer.ts';
import { identifying, type KubeObject } from '../kube/object.ts';
import { labelsWanted, mayChooseAbove } from '../placement/labels-wanted.ts';
import type { OwnerChain, TypedObject } from '../placement/owner-chain.ts';
import { compilePolicy, selectPolicy } from '../placement/policy-selection.ts';
import type { CompiledPolicy, Selection } from '../placement/policy-selection.ts';
import { customKindKey } from '../api/custom-kinds.ts';
import { GonePolicies } from './gone-policies.ts';

/** A policy as it was read: in use, or not, and then why. */
export interface KnownPolicy extends KubeObject {
  /** As far as it can be read at all. */
  readonly policy: PlacementPolicy | undefined;
  readonly compiled: CompiledPolicy | undefined;
  /** What is wrong, with the fields' paths; the policy is then not in use. */
  readonly problems: readonly string[];
  readonly status: PlacementPolicyStatus | undefined;
}

export interface PolicyCacheOptions {
  host: KubeClient;
  logger: Logger;
  metrics?: InformerMetrics | undefined;
  /** In ms. */
  monotonic: () => number;
}

/** All placement policies of the host, ready for use. */
export class PolicyCache {
  readonly namespaced: Informer<KnownPolicy>;
  readonly clusterWide: Informer<KnownPolicy>;
  /** Of one namespace, those of the cluster included; made anew after any policy changed. */
  readonly #lists = new Map<string, readonly CompiledPolicy[]>();
  readonly #gone: GonePolicies;

  constructor({ host, logger, metrics, monotonic }: PolicyCacheOptions) {
    const common = { client: host, transform: readPolicy, logger, metrics };
    this.namespaced = new Informer({ ...common, resource: PLACEMENT_POLICIES });
    this.clusterWide = new Informer({ ...common, resource: CLUSTER_PLACEMENT_POLICIES });
    this.#gone = new GonePolicies(monotonic);
    for (const informer of [this.namespaced, this.clusterWide])
      informer.on({
        updated: (now, before) => this.#gone.changed(before.compiled, now.compiled),
        deleted: ({ compiled }) => this.#gone.changed(compiled, undefined),
      });
  }

  async run(signal: AbortSignal): Promise<void> {
    const off = this.on(() => this.#lists.clear());
    await Promise.all([this.namespaced.run(signal), this.clusterWide.run(signal)]);
    off();
  }

  /** Calls the handler after a policy came, changed or went. Returns what ends that. */
  on(handler: () => void): () => void {
    const handlers = { added: handler, updated: handler, deleted: handler };
    const off = [this.namespaced.on(handlers), this.clusterWide.on(handlers)];
    return () => {
      for (const unsubscribe of off) unsubscribe();
    };
  }

  get hasSynced(): boolean {
    return this.namespaced.hasSynced && this.clusterWide.hasSynced;
  }

  get problem(): string | undefined {
    return this.namespaced.problem ?? this.clusterWide.problem;
  }

  /** By namespace and name; by the name alone one for the whole cluster. */
  get(key: string): KnownPolicy | undefined {
    return key.includes('/') ? this.namespaced.get(key) : this.clusterWide.get(key);
  }

  *values(): Generator<KnownPolicy> {
    yield* this.namespaced.values();
    yield* this.clusterWide.values();
  }

  /** Kinds that are not Kubernetes' own, by their keys, that policies in use choose by. */
  customKinds(): ReadonlySet<string> {
    return customKindsOf(this.values());
  }

  /** Those of them that policies of the whole cluster choose by. */
  customKindsForAll(): ReadonlySet<string> {
    return customKindsOf(this.clusterWide.values());
  }

  /** The rules for a pod. */
  select(chain: OwnerChain, namespaceLabels: Readonly<Record<string, string>> | undefined): Selection {
    return selectPolicy(chain, this.inSight(chain[0].metadata.namespace ?? ''), namespaceLabels);
  }

  /** The policy that a pod would be under, had it not gone a moment ago, see {@link GonePolicies}; undefined while it is under the one that it would be. */
  wentFrom(
    chain: OwnerChain,
    namespaceLabels: Readonly<Record<string, string>> | undefined,
  ): PlacementPolicy | undefined {
    const { namespace = '' } = chain[0].metadata;
    const lately = this.#gone.inSight(namespace);
    if (lately.length === 0) return undefined;
    const inSight = this.inSight(namespace);
    const chooses = ({ rankOf }: CompiledPolicy): boolean => chain.some((object) => rankOf(object) > 0);
    // By that name there is one for it again: whatever that says counts at once, as any edit does.
    const gone = lately.filter((one) => !inSight.some((other) => isSameName(one, other) && chooses(other)));
    const { chosen } = selectPolicy(chain, [...inSight, ...gone], namespaceLabels);
    return gone.find(({ placement }) => placement === chosen?.placement)?.policy;
  }

  /** The first of pods of one controller that a policy chooses by itself, whatever is said of its owners. */
  firstChosen(pods: readonly Pod[]): Pod | undefined {
    const inSight = this.inSight(pods[0]?.metadata.namespace ?? '');
    const choosing = inSight.filter(({ policy }) =>
      policy.spec.resourceSelectors.some(({ apiVersion, kind }) => apiVersion === 'v1' && kind === 'Pod'),
    );
    if (choosing.length === 0) return undefined;
    return pods.find((pod) => choosing.some(({ rankOf }) => rankOf({ ...pod, apiVersion: 'v1', kind: 'Pod' }) > 0));
  }

  /** A policy that chooses such objects by their labels. */
  wantingLabelsOf(owner: TypedObject): CompiledPolicy | undefined {
    return labelsWanted(owner, this.inSight(owner.metadata.namespace ?? ''));
  }

  /** A policy that may choose such objects by what owns them. */
  mayChooseAbove(owner: TypedObject): CompiledPolicy | undefined {
    return mayChooseAbove(owner, this.inSight(owner.metadata.namespace ?? ''));
  }

  /** Those in use that may speak of objects of a namespace, those of the cluster included; of '' those alone. */
  inSight(namespace: string): readonly CompiledPolicy[] {
    let list = this.#lists.get(namespace);
    if (list === undefined) {
      const known = [...this.values()].filter(
        ({ metadata }) => metadata.namespace === undefined || metadata.namespace === namespace,
      );
      list = known.map(({ compiled }) => compiled).filter((compiled) => compiled !== undefined);
      this.#lists.set(namespace, list);
    }
    return list;
  }
}

function customKindsOf(policies: Iterable<KnownPolicy>): ReadonlySet<string> {
  const keys = [...policies].flatMap(({ compiled }) =>
    (compiled?.policy.spec.resourceSelectors ?? []).map((selector) => customKindKey(selector)),
  );
  return new Set(keys.filter((key) => key !== undefined));
}

function isSameName({ policy: a }: CompiledPolicy, { policy: b }: CompiledPolicy): boolean {
  return a.metadata.name === b.metadata.name && a.metadata.namespace === b.metadata.namespace;
}

function readPolicy(raw: KubeObject): KnownPolicy {
  const { creationTimestamp } = raw.metadata;
  const metadata = {
    ...identifying(raw.metadata),
    ...(creationTimestamp === undefined ? {} : { creationTimestamp }),
  };
  const parsed = parsePlacementPolicy({ ...raw, metadata });
  if ('problems' in parsed) {
    const { problems } = parsed;
    return { metadata, policy: undefined, compiled: undefined, problems, status: undefined };
  }
  const { policy } = parsed;
  const { status } = policy;
  const compiled = compilePolicy(policy);
  if ('problems' in compiled) return { metadata, policy, compiled: undefined, problems: compiled.problems, status };
  return { metadata, policy, compiled, problems: [], status };
}
