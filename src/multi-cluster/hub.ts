import type { Logger } from 'pino';
import { LOCAL } from '../api/cluster-tiers.ts';
import { AutoResetEvent } from '../kube/auto-reset-event.ts';
import type { KubeClient } from '../kube/client.ts';
import type { EndpointSlice } from '../kube/discovery-v1.ts';
import { isAlreadyExists, isNotFound } from '../kube/errors.ts';
import type { InformerMetrics } from '../kube/informer-metrics.ts';
import { jsonEqual } from '../kube/json-equal.ts';
import { type ServiceImport, SOURCE_CLUSTER_LABEL } from '../kube/multicluster-v1.ts';
import { splitKey } from '../kube/object.ts';
import { refusalIn } from '../kube/refusal-words.ts';
import { importLabels } from './derived-service.ts';
import type { ExchangeMetrics } from './exchange-metrics.ts';
import { clustersIn, type ExportRecord, recordAnnotation, recordsIn } from './export-record.ts';
import { ExportPace } from './export-pace.ts';
import { FIELD_MANAGER, ImportedServices, type ImportProblem, taken } from './imported-services.ts';
import { mergeExports, type MergedService } from './merged-service.ts';

export interface HubOptions {
  host: KubeClient;
  hostId: string;
  metrics: { exchange: ExchangeMetrics; informer?: InformerMetrics | undefined };
  logger: Logger;
}

/**
 * What all clusters export, as the host keeps it: one ServiceImport a name, with what each cluster says of its Service in an annotation, and
 * the EndpointSlices of each. Who acts for a cluster writes what that one exports, and reads what the others do. It is followed from
 * when it is first used.
 */
export class Hub {
  readonly objects: ImportedServices;
  readonly hostId: string;
  readonly #paces = new Map<string, ExportPace>();
  readonly #listeners = new Set<(key: string) => void>();
  readonly #used = new AutoResetEvent();
  #isUsed = false;

  constructor({ host, hostId, metrics, logger }: HubOptions) {
    this.hostId = hostId;
    const changed = (key: string): void => {
      for (const listener of this.#listeners) listener(key);
    };
    const place = { client: host, cluster: LOCAL, hostId };
    this.objects = new ImportedServices({ ...place, changed, readsEndpoints: true, metrics, logger });
  }

  /** Works until the signal aborts; never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    while (!this.#isUsed && !signal.aborted) await this.#used.wait(signal);
    if (!signal.aborted) await this.objects.run(signal);
  }

  use(): void {
    this.#isUsed = true;
    this.#used.set();
  }

  get isUsed(): boolean {
    return this.#isUsed;
  }

  /** Called with the key of the host's ServiceImport when anything of it changed. Returns how to stop that. */
  on(listener: (key: string) => void): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  /** What another implementation has written in the host, which is in charge of all names then. */
  foreign(): string | undefined {
    return this.objects.foreign();
  }

  /** What the exports of a name come to. */
  merged(key: string): MergedService | undefined {
    const { objects } = this;
    const found = objects.importOf(key);
    if (found === undefined || !objects.isOurs(found)) return undefined;
    return mergeExports(recordsIn(found.metadata.annotations));
  }

  /** The clusters of which anything is kept under a name. */
  clustersOf(key: string): Set<string> {
    const sources = this.objects.slices
      .of(key)
      .flatMap(({ metadata }) => metadata.labels?.[SOURCE_CLUSTER_LABEL] ?? []);
    return new Set([...clustersIn(this.objects.importOf(key)?.metadata.annotations), ...sources]);
  }

  /** Whether others are told that a cluster exports the name. */
  knows(key: string, cluster: string): boolean {
    return this.objects.importOf(key)?.metadata.annotations?.[recordAnnotation(cluster)] !== undefined;
  }

  /** How long to tell nothing of a cluster under a name, in ms. `isExported`: the cluster wants it to be told. */
  restMs(key: string, cluster: string, isExported: boolean): number {
    return this.#paceOf(cluster).restMs(key, isExported && !this.knows(key, cluster));
  }

  #paceOf(cluster: string): ExportPace {
    const pace = this.#paces.get(cluster) ?? new ExportPace();
    this.#paces.set(cluster, pace);
    return pace;
  }

