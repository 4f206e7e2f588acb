import type { Logger } from 'pino';
import { HOST_LABEL } from '../api/marks.ts';
import type { KubeClient } from '../kube/client.ts';
import type { Service } from '../kube/service.ts';
import type { EndpointSlice } from '../kube/discovery-v1.ts';
import { endpointSliceProjection, serviceKeyOf } from '../kube/endpoint-slices.ts';
import type { InformerMetrics } from '../kube/informer-metrics.ts';
import { Informer } from '../kube/informer.ts';
import { keyOf, withoutManagedFields } from '../kube/object.ts';
import { ENDPOINT_SLICES, SERVICES } from '../kube/resource.ts';
import type { LocalServices } from './cluster-exports.ts';

const RETRY_MS = 60_000;
const SERVICE_INDEX = 'service';

export interface MemberLocalServicesOptions {
  client: KubeClient;
  /** Called with the key of a Service that changed, or that leads elsewhere. */
  changed: (key: string) => void;
  metrics?: InformerMetrics | undefined;
  logger: Logger;
}

/** Services of a member's own, without any that a host made there, and where they lead. */
export class MemberLocalServices implements LocalServices {
  readonly #changed: (key: string) => void;
  readonly #services: Informer<Service>;
  readonly #slices: Informer<EndpointSlice>;

  constructor({ client, changed, metrics, logger }: MemberLocalServicesOptions) {
    this.#changed = changed;
    const common = { client, labelSelector: `!${HOST_LABEL}`, timings: { backoffMaxMs: RETRY_MS }, logger, metrics };
    this.#services = new Informer<Service>({
      ...common,
      resource: SERVICES,
      transform: (raw) => withoutManagedFields(raw as Service),
    });
    this.#slices = new Informer<EndpointSlice>({
      ...common,
      resource: ENDPOINT_SLICES,
      transform: (raw) => endpointSliceProjection(raw as EndpointSlice),
      indexes: { [SERVICE_INDEX]: serviceKeyOf },
    });
  }

  /** Follows them until the signal aborts; never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const seen = (service: Service): void => this.#changed(keyOf(service));
    const led = (slice: EndpointSlice): void => {
      for (const key of serviceKeyOf(slice)) this.#changed(key);
    };
    const off = [
      this.#services.on({ added: seen, updated: seen, deleted: seen }),
      this.#slices.on({ added: led, updated: led, deleted: led }),
    ];
    await Promise.all([this.#services.run(signal), this.#slices.run(signal)]);
    for (const end of off) end();
  }

  get synced(): boolean {
    return this.#services.hasSynced && this.#slices.hasSynced;
  }

  get problem(): string | undefined {
    return this.#services.unread ?? this.#slices.unread;
  }

  /** Which limit of memory they have met, in words; undefined while there is room. */
  get limit(): string | undefined {
    return this.#services.limit ?? this.#slices.limit;
  }

  serviceOf(key: string): Service | undefined {
    return this.#services.get(key);
  }

  slicesOf(key: string): readonly EndpointSlice[] {
    return this.#slices.byIndex(SERVICE_INDEX, key);
  }
}
