import type { Logger } from 'pino';
import type { Service } from '../kube/service.ts';
import type { EndpointSlice } from '../kube/discovery-v1.ts';
import type { InformerMetrics } from '../kube/informer-metrics.ts';
import { ENDPOINT_SLICES, SERVICES } from '../kube/resource.ts';
import { type CopyStore, copyStore } from './copy-store.ts';
import type { ServicesHost, ServicesMember } from './member-services-options.ts';
import type { OtherWriters } from './other-writers.ts';
import type { ServiceMetrics } from './service-metrics.ts';
import { ServiceWriter } from './service-writer.ts';
import { SliceWriter } from './slice-writer.ts';

export interface ServiceCopiesOptions {
  host: Pick<ServicesHost, 'id'>;
  member: Pick<ServicesMember, 'name' | 'client'>;
  others: OtherWriters;
  /** Called with the key of the host's Service when something that stands for it came, changed or went. */
  changed: (serviceKey: string) => void;
  metrics: { services: ServiceMetrics; informer?: InformerMetrics | undefined };
  logger: Logger;
}

/** What stands in one member for Services of the host: the Services themselves, what they lead to, and who writes both. */
export class ServiceCopies {
  readonly services: CopyStore<Service>;
  readonly slices: CopyStore<EndpointSlice>;
  readonly writer: ServiceWriter;
  readonly sliceWriter: SliceWriter;

  readonly #others: OtherWriters;

  constructor({ host, member, others, changed, metrics, logger }: ServiceCopiesOptions) {
    const { name, client } = member;
    this.#others = others;
    const common = { client, hostId: host.id, changed, logger, metrics: metrics.informer };
    this.services = copyStore<Service>({ ...common, resource: SERVICES });
    this.slices = copyStore<EndpointSlice>({ ...common, resource: ENDPOINT_SLICES });
    const { services, slices } = this;
    const written = { member: name, others, metrics: metrics.services };
    this.writer = new ServiceWriter({ ...written, services });
    this.sliceWriter = new SliceWriter({ ...written, slices });
  }

  /** Follows the member until the signal aborts; never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([this.services.run(signal), this.slices.run(signal)]);
  }

  get synced(): boolean {
    return this.services.synced && this.slices.synced;
  }

  /** Why they cannot be read, in words; undefined while they are. */
  get problem(): string | undefined {
    return this.services.problem ?? this.slices.problem;
  }

  /** Which limit of memory they have met, in words; undefined while there is room. */
  get limit(): string | undefined {
    return this.services.limit ?? this.slices.limit;
  }

  /** Keys of the Services of the host that something stands for. */
  serviceKeys(): string[] {
    return [...this.services.subjects(), ...this.slices.subjects()];
  }

  /** Services and slices of this MemberCluster. */
  own(): (Service | EndpointSlice)[] {
    return [...this.services.values(), ...this.slices.values()].filter((copy) => !this.#others.isOthers(copy));
  }
}
