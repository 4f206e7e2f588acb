import type { Logger } from 'pino';
import { LOCAL } from '../api/cluster-tiers.ts';
import { HOST_LABEL, MEMBER_LABEL } from '../api/marks.ts';
import { cleanText } from '../kube/clean-text.ts';
import type { KubeClient } from '../kube/client.ts';
import { DeclinedWrites } from '../kube/declined-writes.ts';
import type { Service } from '../kube/service.ts';
import type { EndpointSlice } from '../kube/discovery-v1.ts';
import type { InformerMetrics } from '../kube/informer-metrics.ts';
import { isDnsLabel } from '../kube/dns-label.ts';
import { jsonEqual } from '../kube/json-equal.ts';
import {
  DERIVED_SERVICE_ANNOTATION,
  IMPORT_NAME_LABEL,
  SERVICE_IMPORTS,
  type ServiceImport,
  SOURCE_CLUSTER_LABEL,
} from '../kube/multicluster-v1.ts';
import { isAlreadyExists } from '../kube/errors.ts';
import { AFTER_LIMIT, LimitError } from '../kube/limit-error.ts';
import { keyFor, keyOf, type KubeObject } from '../kube/object.ts';
import { refusalIn } from '../kube/refusal-words.ts';
import { ENDPOINT_SLICES, SERVICES } from '../kube/resource.ts';
import { WrittenObjects } from '../kube/written-objects.ts';
import {
  derivedService,
  hasLabels,
  type ImportPlace,
  isDerivedAsWanted,
  needsAnew,
  replacingDerived,
  serviceImport,
} from './derived-service.ts';
import type { ExchangeMetrics } from './exchange-metrics.ts';
import { digested, isSliceAsWanted, type StandingSlice } from './imported-slices.ts';
import type { MergedService } from './merged-service.ts';

export const FIELD_MANAGER = 'spillway';
/** Longest part of what somebody else wrote that is repeated to users, in bytes. */
const MAX_WORDS = 500;

export interface ImportedServicesOptions {
  client: KubeClient;
  /** Name of the cluster, for metrics. */
  cluster: string;
  hostId: string;
  /** Whether what the MemberCluster of that name wrote is for that one to keep and to take away. Default: there is no other. */
  isOthers?: (writer: string) => boolean;
  /** Called with the key of the ServiceImport, in this cluster, when something that stands for it came, changed or went. */
  changed: (key: string) => void;
  /** Whether anybody reads where slices lead. Where not, what others export takes no memory by how much it is. */
  readsEndpoints: boolean;
  metrics: { exchange: ExchangeMetrics; informer?: InformerMetrics | undefined };
  logger: Logger;
}

/** Why something that others export does not stand in a cluster. */
export interface ImportProblem {
  reason: 'ImportTaken' | 'ImportRefused' | 'CacheLimit';
  message: string;
}

/**
 * What stands in one cluster for Services that clusters export: the ServiceImport, the Service that has its address, and the
 * EndpointSlices that this one leads to.
 */
export class ImportedServices {
  readonly imports: WrittenObjects<ServiceImport, ServiceImport>;
  readonly services: WrittenObjects<Service, Service>;
  readonly slices: WrittenObjects<StandingSlice, StandingSlice>;
  readonly #o: ImportedServicesOptions;
  /** By kind and key. */
  readonly #declined = new DeclinedWrites();

  constructor(options: ImportedServicesOptions) {
    const { client, hostId, changed, readsEndpoints, metrics, logger } = options;
    this.#o = options;
    const common = { client, changed, logger, metrics: metrics.informer };
    this.imports = new WrittenObjects<ServiceImport, ServiceImport>({
      ...common,
      resource: SERVICE_IMPORTS,
      labelSelector: '',
      read: (value) => ({ subject: keyOf(value), value }),
    });
    const named = <T extends KubeObject>(value: T): { subject: string; value: T } | undefined => {
      const { namespace, labels } = value.metadata;
      const name = labels?.[IMPORT_NAME_LABEL] ?? '';
      return labels?.[HOST_LABEL] === hostId && isDnsLabel(name)
        ? { subject: keyFor(namespace, name), value }
        : undefined;
    };
    const ours = `${HOST_LABEL}=${hostId},${IMPORT_NAME_LABEL}`;
    this.services = new WrittenObjects<Service, Service>({
      ...common,
      resource: SERVICES,
      labelSelector: `${ours},!${SOURCE_CLUSTER_LABEL}`,
      read: named,
    });
    this.slices = new WrittenObjects<StandingSlice, StandingSlice>({
      ...common,
      resource: ENDPOINT_SLICES,
      labelSelector: `${ours},${SOURCE_CLUSTER_LABEL}`,
      read: named,
      ...(readsEndpoints ? {} : { keep: digested }),
    });
  }

