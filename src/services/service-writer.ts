import type { Service } from '../kube/service.ts';
import { DeclinedWrites } from '../kube/declined-writes.ts';
import { isAlreadyExists } from '../kube/errors.ts';
import { keyOf } from '../kube/object.ts';
import { refusalIn } from '../kube/refusal-words.ts';
import type { CopyStore } from './copy-store.ts';
import type { OtherWriters } from './other-writers.ts';
import { type CopyPlace, isAsWanted, judgedOf, needsAnew, replacing, serviceCopy } from './service-copy.ts';
import type { ServiceMetrics } from './service-metrics.ts';
import type { ServiceProblem } from './services-finding.ts';

export interface ServiceWriterOptions {
  /** Name of the MemberCluster. */
  readonly member: string;
  readonly services: CopyStore<Service>;
  readonly others: OtherWriters;
  readonly metrics: ServiceMetrics;
}

/** `others`: another MemberCluster that stands for the same cluster sees to it. */
export type KeptService = { copy: Service } | { others: Service } | { problem: ServiceProblem };

/** Writes Services in one member, only where they differ. */
export class ServiceWriter {
  readonly #o: ServiceWriterOptions;
  readonly #declined = new DeclinedWrites();

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
      if (isAsWanted(copy, wanted) || this.#declined.has(keyOf(wanted), wanted, judgedOf(copy))) return { copy };
      if (needsAnew(copy, wanted)) {
        await this.removeService(copy, signal);
        return await this.#create(service, wanted, signal);
      }
      this.#count();
      const replaced = await services.replace(replacing(copy, wanted), signal);
      this.#noteAnswer(replaced, wanted);
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
      this.#count();
      const created = await services.create(wanted, signal);
      this.#noteAnswer(created, wanted);
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

  #noteAnswer(answer: Service, wanted: Service): void {
    this.#declined.note(keyOf(wanted), wanted, judgedOf(answer), isAsWanted(answer, wanted));
  }

  async removeService(copy: Service, signal: AbortSignal): Promise<void> {
    this.#count();
    this.#declined.forget(keyOf(copy));
    await this.#o.services.remove(copy.metadata, signal);
  }

  #count(): void {
    const { metrics, member } = this.#o;
    metrics.writes.inc({ member, object: 'service' });
  }
}
