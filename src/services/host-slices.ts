import type { Logger } from 'pino';
import { HOST_LABEL } from '../api/marks.ts';
import { AutoResetEvent } from '../kube/auto-reset-event.ts';
import type { KubeClient } from '../kube/client.ts';
import { childSignal } from '../kube/child-signal.ts';
import type { EndpointSlice } from '../kube/discovery-v1.ts';
import { endpointSliceProjection, serviceKeyOf } from '../kube/endpoint-slices.ts';
import type { InformerMetrics } from '../kube/informer-metrics.ts';
import { Informer } from '../kube/informer.ts';
import { ENDPOINT_SLICES } from '../kube/resource.ts';

/** Longest wait between tries to read them, which the manager may have no right to do, in ms. */
const RETRY_MS = 60_000;
const SERVICE_INDEX = 'service';

export interface HostSlicesOptions {
  host: KubeClient;
  hostId: string;
  logger: Logger;
  metrics?: InformerMetrics | undefined;
}

/** The EndpointSlices of the host but those that the exchange of Services wrote there, read once for all members, and only while one of them has Services. */
export class HostSlices {
  readonly #o: HostSlicesOptions;
  readonly #listeners = new Set<(serviceKey: string) => void>();
  readonly #changed = new AutoResetEvent();
  #users = 0;
  #informer: Informer<EndpointSlice> | undefined;

  constructor(options: HostSlicesOptions) {
    this.#o = options;
  }

  /** Works until the signal aborts; never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      if (this.#users === 0) {
        await this.#changed.wait(signal);
        continue;
      }
      const child = childSignal(signal);
      const informer = this.#newInformer();
      this.#informer = informer;
      const off = informer.on({
        added: (slice) => this.#notify(slice),
        updated: (slice) => this.#notify(slice),
        deleted: (slice) => this.#notify(slice),
      });
      const running = informer.run(child.signal);
      while (this.#users > 0 && !signal.aborted) await this.#changed.wait(signal);
      child.abort();
      child.release();
      await running;
      off();
      this.#informer = undefined;
    }
  }

  /** They are followed from now on, until the returned function is called. */
  use(): () => void {
    this.#users += 1;
    this.#changed.set();
    let used = true;
    return () => {
      if (!used) return;
      used = false;
      this.#users -= 1;
      this.#changed.set();
    };
  }

  get synced(): boolean {
    return this.#informer?.hasSynced === true;
  }

  /** Why they cannot be read, in words; undefined while they are. */
  get problem(): string | undefined {
    return this.#informer?.unread;
  }

  /** Those of one Service, by name. */
  of(serviceKey: string): EndpointSlice[] {
    const found = this.#informer?.byIndex(SERVICE_INDEX, serviceKey) ?? [];
    return found.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  }

  /** Called with the key of the Service when one of its slices came, changed or went. Returns how to stop that. */
  on(listener: (serviceKey: string) => void): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  #newInformer(): Informer<EndpointSlice> {
    const { host, hostId, logger, metrics } = this.#o;
    return new Informer<EndpointSlice>({
      client: host,
      resource: ENDPOINT_SLICES,
      labelSelector: `${HOST_LABEL}!=${hostId}`,
      transform: (raw) => endpointSliceProjection(raw as EndpointSlice),
      indexes: { [SERVICE_INDEX]: serviceKeyOf },
      timings: { backoffMaxMs: RETRY_MS },
      logger,
      metrics,
    });
  }

  #notify(slice: EndpointSlice): void {
    const [key] = serviceKeyOf(slice);
    if (key !== undefined) for (const listener of this.#listeners) listener(key);
  }
}