  /** Follows the cluster until the signal aborts; never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([this.imports.run(signal), this.services.run(signal), this.slices.run(signal)]);
    this.#o.metrics.exchange.imports.remove({ cluster: this.#o.cluster });
  }

  get synced(): boolean {
    return this.imports.synced && this.services.synced && this.slices.synced;
  }

  /** Why they cannot be read, in words; undefined while they are. */
  get problem(): string | undefined {
    return this.imports.problem ?? this.services.problem ?? this.slices.problem;
  }

  /** Which limit of memory they have met, in words; undefined while there is room. */
  get limit(): string | undefined {
    return this.imports.limit ?? this.services.limit ?? this.slices.limit;
  }

  /** By its label, or as the Service that it says to be behind it is ours: whoever takes the label away puts nobody else in charge. */
  isOurs({ metadata }: ServiceImport): boolean {
    const { labels, annotations } = metadata;
    if (labels?.[HOST_LABEL] === this.#o.hostId) return true;
    const behind = annotations?.[DERIVED_SERVICE_ANNOTATION];
    return behind !== undefined && this.services.of(keyOf({ metadata })).some((one) => one.metadata.name === behind);
  }

  /** A ServiceImport that another implementation has filled in; only controllers may (KEP-1645). */
  foreign(): string | undefined {
    if (!this.imports.synced || !this.services.synced) return undefined;
    const found = this.imports.values().find((one) => !this.isOurs(one) && (one.status?.clusters ?? []).length > 0);
    return found === undefined ? undefined : keyOf(found);
  }

  /** Keys of all that something of ours stands for. */
  keys(): Set<string> {
    const ours = this.imports.values().filter((one) => this.isOurs(one));
    return new Set([...ours.map((one) => keyOf(one)), ...this.services.subjects(), ...this.slices.subjects()]);
  }

  /** All that is ours, and no other MemberCluster's. */
  own(): (ServiceImport | Service | StandingSlice)[] {
    const imports = this.imports.values().filter((one) => this.isOurs(one));
    return [...imports, ...this.services.values(), ...this.slices.values()].filter((one) => !this.#isOthers(one));
  }

  #isOthers({ metadata }: KubeObject): boolean {
    const writer = metadata.labels?.[MEMBER_LABEL];
    return writer !== undefined && this.#o.isOthers?.(writer) === true;
  }

  importOf(key: string): ServiceImport | undefined {
    return this.imports.of(key)[0];
  }

  /** Whether the Service of a name is there, whose endpoints are worth to be kept even while it cannot be changed. */
  hasService(key: string): boolean {
    return this.services.of(key).length > 0;
  }

  /** Brings the Service and the ServiceImport of a name up to date. Its labels besides, and annotations of others, stay. */
  async keep(
    hostKey: string,
    merged: MergedService,
    place: ImportPlace,
    signal: AbortSignal,
  ): Promise<ImportProblem | undefined> {
    const key = keyFor(place.namespace, place.name);
    const there = this.importOf(key);
    if (there !== undefined && !this.isOurs(there)) return taken(key);
    try {
      const derived = await this.#keepDerived(key, derivedService(hostKey, merged, place), signal);
      if ('reason' in derived) return derived;
      await this.#keepImport(there, serviceImport(hostKey, merged, derived, place), signal);
      this.#o.metrics.exchange.imports.set({ cluster: this.#o.cluster }, this.keys().size);
      return undefined;
    } catch (error) {
      return importRefused(error, `ServiceImport ${key} cannot stand there`);
    }
  }

  async #keepDerived(key: string, wanted: Service, signal: AbortSignal): Promise<Service | ImportProblem> {
    const { services } = this;
    const there = services.of(key).find(({ metadata }) => metadata.name === wanted.metadata.name);
    if (there !== undefined && (isDerivedAsWanted(there, wanted) || this.#isDeclined('Service', wanted, there)))
      return there;
    this.#count('service');
    if (there !== undefined && needsAnew(there, wanted)) await services.remove(there.metadata, signal);
    const isReplaced = there !== undefined && !needsAnew(there, wanted);
    const kept = isReplaced
      ? await services.replace(replacingDerived(there, wanted), signal)
      : await this.#created(services, key, wanted, signal);
    if (kept === undefined) return this.#nameTaken('Service', wanted);
    this.#noteAnswer('Service', wanted, kept, isDerivedAsWanted(kept, wanted));
    return kept;
  }

  /** Undefined: there is one of the name that is not ours. */
  async #created<T extends KubeObject>(
    objects: WrittenObjects<T, T>,
    key: string,
    made: T,
    signal: AbortSignal,
  ): Promise<T | undefined> {
    try {
      return await objects.create(made, signal);
    } catch (error) {
      if (!isAlreadyExists(error) || (await objects.isOurs(key, made.metadata, signal)) !== false) throw error;
      return undefined;
    }
  }

  async #keepImport(there: ServiceImport | undefined, wanted: ServiceImport, signal: AbortSignal): Promise<void> {
    let kept = there;
    const { metadata, spec, status } = wanted;
    const { labels, annotations } = metadata;
    const asked = { metadata, spec };
    if (kept === undefined) {
      this.#count('import');
      kept = await this.imports.create(wanted, signal);
      this.#noteAnswer('ServiceImport', asked, kept, isImportAsWanted(kept, wanted));
    } else if (!isImportAsWanted(kept, wanted) && !this.#isDeclined('ServiceImport', asked, kept)) {
      this.#count('import');
      // Fields that are not wanted any more would stay.
      const gone = Object.fromEntries(Object.keys(kept.spec).map((field) => [field, null]));
      const body = { metadata: { labels, annotations }, spec: { ...gone, ...spec } };
      kept = await this.imports.patch(kept.metadata, body, { fieldManager: FIELD_MANAGER }, signal);
      this.#noteAnswer('ServiceImport', asked, kept, isImportAsWanted(kept, wanted));
    }
    const clusters = ({ status: { clusters: found = [] } = {} }: ServiceImport): object => found;
    const told = { metadata, status };
    if (!jsonEqual(clusters(kept), clusters(wanted)) && !this.#isDeclined('status', told, kept)) {
      this.#count('import');
      const how = { subresource: 'status', fieldManager: FIELD_MANAGER } as const;
      kept = await this.imports.patch(kept.metadata, { status }, how, signal);
      this.#noteAnswer('status', told, kept, jsonEqual(clusters(kept), clusters(wanted)));
    }
  }

