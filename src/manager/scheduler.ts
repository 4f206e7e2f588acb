import type { Logger } from 'pino';
import { GangKeeper } from '../scheduler/gangs/gang-keeper.ts';
import { gangEvictions } from './gang-evictions.ts';
import type { GangEvictions } from '../scheduler/gangs/gang-evictions.ts';
import { gangMetrics } from '../scheduler/gangs/gang-metrics.ts';
import type { GangPlaces } from '../scheduler/gangs/gang-places.ts';
import { EXTENDER_SERVICE, extenderCertificates } from './extender-certificates.ts';
import type { HostServices } from './host-services.ts';
import { monotonic, steadyClock } from '../kube/clock.ts';
import type { KubeClient } from '../kube/client.ts';
import { LeaseElection } from '../kube/lease-election.ts';
import { ClientCa } from '../serving/client-ca.ts';
import { DESCHEDULER_LEASE } from '../api/moves-stopped.ts';
import { Descheduler } from '../descheduler/descheduler.ts';
import { MovesStop } from '../descheduler/moves-stop.ts';
import { movesMetrics } from '../descheduler/moves-metrics.ts';
import type { PlacedPods } from '../placement/placed-pods.ts';
import { Scheduler } from '../scheduler/scheduler.ts';
import { schedulerMetrics } from '../scheduler/scheduler-metrics.ts';
import { whileHeld } from './while-held.ts';

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
  const certificates = await extenderCertificates(services, logger);
  const clientCa = scheduler.clientCaFile === undefined ? undefined : ClientCa.fromFile(scheduler.clientCaFile, logger);
  const schedulersCa = (): string | undefined => (clientCa === undefined ? services.clientCa() : clientCa.current());
  const room = new Scheduler({
    host,
    namespace: config.namespace,
    lease: new LeaseElection({
      client: host,
      namespace: config.namespace,
      name: EXTENDER_SERVICE,
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
      clientCa: () => joined(schedulersCa(), certificates.clientCa()),
      clientNames: scheduler.clientNames,
    },
    graceMs: 1000,
    events,
    metrics: schedulerMetrics(services.registry),
    informerMetrics,
    queueMetrics,
    logger,
  });
  const stop = new MovesStop(monotonic);
  let isHeld = (): boolean => false;
  // Handlers go on for a while when the Lease is lost, and after a sleep of the machine nobody has noticed yet that it is.
  const underLease = services.connectHost(services.hostAccess.credentials, () => isHeld());
  services.hostIdentity.on(() => void underLease.reconnect());
  const descheduler = deschedulerOf(services, underLease, room.placedPods, stop);
  const gangs = gangKeeper(services, underLease, room.gangRooms, gangEvictions(descheduler.mover, stop), logger);
  // Gangs that give up evict, too: under a Lease of their own they might do so in another replica, beside the pace of this one.
  const move = async (held: AbortSignal, isStillHeld: () => boolean): Promise<void> => {
    isHeld = isStillHeld;
    await Promise.all([descheduler.run(held), gangs(held)]);
  };
  return {
    get problem() {
      return room.problem ?? certificates.problem();
    },
    run: async (signal) => {
      await Promise.all([
        room.run(signal),
        descheduler.watch(signal),
        whileHeld(services, DESCHEDULER_LEASE, logger, signal, move, stop.seen.bind(stop)),
        certificates.run(signal),
        clientCa?.run(signal),
      ]);
      await underLease.close();
    },
  };
}

/** Opens the gates of gangs, in one replica at a time, with what it knows of the room of all members. */
function gangKeeper(
  services: HostServices,
  underLease: KubeClient,
  places: GangPlaces,
  evictions: GangEvictions,
  logger: Logger,
): (held: AbortSignal) => Promise<void> {
  const { events, informerMetrics, queueMetrics, registry } = services;
  const metrics = gangMetrics(registry);
  return async (held) => {
    const clock = steadyClock();
    await new GangKeeper({
      host: underLease,
      places,
      evictions,
      events,
      metrics,
      informerMetrics,
      queueMetrics,
      logger,
      clock,
    }).run(held);
  };
}

/** All replicas know how long members have been lost; one at a time moves pods, and no other one does. */
function deschedulerOf(
  services: HostServices,
  underLease: KubeClient,
  placed: PlacedPods,
  stop: MovesStop,
): Descheduler {
  const { host, events, informerMetrics, queueMetrics, registry, config } = services;
  const { movesPerSecond, movesPerSecondPerMember, movesPerPodPerHour, dryRun } = config.descheduler;
  return new Descheduler({
    host,
    underLease,
    placed,
    stop,
    namespace: config.namespace,
    rates: { total: movesPerSecond, perMember: movesPerSecondPerMember },
    perPodPerHour: movesPerPodPerHour,
    dryRun,
    events,
    metrics: movesMetrics(registry),
    informerMetrics,
    queueMetrics,
    logger: services.logger.child({ part: 'descheduler' }),
    clock: Date.now,
    monotonic,
  });
}

/** One bundle of two, either of which may be missing. */
function joined(...bundles: (string | undefined)[]): string | undefined {
  const there = bundles.filter((bundle) => bundle !== undefined);
  return there.length === 0 ? undefined : there.join('\n');
}
