import { readFileSync } from 'node:fs';
import type { Logger } from 'pino';
import { INCARNATION_ANNOTATION } from './api/marks.ts';
import { GangKeeper } from './gangs/gang-keeper.ts';
import { gangMetrics } from './gangs/gang-metrics.ts';
import type { GangPlaces } from './gangs/gang-places.ts';
import type { HostServices } from './host-services.ts';
import { describeError } from './kube/errors.ts';
import { LeaseElection } from './kube/lease-election.ts';
import { pause } from './kube/timers.ts';
import type { ServingCertificates } from './kubelet/certificates.ts';
import { FileCertificates } from './kubelet/file-certificates.ts';
import { ClientCa } from './kubelet/client-ca.ts';
import { SelfSignedCertificates } from './kubelet/self-signed-certificates.ts';
import { processIdentity } from './process-identity.ts';
import { Scheduler } from './scheduler/scheduler.ts';
import { schedulerMetrics } from './scheduler/scheduler-metrics.ts';

/** Name of the Service in front of the extender, in the namespace of the manager (manifests/scheduler). */
const SERVICE = 'spillway-scheduler';
/** Lease of the replica that opens the gates of gangs. */
const GANGS_LEASE = 'spillway-gangs';
/** Between two looks at the token. */
const TOKEN_MS = 10_000;

/** The part of the manager that answers schedulers. */
export interface SchedulerComponent {
  /** Why it cannot answer yet; undefined when it can. */
  readonly problem: string | undefined;
  run(signal: AbortSignal): Promise<void>;
}

/** @throws when certificate or token cannot be read. */
export async function schedulerComponent(services: HostServices): Promise<SchedulerComponent> {
  const { config, host, events, informerMetrics, queueMetrics } = services;
  const { scheduler } = config;
  const logger = services.logger.child({ part: 'scheduler' });
  const certificates = await servingCertificates(services, logger);
  const clientCa = scheduler.clientCaFile === undefined ? undefined : ClientCa.fromFile(scheduler.clientCaFile, logger);
  const token = scheduler.tokenFile === undefined ? undefined : new TokenFile(scheduler.tokenFile, logger);
  const room = new Scheduler({
    host,
    lease: new LeaseElection({
      client: host,
      namespace: config.namespace,
      name: SERVICE,
      identity: services.identity,
      logger,
    }),
    scoring: scheduler.scoring,
    capacityOf: (node) => services.rooms.get(node),
    server: {
      address: scheduler.bindAddress,
      port: scheduler.port,
      certificate: () => certificates.current(),
      clientCa: () => (clientCa === undefined ? services.clientCa() : clientCa.current()),
      clientNames: scheduler.clientNames,
      token: () => token?.current,
    },
    graceMs: 1000,
    events,
    metrics: schedulerMetrics(services.registry),
    informerMetrics,
    queueMetrics,
    logger,
  });
  const gangs = gangKeeper(services, room.gangRooms, logger);
  return {
    get problem() {
      return room.problem;
    },
    run: async (signal) => {
      await Promise.all([
        room.run(signal),
        gangs(signal),
        certificates.run(signal),
        clientCa?.run(signal),
        token?.run(signal),
      ]);
    },
  };
}

/** One replica at a time opens the gates of gangs, with what it knows of the room of all members. */
function gangKeeper(
  services: HostServices,
  places: GangPlaces,
  logger: Logger,
): (signal: AbortSignal) => Promise<void> {
  const { host, config, events, informerMetrics, queueMetrics, registry } = services;
  const metrics = gangMetrics(registry);
  return async (signal) => {
    const self = await processIdentity(`${services.hostId}/${config.namespace}/${GANGS_LEASE}`);
    const lease = new LeaseElection({
      client: host,
      namespace: config.namespace,
      name: GANGS_LEASE,
      identity: config.identity ?? self.identity,
      incarnation: { annotation: INCARNATION_ANNOTATION, value: self.incarnation },
      logger,
    });
    await lease.run({
      signal,
      onAcquired: async (held) => {
        const clock = Date.now;
        await new GangKeeper({ host, places, events, metrics, informerMetrics, queueMetrics, logger, clock }).run(held);
      },
    });
    self.release();
  };
}

async function servingCertificates(services: HostServices, logger: Logger): Promise<ServingCertificates> {
  const { scheduler, namespace } = services.config;
  const { servingCertificate } = scheduler;
  if (servingCertificate.mode === 'Files') return await FileCertificates.open({ ...servingCertificate, logger });
  const addresses = scheduler.names ?? [`${SERVICE}.${namespace}.svc`, `${SERVICE}.${namespace}`, services.nodeAddress];
  return await SelfSignedCertificates.create({ node: { nodeName: SERVICE, addresses }, logger, clock: Date.now });
}

/** A secret in a file that may change meanwhile; what was read last stays in force while it cannot be read. */
class TokenFile {
  readonly #file: string;
  readonly #logger: Logger;
  #token: string;

  constructor(file: string, logger: Logger) {
    this.#file = file;
    this.#logger = logger;
    this.#token = readFileSync(file, 'utf8').trim();
  }

  get current(): string {
    return this.#token;
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await pause(TOKEN_MS, signal);
      try {
        this.#token = readFileSync(this.#file, 'utf8').trim();
      } catch (error) {
        this.#logger.warn(`the token of schedulers cannot be read: ${describeError(error)}`);
      }
    }
  }
}
