import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import type { Invariants } from '../api/invariants.ts';
import type { Service } from '../kube/service.ts';
import type { BudgetMetrics } from '../budgets/budget-metrics.ts';
import type { HostBudgets } from '../budgets/host-budgets.ts';
import type { VirtualNodeFits } from '../capacity/virtual-node-fits.ts';
import type { ManagerConfig } from '../config.ts';
import type { ClaimMetrics } from '../dependents/claim-metrics.ts';
import type { HostClaims } from '../dependents/host-claims.ts';
import type { HostObjects } from '../dependents/host-objects.ts';
import type { TokenMetrics } from '../dependents/token-metrics.ts';
import type { HostIdentity } from '../host/host-identity.ts';
import type { Access, Credentials } from '../kube/access.ts';
import type { ClientMetrics } from '../kube/client-metrics.ts';
import type { KubeClient } from '../kube/client.ts';
import type { EventRecorder } from '../kube/event-recorder.ts';
import type { InformerMetrics } from '../kube/informer-metrics.ts';
import type { Informer } from '../kube/informer.ts';
import type { WorkQueueMetrics } from '../kube/workqueue-metrics.ts';
import type { KubeletPorts } from '../kubelet/kubelet-ports.ts';
import type { MemberEventMetrics } from '../pods/events/metrics.ts';
import type { OwnerKinds } from '../host/owner-kinds.ts';
import type { NamespaceModes } from '../host/namespace-modes.ts';
import type { OverridePolicies } from '../host/override-policies.ts';
import type { CapacityMetrics } from '../members/capacity-metrics.ts';
import type { BoundPods } from './bound-pods.ts';
import type { NodeRemovals } from './node-removals.ts';
import type { NodeIdentityMetrics } from '../nodes/node-identity-metrics.ts';
import type { ReportPace } from '../nodes/report-pace.ts';
import type { OutageMetrics } from '../pods/outages/outage-metrics.ts';
import type { DeletionPermits } from '../pods/deletion-permits.ts';
import type { PodMetrics } from '../pods/pod-metrics.ts';
import type { PodOwners } from '../host/pod-owners.ts';
import type { HostSlices } from '../services/host-slices.ts';
import type { ExchangeMetrics } from '../multi-cluster/exchange-metrics.ts';
import type { Hub } from '../multi-cluster/hub.ts';
import type { ServiceMetrics } from '../services/service-metrics.ts';
import type { UsageMetrics } from '../kubelet/usage/metrics.ts';

/** What one process has once and every member and virtual node of it shares. Made by manager.ts. */
export interface HostServices {
  readonly config: ManagerConfig;
  /** With the manager's own identity, for what virtual nodes may not do themselves. */
  readonly host: KubeClient;
  readonly hostAccess: Access;
  /** A client of the host with another identity. */
  readonly connectHost: (credentials: Credentials, leaseHeld?: () => boolean) => KubeClient;
  /** Each virtual node's own, by its name. */
  readonly nodeClients: Map<string, KubeClient>;
  /** The host's pods on each virtual node that this process acts for, by its name. */
  readonly boundPods: Map<string, BoundPods>;
  readonly nodeRemovals: NodeRemovals;
  readonly nodeIdentityMetrics: NodeIdentityMetrics;
  /** Of the rooms behind virtual nodes, to the host. */
  readonly reportPace: ReportPace;
  /** Name of this replica in the Lease of those who write about scheduling. */
  readonly identity: string;
  /** The host's id in marks. */
  readonly hostId: string;
  /** Whether it is still that host. */
  readonly hostIdentity: HostIdentity;
  /** Address that virtual nodes announce. */
  readonly nodeAddress: string;
  readonly kubeletPorts: KubeletPorts;
  readonly events: EventRecorder;
  /** All Services of the host, for the environment variables of pods, and for those that stand in members; indexed by namespace. */
  readonly services: Informer<Service>;
  readonly hostSlices: HostSlices;
  /** What all clusters export. */
  readonly hub: Hub;
  /** ConfigMaps and Secrets of the host that pods on virtual nodes refer to. */
  readonly hostObjects: HostObjects;
  /** Claims, and volumes of members. */
  readonly hostClaims: HostClaims;
  readonly hostBudgets: HostBudgets;
  /** What changes objects on their way to members. */
  readonly overridePolicies: OverridePolicies;
  readonly ownerKinds: OwnerKinds;
  readonly podOwners: PodOwners;
  readonly deletionPermits: DeletionPermits;
  /** The rooms behind virtual nodes, of members that this process acts for and of those that it observes. */
  readonly rooms: VirtualNodeFits;
  /** Which service account modes namespaces of the host ask for. */
  readonly namespaceModes: NamespaceModes;
  /** PEM bundle for client certificates on kubelet ports. */
  readonly clientCa: () => string | undefined;
  readonly registry: Registry;
  readonly clientMetrics: ClientMetrics;
  readonly informerMetrics: InformerMetrics;
  readonly queueMetrics: WorkQueueMetrics;
  readonly podMetrics: PodMetrics;
  readonly invariants: Invariants;
  readonly tokenMetrics: TokenMetrics;
  readonly claimMetrics: ClaimMetrics;
  readonly capacityMetrics: CapacityMetrics;
  readonly memberEventMetrics: MemberEventMetrics;
  readonly usageMetrics: UsageMetrics;
  readonly outageMetrics: OutageMetrics;
  readonly budgetMetrics: BudgetMetrics;
  readonly serviceMetrics: ServiceMetrics;
  readonly exchangeMetrics: ExchangeMetrics;
  readonly logger: Logger;
}

/** Index of {@link HostServices.services}. */
export const NAMESPACE_INDEX = 'namespace';
