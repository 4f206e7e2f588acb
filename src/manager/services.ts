import { wantedServicesOf } from '../api/member-cluster.ts';
import type { Pod } from '../kube/core-v1.ts';
import { servicesCanBeWritten, servicesWereMirrored } from '../members/written-status.ts';
import type { MemberNamespaces } from '../members/namespaces.ts';
import { isShownIgnored } from '../pods/daemon-pod.ts';
import { HOST_NAMESPACE_INDEX, HOST_UID_INDEX } from '../pods/pod-indexes.ts';
import { MemberServices } from '../services/member-services.ts';
import type { ActingMember } from './acting-member.ts';
import { NAMESPACE_INDEX } from './host-services.ts';
import type { VirtualNodes } from './virtual-nodes.ts';

/** Services of the host in one member. */
export function memberServices(
  acting: ActingMember,
  nodes: VirtualNodes,
  namespaces: MemberNamespaces,
): MemberServices {
  const { services, connection, standing, member, mayWrite, logger } = acting;
  const { host, hostId, hostSlices, events, serviceMetrics, informerMetrics, queueMetrics } = services;
  return new MemberServices({
    host: {
      id: hostId,
      client: host,
      services: services.services,
      servicesIn: (namespace) => services.services.byIndex(NAMESPACE_INDEX, namespace),
      slices: hostSlices,
      podsIn: (namespace) => running(nodes.hostPodsIn(namespace)),
    },
    member: {
      name: connection.name,
      client: connection.client,
      nodes: connection.nodes,
      namespaces,
      copiesOf: (namespace) => connection.pods.byIndex(HOST_NAMESPACE_INDEX, namespace),
      copyOf: (uid) => connection.pods.byIndex(HOST_UID_INDEX, uid)[0],
      sharesCluster: standing.sharesCluster,
      toldOf: (name) => {
        const told = standing.memberNamed(name);
        if (told === undefined) return undefined;
        const { mode } = wantedServicesOf(told);
        return { network: told.spec.network, writes: mode === 'Mirror' && servicesCanBeWritten(told.status) };
      },
      reachable: () => connection.reachable(),
      synced: () => connection.synced(),
      unread: () => connection.caches.lastingRefusal,
    },
    spec: () => ({ ...member().spec, services: wantedServicesOf(member()) }),
    mayWrite,
    wereMirrored: servicesWereMirrored(member().status),
    requeue: (podKey) => nodes.requeue(podKey),
    events,
    metrics: { services: serviceMetrics, informer: informerMetrics, queue: queueMetrics },
    logger,
  });
}

/** Those that run in the member, or are to. */
function* running(pods: Iterable<Pod>): Generator<Pod> {
  for (const pod of pods) if (!isShownIgnored(pod)) yield pod;
}
