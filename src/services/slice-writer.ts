import { type EndpointSlice, HEADLESS_LABEL, PROXY_NAME_LABEL } from '../kube/discovery-v1.ts';
import { DeclinedWrites } from '../kube/declined-writes.ts';
import { isAlreadyExists } from '../kube/errors.ts';
import { jsonEqual } from '../kube/json-equal.ts';
import { keyOf } from '../kube/object.ts';
import type { CopyStore } from './copy-store.ts';
import type { OtherWriters } from './other-writers.ts';
import { hasMarks } from './service-copy.ts';
import type { ServiceMetrics } from './service-metrics.ts';
import type { ServiceProblem } from './services-finding.ts';

export interface SliceWriterOptions {
  /** Name of the MemberCluster. */
  readonly member: string;
  readonly slices: CopyStore<EndpointSlice>;
  readonly others: OtherWriters;
  readonly metrics: ServiceMetrics;
}

/** Writes EndpointSlices of Services in one member, only where they differ. */
export class SliceWriter {
  readonly #o: SliceWriterOptions;
  readonly #declined = new DeclinedWrites();

  constructor(options: SliceWriterOptions) {
    this.#o = options;
  }

  /**
   * Brings the slices of a Service in one namespace of the member up to date; its copy has to be there, or they would lead callers of
   * somebody else's Service to our pods. Returns how many writes that took, and why a slice is not there.
   */
  async keep(
    serviceKey: string,
    namespace: string,
    wanted: readonly EndpointSlice[],
    signal: AbortSignal,
  ): Promise<{ writes: number; problem?: ServiceProblem }> {
    const { slices, others } = this.#o;
    const there = new Map(
      slices
        .of(serviceKey)
        .filter(({ metadata }) => metadata.namespace === namespace)
        .map((slice) => [slice.metadata.name, slice]),
    );
    let writes = 0;
    let problem: ServiceProblem | undefined;
    for (const slice of wanted) {
      const before = there.get(slice.metadata.name);
      there.delete(slice.metadata.name);
      if (before !== undefined && (isSameSlice(before, slice) || this.#isDeclined(slice, before))) continue;
      writes += 1;
      problem = (await this.#write(serviceKey, before, slice, signal)) ?? problem;
    }
    for (const slice of there.values()) {
      if (others.isToStay(slice)) continue;
      writes += 1;
      await this.remove(slice, signal);
    }
    return problem === undefined ? { writes } : { writes, problem };
  }

  async remove(slice: EndpointSlice, signal: AbortSignal): Promise<void> {
    this.#count();
    this.#declined.forget(keyOf(slice));
    await this.#o.slices.remove(slice.metadata, signal);
  }

  async #write(
    serviceKey: string,
    before: EndpointSlice | undefined,
    wanted: EndpointSlice,
    signal: AbortSignal,
  ): Promise<ServiceProblem | undefined> {
    if (before === undefined) return await this.#create(serviceKey, wanted, signal);
    if (before.addressType !== wanted.addressType) {
      await this.remove(before, signal);
      return await this.#create(serviceKey, wanted, signal);
    }
    const { uid, resourceVersion } = before.metadata;
    const marks = {
      ...(uid === undefined ? {} : { uid }),
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
    };
    this.#count();
    const made = { ...wanted, metadata: { ...wanted.metadata, ...marks } };
    this.#noteAnswer(await this.#o.slices.replace(made, signal), wanted);
    return undefined;
  }

  async #create(serviceKey: string, wanted: EndpointSlice, signal: AbortSignal): Promise<ServiceProblem | undefined> {
    const { slices, member } = this.#o;
    try {
      this.#count();
      this.#noteAnswer(await slices.create(wanted, signal), wanted);
      return undefined;
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
    const isOurs = await slices.isOurs(serviceKey, wanted.metadata, signal);
    if (isOurs !== false) throw new Error(`EndpointSlice ${keyOf(wanted)} of cluster "${member}" changed meanwhile`);
    const message =
      `Cluster "${member}" has an EndpointSlice ${keyOf(wanted)} that is not ours, or whose labels somebody took off, where one of this Service ` +
      'is to be. It stays as it is, so endpoints are missing there, and it may lead callers to others. Delete it.';
    return { reason: 'NameTaken', message };
  }

  #isDeclined(wanted: EndpointSlice, there: EndpointSlice): boolean {
    return this.#declined.has(keyOf(wanted), wanted, judgedOf(there));
  }

  #noteAnswer(answer: EndpointSlice, wanted: EndpointSlice): void {
    this.#declined.note(keyOf(wanted), wanted, judgedOf(answer), isSameSlice(answer, wanted));
  }

  #count(): void {
    const { metrics, member } = this.#o;
    metrics.writes.inc({ member, object: 'endpointslice' });
  }
}

function judgedOf({ metadata, addressType, endpoints, ports }: EndpointSlice): unknown {
  return [metadata.labels, metadata.annotations, addressType, endpoints, ports];
}

function isSameSlice(is: EndpointSlice, shall: EndpointSlice): boolean {
  // With one of these that is not wanted any more proxies would look past the slice.
  const labels = { [HEADLESS_LABEL]: undefined, [PROXY_NAME_LABEL]: undefined, ...shall.metadata.labels };
  return (
    hasMarks(is.metadata, shall.metadata) &&
    Object.entries(labels).every(([key, value]) => is.metadata.labels?.[key] === value) &&
    is.addressType === shall.addressType &&
    jsonEqual(is.ports ?? [], shall.ports ?? []) &&
    jsonEqual(is.endpoints ?? [], shall.endpoints ?? [])
  );
}