  slicesOf(key: string, which: (cluster: string) => boolean): EndpointSlice[] {
    return this.objects.slices.of(key).filter((slice) => which(sourceOf(slice)));
  }

  /** Keeps what a cluster exports under a name, or that it does not; and returns why that cannot be. */
  async keepRecord(
    key: string,
    cluster: string,
    record: ExportRecord | undefined,
    signal: AbortSignal,
  ): Promise<ImportProblem | 'no namespace' | undefined> {
    try {
      return await this.#keepRecord(key, cluster, record, signal);
    } catch (error) {
      const words = refusalIn(error);
      if (words === undefined) throw error;
      const message = `The host does not take what is exported: ${words}. It is tried again by itself.`;
      return { reason: 'ImportRefused', message };
    }
  }

  async #keepRecord(
    key: string,
    cluster: string,
    record: ExportRecord | undefined,
    signal: AbortSignal,
  ): Promise<ImportProblem | 'no namespace' | undefined> {
    const { objects } = this;
    const there = objects.importOf(key);
    if (there !== undefined && !objects.isOurs(there)) return record === undefined ? undefined : taken(key);
    const annotation = recordAnnotation(cluster);
    if (there === undefined) {
      if (record === undefined) return undefined;
      const value = JSON.stringify(record);
      this.#paceOf(cluster).wrote(key, value.length);
      return await this.#create(key, { [annotation]: value }, record, signal);
    }
    const { annotations } = there.metadata;
    if (record === undefined ? annotations?.[annotation] === undefined : this.#isKept(there, cluster, record))
      return undefined;
    const value = record === undefined ? null : JSON.stringify(record);
    this.#paceOf(cluster).wrote(key, value?.length ?? 0);
    // The UID: the host may have taken it away as nobody exported it any more.
    const body = { metadata: { uid: there.metadata.uid, annotations: { [annotation]: value } } };
    await objects.imports.patch(there.metadata, body, { fieldManager: FIELD_MANAGER }, signal);
    return undefined;
  }

  async #create(
    key: string,
    annotations: Record<string, string>,
    { type, ports }: ExportRecord,
    signal: AbortSignal,
  ): Promise<'no namespace' | undefined> {
    const { namespace = '', name } = splitKey(key);
    const made: ServiceImport = {
      apiVersion: 'multicluster.x-k8s.io/v1beta1',
      kind: 'ServiceImport',
      metadata: { name, namespace, labels: importLabels({ hostId: this.hostId, member: undefined }), annotations },
      spec: { type, ports },
    };
    try {
      await this.objects.imports.create(made, signal);
      return undefined;
    } catch (error) {
      if (isNotFound(error)) return 'no namespace';
      // Another cluster was first; it is looked at again when the watch shows that.
      if (isAlreadyExists(error)) return undefined;
      throw error;
    }
  }

  #isKept({ metadata }: ServiceImport, cluster: string, record: ExportRecord): boolean {
    return jsonEqual(recordsIn(metadata.annotations).get(cluster), record);
  }

  /** Brings the EndpointSlices of one cluster up to date, and returns why one of them cannot be. */
  async keepSlices(
    key: string,
    cluster: string,
    wanted: readonly EndpointSlice[],
    signal: AbortSignal,
  ): Promise<ImportProblem | undefined> {
    const pace = this.#paceOf(cluster);
    let told = 0;
    const writes = (bytes: number): void => {
      told += 1;
      pace.wrote(key, bytes);
    };
    try {
      return await this.objects.keepSlices(key, wanted, (slice) => sourceOf(slice) === cluster, signal, writes);
    } finally {
      // Whoever imports it compares all of them for each one that changes.
      if (told > 0) pace.gather(key, Math.max(told, wanted.length));
    }
  }
}

function sourceOf({ metadata }: EndpointSlice): string {
  return metadata.labels?.[SOURCE_CLUSTER_LABEL] ?? '';
}
