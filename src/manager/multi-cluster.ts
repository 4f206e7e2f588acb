import { exchangesServices } from '../api/member-cluster.ts';
import { monotonic } from '../kube/clock.ts';
import { pause } from '../kube/timers.ts';
import { isAnotherCluster } from '../members/cluster-identity.ts';
import type { MemberClusterController } from '../members/member-cluster-controller.ts';
import { servicesWereExchanged } from '../members/written-status.ts';
import type { MemberNamespaces } from '../members/namespaces.ts';
import { HostExchange } from '../multi-cluster/host-exchange.ts';
import { MemberExchange } from '../multi-cluster/member-exchange.ts';
import { keyOf } from '../kube/object.ts';
import type { Service } from '../kube/service.ts';
import type { ActingMember } from './acting-member.ts';
import type { HostServices } from './host-services.ts';
import { whileHeld } from './while-held.ts';

/** Lease of the replica that brings together what clusters export. */
const LEASE = 'spillway-exchange';
const POLL_MS = 1_000;

/** One member as one of the clusters that exchange Services. */
export function memberExchange(acting: ActingMember, namespaces: MemberNamespaces): MemberExchange {
  const { services, connection, standing, member, mayWrite, logger } = acting;
  const { hub, exchangeMetrics, informerMetrics, queueMetrics } = services;
  return new MemberExchange({
    hub,
    member: {
      name: connection.name,
      client: connection.client,
      namespaces: connection.namespaces,
      isUsable: (namespace) => namespaces.isUsable(namespace),
      memberNamespaceOf: (namespace) => namespaces.memberNamespaceOf(namespace),
      reachable: () => connection.reachable(),
      isLost: () => {
        if (isAnotherCluster(connection)) return true;
        const since = connection.unreachableSince();
        const { podsUnreadyAfterSeconds } = member().spec.probe;
        return since !== undefined && monotonic() - since.monotonic >= podsUnreadyAfterSeconds * 1000;
      },
      isShared: standing.isKnownToBeShared,
      sharesCluster: standing.sharesCluster,
    },
    spec: () => ({
      wanted: exchangesServices(member()),
      isIsolated: member().spec.network === 'Isolated',
      mapping: member().spec.namespaces,
    }),
    mayWrite,
    mayWriteHost: () => services.hostIdentity.problem === undefined && standing.leaseHeld(),
    wereExchanged: servicesWereExchanged(member().status),
    metrics: { exchange: exchangeMetrics, informer: informerMetrics, queue: queueMetrics },
    logger,
  });
}

/** The host as one of them, by one replica, from when the first member takes part. */
export async function hostExchange(
  services: HostServices,
  controller: MemberClusterController,
  signal: AbortSignal,
): Promise<void> {
  const { host, hub, hostSlices, hostIdentity, informerMetrics, queueMetrics, logger } = services;
  while (!hub.isUsed && !signal.aborted) await pause(POLL_MS, signal);
  if (signal.aborted) return;
  const release = hostSlices.use();
  await whileHeld(services, LEASE, logger, signal, async (held) => {
    await new HostExchange({
      host,
      hub,
      local: {
        get synced() {
          return services.services.hasSynced && hostSlices.synced;
        },
        get problem() {
          return services.services.unread ?? hostSlices.problem;
        },
        serviceOf: (key) => services.services.get(key),
        slicesOf: (key) => hostSlices.of(key),
        on: (listener) => {
          const seen = (service: Service): void => listener(keyOf(service));
          const off = [services.services.on({ added: seen, updated: seen, deleted: seen }), hostSlices.on(listener)];
          return () => {
            for (const end of off) end();
          };
        },
      },
      members: () => controller.members?.flatMap((one) => (exchangesServices(one) ? one.metadata.name : [])),
      mayStay: (cluster) => {
        const found = controller.members?.find(({ metadata }) => metadata.name === cluster);
        return found === undefined ? controller.knows(cluster) : exchangesServices(found);
      },
      mayWrite: () => hostIdentity.problem === undefined,
      metrics: { informer: informerMetrics, queue: queueMetrics },
      logger: logger.child({ part: 'exchange' }),
    }).run(held);
  });
  release();
}
