import type { Logger } from 'pino';
import type { KubeClient } from '../kube/client.ts';
import type { EventRecorder } from '../kube/event-recorder.ts';
import type { InformerMetrics } from '../kube/informer-metrics.ts';
import type { KeyedCertificate } from '../kube/keyed-certificate.ts';
import type { OwnerChain } from '../placement/owner-chain.ts';
import { ExtenderServer } from './extender-server.ts';
import { Extender } from './extender.ts';
import { HostView } from './host-view.ts';
import type { CapacityOf } from './member-rooms.ts';
import type { SchedulerMetrics } from './scheduler-metrics.ts';
import { WorkloadBook } from './workload-book.ts';

export interface SchedulerOptions {
  host: KubeClient;
  /** What members can take, by virtual node. */
  capacityOf: CapacityOf;
  server: {
    address: string;
    /** 0: any free port. */
    port: number;
    certificate: () => KeyedCertificate;
    clientCa: () => string | undefined;
    clientNames: readonly string[];
    token: () => string | undefined;
  };
  /** How long answers may take at the end, in ms. */
  graceMs: number;
  events: Pick<EventRecorder, 'record'>;
  metrics: SchedulerMetrics;
  informerMetrics?: InformerMetrics | undefined;
  logger: Logger;
  clock?: () => number;
}

/** Answers schedulers where pods may go, by policies and by what members can really take. */
export class Scheduler {
  readonly #o: SchedulerOptions;
  readonly #view: HostView;
  readonly #extender: Extender;
  #port: number | undefined;

  constructor(options: SchedulerOptions) {
    this.#o = options;
    const { host, capacityOf, metrics, informerMetrics, clock = Date.now } = options;
    const logger = options.logger.child({ part: 'scheduler' });
    this.#view = new HostView({ host, logger, metrics: informerMetrics, clock });
    const workloads = new WorkloadBook({ clock, onAnnotationProblem: (chain, problem) => this.#tell(chain, problem) });
    this.#extender = new Extender({ view: this.#view, workloads, capacityOf, metrics, logger, clock });
  }

  /** Why questions cannot be answered yet, in words; undefined when they can. */
  get problem(): string | undefined {
    return this.#extender.notReady();
  }

  /** The port that is listened on. */
  get port(): number | undefined {
    return this.#port;
  }

  /** Answers until the signal aborts. Rejects when the port cannot be had. */
  async run(signal: AbortSignal): Promise<void> {
    const { server, graceMs, metrics, logger, clock = Date.now } = this.#o;
    const port = new ExtenderServer({ ...server, extender: this.#extender, metrics, logger, clock });
    ({ port: this.#port } = await port.listen());
    await this.#view.run(signal);
    await port.close(graceMs);
  }

  #tell([pod, ...owners]: OwnerChain, problem: string): void {
    const { apiVersion, kind, metadata } = owners.at(-1) ?? pod;
    const { namespace, name, uid } = metadata;
    const object = {
      apiVersion,
      kind,
      name,
      ...(namespace === undefined ? {} : { namespace }),
      ...(uid === undefined ? {} : { uid }),
    };
    this.#o.events.record(object, 'Warning', 'InvalidFederationPreferences', problem);
  }
}