  /**
   * Brings those EndpointSlices of a name up to date that `which` chooses, and returns why one of them cannot be. `writes` is called
   * before each write, with the bytes of its text.
   */
  async keepSlices(
    key: string,
    wanted: readonly EndpointSlice[],
    which: (slice: StandingSlice) => boolean,
    signal: AbortSignal,
    writes: (bytes: number) => void = () => undefined,
  ): Promise<ImportProblem | undefined> {
    const { slices } = this;
    let problem: ImportProblem | undefined;
    const there = new Map(slices.of(key).map((slice) => [slice.metadata.name, slice]));
    for (const slice of wanted) {
      const before = there.get(slice.metadata.name);
      there.delete(slice.metadata.name);
      const isKept = before !== undefined && isSliceAsWanted(before, slice);
      if (isKept || (before !== undefined && this.#isDeclined('EndpointSlice', slice, before))) continue;
      this.#count('endpointslice');
      writes(Buffer.byteLength(JSON.stringify(slice)));
      let kept: StandingSlice | undefined;
      if (before === undefined) kept = await this.#created(slices, key, slice, signal);
      else {
        const { uid, resourceVersion } = before.metadata;
        const marks = {
          ...(uid === undefined ? {} : { uid }),
          ...(resourceVersion === undefined ? {} : { resourceVersion }),
        };
        kept = await slices.replace({ ...slice, metadata: { ...slice.metadata, ...marks } }, signal);
      }
      if (kept === undefined) problem ??= this.#nameTaken('EndpointSlice', slice);
      else this.#noteAnswer('EndpointSlice', slice, kept, isSliceAsWanted(kept, slice));
    }
    for (const slice of there.values()) {
      if (!which(slice) || this.#isOthers(slice)) continue;
      this.#count('endpointslice');
      writes(0);
      this.#declined.forget(`EndpointSlice ${keyOf(slice)}`);
      await slices.remove(slice.metadata, signal);
    }
    return problem;
  }

  /** Takes away all of ours that stands for a name. What another MemberCluster wrote is for that one. */
  async remove(key: string, signal: AbortSignal): Promise<void> {
    const there = this.importOf(key);
    if (there !== undefined && this.isOurs(there) && !this.#isOthers(there)) {
      this.#count('import');
      // Another cluster may have begun to export it.
      await this.imports.remove(there.metadata, signal, 'exactly');
    }
    for (const service of this.services.of(key)) {
      if (this.#isOthers(service)) continue;
      this.#declined.forget(`Service ${keyOf(service)}`);
      this.#count('service');
      await this.services.remove(service.metadata, signal);
    }
    await this.keepSlices(key, [], () => true, signal);
    for (const what of ['ServiceImport', 'status']) this.#declined.forget(`${what} ${key}`);
    this.#o.metrics.exchange.imports.set({ cluster: this.#o.cluster }, this.keys().size);
  }

  #isDeclined(what: string, wanted: KubeObject, there: KubeObject): boolean {
    return this.#declined.has(`${what} ${keyOf(wanted)}`, wanted, storedOf(what, there));
  }

  #noteAnswer(what: string, wanted: KubeObject, answer: KubeObject, isStored: boolean): void {
    this.#declined.note(`${what} ${keyOf(wanted)}`, wanted, storedOf(what, answer), isStored);
  }

  /** By the Service that is to have the address, or by an EndpointSlice that it is to lead to. */
  #nameTaken(kind: 'Service' | 'EndpointSlice', wanted: KubeObject): ImportProblem {
    const { cluster } = this.#o;
    const where = cluster === LOCAL ? 'The host' : `Cluster "${cluster}"`;
    const [one, so] =
      kind === 'Service'
        ? ['a Service', '']
        : ['an EndpointSlice', ', so endpoints are missing, and it may lead callers to others'];
    const message = `${where} has ${one} ${keyOf(wanted)} that is not ours, or that somebody took our labels off, and it stays as it is${so}. Delete it to have what other clusters export.`;
    return { reason: 'ImportTaken', message };
  }

  #count(object: 'import' | 'service' | 'endpointslice'): void {
    this.#o.metrics.exchange.writes.inc({ cluster: this.#o.cluster, object });
  }
}

