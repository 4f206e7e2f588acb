import type { Logger } from 'pino';
import type { CacheShare } from '../kube/cache-room.ts';
import type { LimitRange, ResourceQuota } from '../kube/namespace-limits.ts';
import type { Namespace, Node, Pod } from '../kube/core-v1.ts';
import type { KubeClient } from '../kube/client.ts';
import type { InformerMetrics } from '../kube/informer-metrics.ts';
import { Informer } from '../kube/informer.ts';
import { withoutManagedFields } from '../kube/object.ts';
import { LIMIT_RANGES, NAMESPACES, NODES, PODS, RESOURCE_QUOTAS } from '../kube/resource.ts';
import { nodeProjection, podProjection } from './pod-projection.ts';
import type { ProbeFailure } from './reachability.ts';

/** The member answers, and its watches do not go on. */
export const WATCH_STALE = 'WatchStale';
/** A cache whose watch has shown no life for longer is as good as a failed probe, in ms. */
const STALE_MS = 120_000;
/** Longest wait between tries to read the member's state, in ms: pods wait for it when the member comes back. */
const CACHE_RETRY_MS = 5_000;
/** The same for quotas and limits, which the account may have no right to read. */
const RULES_RETRY_MS = 60_000;

export interface MemberCachesOptions {
  client: KubeClient;
  hostId: string;
  /** The memory that they may take. */
  share: CacheShare;
  podIndexes?: Record<string, (pod: Pod) => readonly string[]>;
  logger: Logger;
  informerMetrics?: InformerMetrics | undefined;
}

/** What is known of a member's objects. */
export class MemberCaches {
  /** Every pod of the member: ours whole, others as far as they take room (see podProjection). */
  readonly pods: Informer<Pod>;
  readonly nodes: Informer<Node>;
  readonly namespaces: Informer<Namespace>;
  /** What the member's owner allows; never complete where the account may not read it, and then only admission tells. */
  readonly quotas: Informer<ResourceQuota>;
  readonly limitRanges: Informer<LimitRange>;

  constructor({ client, hostId, share, podIndexes, logger, informerMetrics }: MemberCachesOptions) {
    const cache = {
      client,
      logger,
      timings: { backoffMaxMs: CACHE_RETRY_MS },
      metrics: informerMetrics,
    };
    this.pods = new Informer<Pod>({
      ...cache,
      resource: PODS,
      transform: podProjection(hostId, share),
      ...(podIndexes === undefined ? {} : { indexes: podIndexes }),
    });
    this.nodes = new Informer<Node>({ ...cache, resource: NODES, transform: nodeProjection(share) });
    this.namespaces = new Informer<Namespace>({ ...cache, resource: NAMESPACES, transform: withoutManagedFields });
    const rules = { ...cache, timings: { backoffMaxMs: RULES_RETRY_MS } };
    this.quotas = new Informer<ResourceQuota>({
      ...rules,
      resource: RESOURCE_QUOTAS,
      transform: (raw) => withoutManagedFields(raw as ResourceQuota),
    });
    this.limitRanges = new Informer<LimitRange>({
      ...rules,
      resource: LIMIT_RANGES,
      transform: (raw) => withoutManagedFields(raw as LimitRange),
    });
  }

  /** Whether pods, nodes and namespaces are known completely: nothing can be done without them. */
  get synced(): boolean {
    return this.pods.hasSynced && this.nodes.hasSynced && this.namespaces.hasSynced;
  }

  /** Why one of these three is not complete or not current, in words; undefined while all are. */
  get problem(): string | undefined {
    const caches = [this.pods, this.nodes, this.namespaces];
    return caches.map((cache) => cache.problem).find((problem) => problem !== undefined);
  }

  /** The same of a refusal that has lasted for two minutes. */
  get lastingRefusal(): string | undefined {
    const caches = [this.pods, this.nodes, this.namespaces];
    return caches.map((cache) => cache.lastingRefusal).find((words) => words !== undefined);
  }

  /** Which limit of memory one has met, in words; undefined while there is room. */
  get limit(): string | undefined {
    return this.#all.map((cache) => cache.limit).find((words) => words !== undefined);
  }

  /** What of the member is left out because it is no valid object, in words; undefined while nothing is. */
  get leftOut(): string | undefined {
    return this.#all.map((cache) => cache.leftOut).find((words) => words !== undefined);
  }

  /** One of them has heard nothing for long, although the member answers. */
  get failure(): ProbeFailure | undefined {
    const { pods, nodes, namespaces } = this;
    for (const [what, cache] of Object.entries({ pods, nodes, namespaces })) {
      const seconds = Math.round(cache.staleMs() / 1000);
      if (cache.hasSynced && seconds * 1000 > STALE_MS) {
        const why = cache.problem === undefined ? '' : `: ${cache.problem}`;
        return {
          reason: WATCH_STALE,
          message: `The member answers, but nothing has been heard of its ${what} for ${String(seconds)} s${why}. It is tried again by itself.`,
        };
      }
    }
    return undefined;
  }

  /** The member answers again: what may have heard nothing of it meanwhile is asked for anew at once. */
  retryNow(): void {
    for (const cache of this.#all) cache.retryNow();
  }

  /** Follows the member until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all(this.#all.map(async (cache) => await cache.run(signal)));
  }

  get #all(): readonly Pick<Informer<Pod>, 'limit' | 'leftOut' | 'retryNow' | 'run'>[] {
    return [this.pods, this.nodes, this.namespaces, this.quotas, this.limitRanges];
  }
}
