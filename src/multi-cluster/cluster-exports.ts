import type { Logger } from 'pino';
import type { KubeClient } from '../kube/client.ts';
import { isTrue } from '../kube/conditions.ts';
import type { Service } from '../kube/service.ts';
import type { EndpointSlice } from '../kube/discovery-v1.ts';
import type { InformerMetrics } from '../kube/informer-metrics.ts';
import { Informer } from '../kube/informer.ts';
import { isJsonObject } from '../kube/json-equal.ts';
import { SERVICE_EXPORTS, type ServiceExport } from '../kube/multicluster-v1.ts';
import { identifying, keyOf, type KubeObject } from '../kube/object.ts';
import { patchStatusAsRead } from '../kube/patch-status.ts';
import { timestamp } from '../kube/timestamps.ts';
import { changedConditions, exportConditions, type ExportOutcome } from './export-conditions.ts';
import { FIELD_MANAGER } from './imported-services.ts';

/** Longest wait between tries to read them, which the account may have no right to do, in ms. */
const RETRY_MS = 60_000;

/** Services of one cluster, and where they lead. */
export interface LocalServices {
  readonly synced: boolean;
  /** Why they cannot be read, in words; undefined while they are. */
  readonly problem: string | undefined;
  serviceOf(key: string): Service | undefined;
  slicesOf(key: string): readonly EndpointSlice[];
}

/** A ServiceExport as it is known here. */
export interface KnownExport extends ServiceExport {
  /** Who else has written its status: it is another implementation's, or somebody's who may write that. */
  readonly toldBy: string | undefined;
}

export interface ClusterExportsOptions {
  client: KubeClient;
  /** Called with the key of a ServiceExport that came, changed or went. */
  changed: (key: string) => void;
  metrics?: InformerMetrics | undefined;
  logger: Logger;
}

/** The ServiceExports of one cluster: what is asked, and what is told of it. */
export class ClusterExports {
  readonly #o: ClusterExportsOptions;
  readonly #exports: Informer<KnownExport>;

  constructor(options: ClusterExportsOptions) {
    const { client, logger, metrics } = options;
    this.#o = options;
    this.#exports = new Informer<KnownExport>({
      client,
      resource: SERVICE_EXPORTS,
      transform: known,
      timings: { backoffMaxMs: RETRY_MS },
      logger,
      metrics,
    });
  }

  /** Follows them until the signal aborts; never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const seen = (one: ServiceExport): void => this.#o.changed(keyOf(one));
    const off = this.#exports.on({ added: seen, updated: seen, deleted: seen });
    await this.#exports.run(signal);
    off();
  }

  get synced(): boolean {
    return this.#exports.hasSynced;
  }

  /** Why they cannot be read, in words; undefined while they are. */
  get problem(): string | undefined {
    return this.#exports.unread;
  }

  /** Which limit of memory they have met, in words; undefined while there is room. */
  get limit(): string | undefined {
    return this.#exports.limit;
  }

  get(key: string): KnownExport | undefined {
    const found = this.#exports.get(key);
    return found?.metadata.deletionTimestamp === undefined ? found : undefined;
  }

  keys(): string[] {
    return [...this.#exports.values()].map((one) => keyOf(one));
  }

  values(): Iterable<KnownExport> {
    return this.#exports.values();
  }

  get size(): number {
    return this.#exports.size;
  }

  /** Whether we say of any, in a namespace that counts, that the other clusters are told of it. */
  sayReady(counts: (namespace: string) => boolean): boolean {
    return [...this.#exports.values()].some(({ status, toldBy, metadata }) => {
      if (!counts(metadata.namespace ?? '')) return false;
      return isTrue({ status }, 'Ready') && toldBy === undefined && metadata.deletionTimestamp === undefined;
    });
  }

  /** Says on the ServiceExport what became of it, if that is news. */
  async tell(one: ServiceExport, outcome: ExportOutcome, signal: AbortSignal): Promise<void> {
    const { generation } = one.metadata;
    const now = timestamp(Date.now());
    const conditions = changedConditions(one.status?.conditions ?? [], exportConditions(outcome), { now, generation });
    if (conditions === undefined) return;
    // One that is otherwise by now is looked at again when the watch shows it.
    const how = { signal, fieldManager: FIELD_MANAGER };
    await patchStatusAsRead(this.#o.client, SERVICE_EXPORTS, one.metadata, { conditions }, how);
  }
}

/** What is kept of one. */
function known(raw: KubeObject): KnownExport {
  const { creationTimestamp, deletionTimestamp } = raw.metadata;
  const { status } = raw as ServiceExport;
  return {
    metadata: {
      ...identifying(raw.metadata),
      ...(creationTimestamp === undefined ? {} : { creationTimestamp }),
      ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
    },
    ...(status === undefined ? {} : { status }),
    toldBy: otherWriter('managedFields' in raw.metadata ? raw.metadata.managedFields : undefined),
  };
}

function otherWriter(managedFields: unknown): string | undefined {
  if (!Array.isArray(managedFields)) return undefined;
  for (const entry of managedFields) {
    if (!isJsonObject(entry) || entry['subresource'] !== 'status') continue;
    const { manager } = entry;
    if (typeof manager === 'string' && manager !== FIELD_MANAGER) return manager.slice(0, 100);
  }
  return undefined;
}
