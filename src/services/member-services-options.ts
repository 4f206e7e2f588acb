import type { Logger } from 'pino';
import type { MemberClusterSpec } from '../api/member-cluster.ts';
import type { Node, Pod } from '../kube/core-v1.ts';
import type { Service } from '../kube/service.ts';
import type { KubeClient } from '../kube/client.ts';
import type { EventRecorder } from '../kube/event-recorder.ts';
import type { InformerMetrics } from '../kube/informer-metrics.ts';
import type { Informer } from '../kube/informer.ts';
import type { WorkQueueMetrics } from '../kube/workqueue-metrics.ts';
import type { HostSlices } from './host-slices.ts';
import type { ServiceMetrics } from './service-metrics.ts';

/** In ms. */
export const SERVICE_WAITS = {
  /** Delay that batches changes of one Service into one sync. */
  gather: 300,
  /** Delay per slice written before the same Service is synced again, at most `longestRest`: large Services change all the time. */
  rest: 200,
  longestRest: 2_000,
  /** How long Services stay after the last pod of their namespace is gone, as others often follow. */
  empty: 30_000,
  /** For how long another MemberCluster of the same cluster is seen unable to write before this one takes over. */
  stalled: 60_000,
  /** How long Services stay with mode None where another MemberCluster has pods: that one is to have taken over by then. */
  handOver: 120_000,
  /** How long all tries for a Service may fail, by errors that may pass, before that is told and holds up no pods any more. */
  failing: 30_000,
  /** How long Services of a namespace rest after a 403: the right is missing. */
  refused: { rest: 60_000, late: 5_000 },
};
export type ServiceWaits = typeof SERVICE_WAITS;

/** The host, as far as its Services go. */
export interface ServicesHost {
  readonly id: string;
  readonly client: KubeClient;
  /** All Services, by `namespace/name`. */
  readonly services: Pick<Informer<Service>, 'get' | 'on' | 'hasSynced' | 'unread' | 'values'>;
  /** Those of one namespace. */
  readonly servicesIn: (namespace: string) => readonly Service[];
  readonly slices: HostSlices;
  /** Pods of a namespace that are on virtual nodes of the member and run there, or are to. */
  readonly podsIn: (namespace: string) => Iterable<Pod>;
}

/** The member that Services are mirrored to. */
export interface ServicesMember {
  /** Name of the MemberCluster. */
  readonly name: string;
  readonly client: KubeClient;
  readonly nodes: Pick<Informer<Node>, 'get' | 'on'>;
  readonly namespaces: {
    memberNamespaceOf(hostNamespace: string): string | undefined;
    ensure(
      hostNamespace: string,
      signal: AbortSignal,
      former?: string,
    ): Promise<{ namespace: string } | { hold: { message: string } }>;
  };
  /** Pods of the host in the member, by the namespace of their host pods. */
  readonly copiesOf: (hostNamespace: string) => readonly Pod[];
  /** The copy for a host pod, by that pod's UID. */
  readonly copyOf: (uid: string) => Pod | undefined;
  /** Whether another MemberCluster of that name stands for the same cluster, or may. */
  readonly sharesCluster: (member: string) => boolean;
  /** What the host is told of the MemberCluster of that name, be it this one; undefined while it is not known. */
  readonly toldOf: (member: string) => ToldOfMember | undefined;
  readonly reachable: () => boolean;
  /** Its pods, nodes and namespaces are known completely. */
  readonly synced: () => boolean;
  /** Why they are not, in words, where it has refused to show them for two minutes. */
  readonly unread: () => string | undefined;
}

export interface ToldOfMember {
  readonly network: MemberClusterSpec['network'];
  /** Services can be written for it. */
  readonly writes: boolean;
}

export type ServicesSpec = () => Pick<MemberClusterSpec, 'services' | 'network'>;

export interface MemberServicesOptions {
  host: ServicesHost;
  member: ServicesMember;
  spec: ServicesSpec;
  mayWrite: () => boolean;
  /** Services stood there before this process began, or may. */
  wereMirrored: boolean;
  /** Requeues a pod of the host. */
  requeue: (podKey: string) => void;
  events: Pick<EventRecorder, 'record'>;
  metrics: { services: ServiceMetrics; informer?: InformerMetrics | undefined; queue?: WorkQueueMetrics | undefined };
  logger: Logger;
  waits?: ServiceWaits;
}
