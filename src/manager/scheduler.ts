import type { Logger } from 'pino';
import { INCARNATION_ANNOTATION } from '../api/marks.ts';
import { GangKeeper } from '../gangs/gang-keeper.ts';
import { gangMetrics } from '../gangs/gang-metrics.ts';
import type { GangPlaces } from '../gangs/gang-places.ts';
import type { HostServices } from './host-services.ts';
import { steadyClock } from '../kube/clock.ts';
import { LeaseElection } from '../kube/lease-election.ts';
import type { ServingCertificates } from '../serving/certificates.ts';
import { FileCertificates } from '../serving/file-certificates.ts';
import { ClientCa } from '../serving/client-ca.ts';
import { SelfSignedCertificates } from '../serving/self-signed-certificates.ts';
import { processIdentity } from '../host/process-identity.ts';
import { Scheduler } from '../scheduler/scheduler.ts';
import { schedulerMetrics } from '../scheduler/scheduler-metrics.ts';

/** Name of the Service in front of the extender, in the namespace of the manager (manifests/scheduler). */
const SERVICE = 'spillway-scheduler';
/** Lease of the replica that opens the gates of gangs. */
const GANGS_LEASE = 'spillway-gangs';

/** The part of the manager that answers schedulers. */
export interface SchedulerComponent {
  /** Why it cannot answer yet; undefined when it can. */
  readonly problem: string | undefined;
  run(signal: AbortSignal): Promise<void>;
}

/** @throws when the certificate cannot be read. */
export async function schedulerComponent(services: HostServices): Promise<SchedulerComponent> {
  const { config, host, events, informerMetrics, queueMetrics } = services;
  const { scheduler } = config;
  const logger = services.logger.child({ part: 'scheduler' });
  const certificates = await servingCertificates(services, logger);
  const clientCa = scheduler.clientCaFile === undefined ? undefined : ClientCa.fromFile(scheduler.clientCaFile, logger);
  const room = new Scheduler({
    host,
    lease: new LeaseElection({
      client: host,
      namespace: config.namespace,
      name: SERVICE,
      identity: services.identity,
      logger,
    }),
    budgets: services.hostBudgets,
    scoring: scheduler.scoring,
    capacityOf: (node, member) => services.rooms.get(node, member),
    server: {
      address: scheduler.bindAddress,
      port: scheduler.port,
      certificate: () => certificates.current(),
      clientCa: () => (clientCa === undefined ? services.clientCa() : clientCa.current()),
      clientNames: scheduler.clientNames,
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
      await Promise.all([room.run(signal), gangs(signal), certificates.run(signal), clientCa?.run(signal)]);
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
        const clock = steadyClock();
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
