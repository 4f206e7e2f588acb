import { wantedServicesOf } from '../api/member-cluster.ts';
import { servicesWereMirrored } from '../members/member-status.ts';
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
  const { connection, standing, member, mayWrite, logger } = acting;
  const { services: hostServices, host, hostId, hostSlices, events } = acting.services;
  const { serviceMetrics, informerMetrics, queueMetrics } = acting.services;
  return new MemberServices({
    hostId,
    host,
    hostServices,
    servicesIn: (namespace) => hostServices.byIndex(NAMESPACE_INDEX, namespace),
    hostSlices,
    member: connection,
    spec: () => ({ ...member().spec, services: wantedServicesOf(member()) }),
    hostPods: (namespace) => nodes.hostPodsIn(namespace).filter((pod) => !isShownIgnored(pod)),
    copiesOf: (namespace) => connection.pods.byIndex(HOST_NAMESPACE_INDEX, namespace),
    copyOf: (uid) => connection.pods.byIndex(HOST_UID_INDEX, uid)[0],
    namespaces,
    sharesCluster: standing.sharesCluster,
    mayWrite,
    reachable: () => connection.reachable(),
    wereMirrored: servicesWereMirrored(member().status),
    requeue: (podKey) => nodes.requeue(podKey),
    events,
    metrics: serviceMetrics,
    informerMetrics,
    queueMetrics,
    logger,
  });
}
