import type { Service } from '../kube/core-v1.ts';
import type { EndpointSlice } from '../kube/discovery-v1.ts';
import { canonicalJson } from '../kube/canonical-json.ts';
import { isAlreadyExists } from '../kube/errors.ts';
import { jsonEqual } from '../kube/json-equal.ts';
import { keyOf } from '../kube/object.ts';
import { refusalIn } from '../kube/refusal-words.ts';
import type { CopyStore } from './copy-store.ts';
import type { OtherWriters } from './other-writers.ts';
import { type CopyPlace, hasMarks, isAsWanted, needsAnew, replacing, serviceCopy } from './service-copy.ts';
import type { ServiceMetrics } from './service-metrics.ts';
import type { ServiceProblem } from './services-finding.ts';

export interface ServiceWriterOptions {
  /** Name of the MemberCluster. */
  readonly member: string;
  readonly services: CopyStore<Service>;
  readonly slices: CopyStore<EndpointSlice>;
  readonly others: OtherWriters;
  readonly metrics: ServiceMetrics;
}

/** `others`: another MemberCluster that stands for the same cluster sees to it. */
export type KeptService = { copy: Service } | { others: Service } | { problem: ServiceProblem };

/** Writes Services and their EndpointSlices in one member, only where they differ. */
export class ServiceWriter {
  readonly #o: ServiceWriterOptions;
  /** By key, the wanted copy that the member stored differently (by its own admission): not sent again, or it would be sent for ever. */
  readonly #declined = new Map<string, string>();

  constructor(options: ServiceWriterOptions) {
    this.#o = options;
  }

  /** Brings the Service in one namespace of the member up to date. */
  async keep(service: Service, place: CopyPlace, signal: AbortSignal): Promise<KeptService> {
    const { services } = this.#o;
    const wanted = serviceCopy(service, place);
    const copy = services.of(keyOf(service)).find(({ metadata }) => metadata.namespace === place.namespace);
    if (copy !== undefined && this.#o.others.isSeenTo(copy)) return { others: copy };
    try {
      if (copy === undefined) return await this.#create(service, wanted, signal);
      if (isAsWanted(copy, wanted) || this.#isDeclined(wanted)) return { copy };
      if (needsAnew(copy, wanted)) {
        await this.removeService(copy, signal);
        return await this.#create(service, wanted, signal);
      }
      this.#count('service');
      const replaced = await services.replace(replacing(copy, wanted), signal);
      this.#noteDeclined(replaced, wanted);
      return { copy: replaced };
    } catch (error) {
      const words = refusalIn(error);
      if (words === undefined) throw error;
      const message = `Cluster "${place.member}" refuses it: ${words}. It is tried again by itself.`;
      return { problem: { reason: 'ServiceRefused', message } };
    }
  }

  async #create(service: Service, wanted: Service, signal: AbortSignal): Promise<KeptService> {
    const { services, member } = this.#o;
    const key = keyOf(service);
    try {
      this.#count('service');
      const created = await services.create(wanted, signal);
      this.#noteDeclined(created, wanted);
      return { copy: created };
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
    const isOurs = await services.isOurs(key, wanted.metadata, signal);
    if (isOurs !== false) throw new Error(`Service ${keyOf(wanted)} of cluster "${member}" changed meanwhile`);
    const message =
      `Cluster "${member}" has a Service ${keyOf(wanted)} of its own, which stays as it is. Pods there that call this name reach that ` +
      'one, and get no variables for it. Rename one of the two, or map the namespace to another one.';
    return { problem: { reason: 'NameTaken', message } };
  }

  #isDeclined(wanted: Service): boolean {
    return this.#declined.get(keyOf(wanted)) === canonicalJson(wanted);
  }

  #noteDeclined(answer: Service, wanted: Service): void {
    if (isAsWanted(answer, wanted)) this.#declined.delete(keyOf(wanted));
    else this.#declined.set(keyOf(wanted), canonicalJson(wanted));
  }

  /**
   * Brings the slices of a Service in one namespace of the member up to date; its copy has to be there, or they would lead callers of
   * somebody else's Service to our pods. Returns how many writes that took.
   */
  async keepSlices(
    serviceKey: string,
    namespace: string,
    wanted: readonly EndpointSlice[],
    signal: AbortSignal,
  ): Promise<number> {
    const { slices, others } = this.#o;
    const there = new Map(
      slices
        .of(serviceKey)
        .filter(({ metadata }) => metadata.namespace === namespace)
        .map((slice) => [slice.metadata.name, slice]),
    );
    let writes = 0;
    for (const slice of wanted) {
      const before = there.get(slice.metadata.name);
      there.delete(slice.metadata.name);
      if (before !== undefined && isSameSlice(before, slice)) continue;
      if (before !== undefined && before.addressType !== slice.addressType) await this.removeSlice(before, signal);
      const isKept = before !== undefined && before.addressType === slice.addressType;
      const { uid, resourceVersion } = before?.metadata ?? {};
      const marks = {
        ...(uid === undefined ? {} : { uid }),
        ...(resourceVersion === undefined ? {} : { resourceVersion }),
      };
      this.#count('endpointslice');
      writes += 1;
      if (isKept) await slices.replace({ ...slice, metadata: { ...slice.metadata, ...marks } }, signal);
      else await slices.create(slice, signal);
    }
    for (const slice of there.values()) {
      if (others.isToStay(slice)) continue;
      writes += 1;
      await this.removeSlice(slice, signal);
    }
    return writes;
  }

  async removeService(copy: Service, signal: AbortSignal): Promise<void> {
    this.#count('service');
    await this.#o.services.remove(copy.metadata, signal);
  }

  async removeSlice(slice: EndpointSlice, signal: AbortSignal): Promise<void> {
    this.#count('endpointslice');
    await this.#o.slices.remove(slice.metadata, signal);
  }

  #count(object: 'service' | 'endpointslice'): void {
    const { metrics, member } = this.#o;
    metrics.writes.inc({ member, object });
  }
}

function isSameSlice(is: EndpointSlice, shall: EndpointSlice): boolean {
  const labels = shall.metadata.labels ?? {};
  return (
    hasMarks(is.metadata, shall.metadata) &&
    Object.entries(labels).every(([key, value]) => is.metadata.labels?.[key] === value) &&
    is.addressType === shall.addressType &&
    jsonEqual(is.ports ?? [], shall.ports ?? []) &&
    jsonEqual(is.endpoints ?? [], shall.endpoints ?? [])
  );
}