export function taken(key: string): ImportProblem {
  const message = `There is a ServiceImport ${key} that is not ours, which stays as it is. Take it away to have what other clusters export under this name.`;
  return { reason: 'ImportTaken', message };
}

/** What an API server does not take, or there is no room for here; throws any other error again. */
export function importRefused(error: unknown, what: string): ImportProblem {
  if (error instanceof LimitError)
    return { reason: 'CacheLimit', message: `${what}: ${error.message}. ${AFTER_LIMIT}` };
  const words = refusalIn(error);
  if (words === undefined) throw error;
  return { reason: 'ImportRefused', message: `${what}: ${words}. It is tried again by itself.` };
}

/** `by`: who else has written the status of the ServiceExport of that name. */
export function toldByOthers(key: string, by: string): ImportProblem {
  const message = `The status of ServiceExport ${key} was written by ${cleanText(by, MAX_WORDS)}, so it is left to that one. Delete it and make it again to have the Service exchanged by Spillway.`;
  return { reason: 'ImportTaken', message };
}

/** What is there of all that anybody but the API server decides. */
function storedOf(what: string, { metadata, ...body }: KubeObject): unknown {
  const { labels, annotations } = metadata;
  const fields = Object.entries(body).filter(([field]) => (field === 'status') === (what === 'status'));
  const stored = fields.filter(([field]) => field !== 'kind' && field !== 'apiVersion');
  return [what === 'status' ? [] : [labels, annotations], Object.fromEntries(stored)];
}

/** Whether it says all that the wanted one says, besides the status. */
function isImportAsWanted(is: ServiceImport, shall: ServiceImport): boolean {
  const marks = Object.entries(shall.metadata.annotations ?? {});
  return (
    jsonEqual(plain(is.spec), plain(shall.spec)) &&
    hasLabels(is, shall) &&
    marks.every(([name, value]) => is.metadata.annotations?.[name] === value)
  );
}

/** Nothing and an empty list are the same; ports have a protocol. */
function plain({ ips = [], ...spec }: ServiceImport['spec']): object {
  const ports = spec.ports.map(({ protocol = 'TCP', ...port }) => ({ ...port, protocol }));
  return { ...spec, ports, ips };
}
