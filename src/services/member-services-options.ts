import type { Logger } from 'pino';
import type { MemberClusterSpec } from '../api/member-cluster.ts';
import type { Node, Pod, Service } from '../kube/core-v1.ts';
import type { KubeClient } from '../kube/client.ts';
import type { EventRecorder } from '../kube/event-recorder.ts';
import type { InformerMetrics } from '../kube/informer-metrics.ts';
import type { Informer } from '../kube/informer.ts';
import type { WorkQueueMetrics } from '../kube/workqueue-metrics.ts';
import type { HostSlices } from './host-slices.ts';
import type { ServiceMetrics } from './service-metrics.ts';

/** In ms. */
export const SERVICE_WAITS = {
  /** What several changes of one Service bring is looked at together. */
  gather: 300,
  /** After a round with n writes of slices a Service rests n times as long, at most `longestRest`: large ones change all the time. */
  rest: 200,
  longestRest: 2_000,
  /** Where the last pod of a namespace is gone its Services stay for so long: others often follow. */
  empty: 30_000,
};
export type ServiceWaits = typeof SERVICE_WAITS;

export interface MemberServicesOptions {
  hostId: string;
  host: KubeClient;
  /** Services of the host, by namespace. */
  hostServices: Pick<Informer<Service>, 'get' | 'on' | 'hasSynced' | 'problem' | 'values'>;
  /** Those of one namespace. */
  servicesIn: (hostNamespace: string) => readonly Service[];
  hostSlices: HostSlices;
  member: {
    readonly name: string;
    readonly client: KubeClient;
    readonly nodes: { get(name: string): Node | undefined };
  };
  spec: () => Pick<MemberClusterSpec, 'services' | 'network'>;
  /** Pods of a namespace of the host that are on virtual nodes of the member and run there, or are to. */
  hostPods: (namespace: string) => Iterable<Pod>;
  /** Pods of the host in the member, by the namespace of their host pods. */
  copiesOf: (hostNamespace: string) => readonly Pod[];
  /** The copy for a host pod, by that pod's UID. */
  copyOf: (uid: string) => Pod | undefined;
  namespaces: {
    memberNamespaceOf(hostNamespace: string): string | undefined;
    ensure(
      hostNamespace: string,
      signal: AbortSignal,
      former?: string,
    ): Promise<{ namespace: string } | { hold: { message: string } }>;
  };
  sharesCluster: (member: string) => boolean;
  mayWrite: () => boolean;
  reachable: () => boolean;
  /** Services stood there before this process began, or may. */
  wereMirrored: boolean;
  /** Looks at a pod of the host again. */
  requeue: (podKey: string) => void;
  events: Pick<EventRecorder, 'record'>;
  metrics: ServiceMetrics;
  informerMetrics?: InformerMetrics | undefined;
  queueMetrics?: WorkQueueMetrics | undefined;
  logger: Logger;
  waits?: ServiceWaits;
}
