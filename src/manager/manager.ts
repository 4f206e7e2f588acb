import { hostname } from 'node:os';
import type { Logger } from 'pino';
import { hostIdOf, INCARNATION_ANNOTATION } from '../api/marks.ts';
import { isNodeNameOf, type MemberCluster } from '../api/member-cluster.ts';
import type { Namespace } from '../kube/core-v1.ts';
import type { Service } from '../kube/service.ts';
import { budgetMetrics } from '../budgets/budget-metrics.ts';
import { HostBudgets } from '../budgets/host-budgets.ts';
import { VirtualNodeFits } from '../capacity/virtual-node-fits.ts';
import { type ManagerConfig, nodeAddressOf } from '../config.ts';
import { claimMetrics } from '../dependents/claim-metrics.ts';
import { HostClaims } from '../dependents/host-claims.ts';
import { HostObjects } from '../dependents/host-objects.ts';
import { ClusterTaintController } from '../host/cluster-taint-controller.ts';
import { hostGuard } from '../host/host-guard.ts';
import { leaseGuard } from '../host/lease-guard.ts';
import { HostIdentity } from '../host/host-identity.ts';
import { tokenMetrics } from '../dependents/token-metrics.ts';
import { NAMESPACE_INDEX, type HostServices } from './host-services.ts';
import { askForCustomOwners } from '../overrides/owners.ts';
import { ClientMetrics } from '../kube/client-metrics.ts';
import { KubeClient, type KubeClientOptions } from '../kube/client.ts';
import { hostAccess, type Credentials } from '../kube/credentials.ts';
import { monotonic } from '../kube/clock.ts';
import { describeError } from '../kube/errors.ts';
import { EventRecorder } from '../kube/event-recorder.ts';
import { InformerMetrics } from '../kube/informer-metrics.ts';
import { Informer } from '../kube/informer.ts';
import { LeaseElection } from '../kube/lease-election.ts';
import { NAMESPACES, SERVICES } from '../kube/resource.ts';
import { pause } from '../kube/timers.ts';
import { get } from '../kube/verbs.ts';
import { createWorkQueueMetrics } from '../kube/workqueue-metrics.ts';
import { ClientCa } from '../serving/client-ca.ts';
import { KubeletPorts } from '../kubelet/kubelet-ports.ts';
import { startMemberScope } from './member.ts';
import { memberEventMetrics } from '../pods/events/metrics.ts';
import { MemberClusterController } from '../members/member-cluster-controller.ts';
import { CapacityMetrics } from '../members/capacity-metrics.ts';
import { MemberMetrics } from '../members/member-metrics.ts';
import { whyMovesPaused } from '../placement/lost-members.ts';
import { NamespaceModes } from '../host/namespace-modes.ts';
import { OverridePolicies } from '../host/override-policies.ts';
import { overridePolicyStatuses } from './override-statuses.ts';
import { NodeRemovals } from './node-removals.ts';
import { NodeIdentityMetrics } from '../nodes/node-identity-metrics.ts';
import { ReportPace } from '../nodes/report-pace.ts';
import { outageMetrics } from '../pods/outages/outage-metrics.ts';
import { DeletionPermits } from '../pods/deletion-permits.ts';
import { podMetrics } from '../pods/pod-metrics.ts';
import { OwnerKinds } from '../host/owner-kinds.ts';
import { PodOwners } from '../host/pod-owners.ts';
import { podIndexes } from '../pods/pod-indexes.ts';
import type { SchedulerComponent } from './scheduler.ts';
import { unheededPolicies } from './unheeded-policies.ts';
import { observeMember } from './observed-member.ts';
import { runPodWebhook } from './webhook.ts';
import { type ProcessIdentity, processIdentity } from '../host/process-identity.ts';
import { hostServiceProjection } from '../services/host-service.ts';
import { HostSlices } from '../services/host-slices.ts';
import { exchangeMetrics } from '../multi-cluster/exchange-metrics.ts';
import { Hub } from '../multi-cluster/hub.ts';
import { hostExchange } from './multi-cluster.ts';
import { serviceMetrics } from '../services/service-metrics.ts';
import { InvariantCounter } from '../telemetry/invariant-counter.ts';
import { TelemetryServer } from '../telemetry/http-server.ts';
import { createLogger } from '../telemetry/logger.ts';
import { forgetSeries } from '../telemetry/forget-series.ts';
import { createRegistry } from '../telemetry/metrics.ts';
import { usageMetrics } from '../kubelet/usage/metrics.ts';
import { programVersion } from '../version.ts';

const FIRST_CONTACT_RETRY_MS = 2000;
/** How long the host may take to say who it is, in ms. */
const IDENTITY_DEADLINE_MS = 10_000;

/**
 * Runs the whole program against the host cluster until the signal aborts: the one place where every room is wired to
 * the others. Ends within the configured grace: streams drain, leases are given back, Nodes and pods stay as they are.
 */
export async function runManager(config: ManagerConfig, signal: AbortSignal): Promise<void> {
  if (process.env['NODE_TLS_REJECT_UNAUTHORIZED'] === '0') {
    throw new Error('NODE_TLS_REJECT_UNAUTHORIZED=0 would switch off every check of certificates; unset it');
  }
  const version = programVersion();
  const logger = createLogger({ level: config.logLevel });
  const registry = createRegistry(version);
  const clientMetrics = new ClientMetrics(registry);
  const informerMetrics = new InformerMetrics(registry);
  const nodeAddress = nodeAddressOf(config);
  const access = await hostAccess({
    ...(config.kubeconfig === undefined ? {} : { kubeconfig: config.kubeconfig }),
    ...(config.context === undefined ? {} : { context: config.context }),
  });
  const userAgent = `spillway/${version}`;
  const { endpoint } = access;
  const invariants = new InvariantCounter(registry, logger);
  let hostIdentity: HostIdentity | undefined;
  const nodeRemovals = new NodeRemovals();
  const guard = hostGuard(
    invariants,
    () => hostIdentity?.problem,
    (name) => nodeRemovals.may(name),
  );
  const clientOptions = { cluster: 'host', endpoint, userAgent, logger, metrics: clientMetrics };
  const confirmCluster = async (): Promise<void> => await hostIdentity?.expect();
  const connectHost = (credentials: Credentials, leaseHeld: () => boolean = () => true): KubeClient =>
    new KubeClient({ ...clientOptions, credentials, confirmCluster, guard: leaseGuard(guard, leaseHeld) });
  const host = connectHost(access.credentials);
  logger.info({ version, server: host.server, nodeAddress }, 'starting');

  let controller: MemberClusterController | undefined;
  let scheduler: SchedulerComponent | undefined;
  const has = (component: (typeof config.components)[number]): boolean => config.components.includes(component);
  const http = new TelemetryServer({
    address: config.http.bindAddress,
    port: config.http.port,
    registry,
    readiness: [
      {
        name: 'host-identity',
        check: () => (hostIdentity === undefined ? 'not read yet' : (hostIdentity.problem ?? true)),
      },
      ...(has('members')
        ? [
            {
              name: 'member-clusters',
              check: () => controller?.synced === true || (controller?.problem ?? 'not read yet'),
            },
          ]
        : []),
      ...(has('scheduler')
        ? [
            {
              name: 'scheduler',
              check: () => (scheduler === undefined ? 'not started yet' : (scheduler.problem ?? true)),
            },
          ]
        : []),
    ],
    logger,
  });
  await http.listen();

  const hostUid = await readHostUid(host, logger, signal);
  if (hostUid !== undefined) {
    const hostId = hostIdOf(hostUid);
    const ownIdentity = new HostIdentity({
      pinned: hostUid,
      read: async () => await readUidAnew({ ...clientOptions, ...access }, signal),
      invariants,
      logger,
    });
    hostIdentity = ownIdentity;
    const caLogger = logger.child({ part: 'client-ca' });
    const { clientCaFile } = config.kubelet;
    const clientCa =
      clientCaFile === undefined ? ClientCa.fromHost(host, caLogger) : ClientCa.fromFile(clientCaFile, caLogger);
    const events = new EventRecorder({ client: host, component: 'spillway', logger });
    const nodeClients = new Map<string, KubeClient>();
    hostIdentity.on(() => {
      // Whatever is kept may lead to the other cluster.
      for (const client of [host, ...nodeClients.values()]) void client.reconnect();
    });
    const exchange = exchangeMetrics(registry);
    const overridePolicies = new OverridePolicies({ host, events, logger, metrics: informerMetrics });
    const ownerKinds = new OwnerKinds(host, monotonic);
    const wantsCustom = (namespace: string): boolean => askForCustomOwners(overridePolicies.in(namespace));
    const services: HostServices = {
      config,
      host,
      hostAccess: access,
      connectHost,
      nodeClients,
      boundPods: new Map(),
      nodeRemovals,
      nodeIdentityMetrics: new NodeIdentityMetrics(registry),
      reportPace: new ReportPace(),
      identity: config.identity ?? `${hostname()}_${process.pid}_${Math.random().toString(36).slice(2, 8)}`,
      hostId,
      hostIdentity: ownIdentity,
      nodeAddress,
      kubeletPorts: new KubeletPorts(config.kubelet.firstPort),
      events,
      services: new Informer<Service>({
        client: host,
        resource: SERVICES,
        transform: hostServiceProjection,
        indexes: { [NAMESPACE_INDEX]: (service) => [service.metadata.namespace ?? ''] },
        logger,
        metrics: informerMetrics,
      }),
      hostSlices: new HostSlices({ host, hostId, logger, metrics: informerMetrics }),
      hub: new Hub({ host, hostId, metrics: { exchange, informer: informerMetrics }, logger }),
      overridePolicies,
      ownerKinds,
      podOwners: new PodOwners({ host, kinds: ownerKinds, wantsCustom }),
      deletionPermits: new DeletionPermits(),
      rooms: new VirtualNodeFits(),
      namespaceModes: new NamespaceModes({ host, logger, metrics: informerMetrics }),
      hostClaims: new HostClaims({ host, logger, metrics: informerMetrics }),
      hostBudgets: new HostBudgets({ host, logger, metrics: informerMetrics }),
      hostObjects: new HostObjects({
        clientOf: (node) => nodeClients.get(node) ?? host,
        confirmHost: async () => await ownIdentity.confirm(),
        logger,
        metrics: informerMetrics,
      }),
      clientCa: () => clientCa.current(),
      registry,
      clientMetrics,
      informerMetrics,
      queueMetrics: createWorkQueueMetrics(registry),
      podMetrics: podMetrics(registry),
      invariants,
      tokenMetrics: tokenMetrics(registry),
      claimMetrics: claimMetrics(registry),
      capacityMetrics: new CapacityMetrics(registry),
      memberEventMetrics: memberEventMetrics(registry),
      usageMetrics: usageMetrics(registry),
      outageMetrics: outageMetrics(registry),
      budgetMetrics: budgetMetrics(registry),
      serviceMetrics: serviceMetrics(registry),
      exchangeMetrics: exchange,
      logger,
    };
    const self = has('members') ? await processIdentity(`${hostId}/${config.namespace}`) : undefined;
    controller = memberController(services, self);
    if (has('scheduler')) {
      // With the descheduler it is a third of all code: who only serves members need not hold that in memory.
      const { schedulerComponent } = await import('./scheduler.ts');
      scheduler = await schedulerComponent(services);
    }
    await Promise.all([
      ownIdentity.run(signal),
      services.events.run(signal),
      services.services.run(signal),
      services.hostSlices.run(signal),
      services.hub.run(signal),
      has('members') ? hostExchange(services, controller, signal) : undefined,
      services.hostObjects.run(signal),
      services.hostClaims.run(signal),
      services.hostBudgets.run(signal),
      services.overridePolicies.run(signal),
      has('members') ? overridePolicyStatuses(services, controller).run(signal) : undefined,
      has('members') ? clusterTaints(services, controller).run(signal) : undefined,
      services.namespaceModes.run(signal),
      services.podOwners.run(signal),
      clientCa.run(signal),
      controller?.run(signal),
      scheduler?.run(signal) ?? unheededPolicies(services).run(signal),
      runPodWebhook(services, signal),
    ]);
    self?.release();
  }
  await http.close(1000);
  await host.close();
  logger.info('stopped');
}

/**
 * Follows all members: acts for those whose lease it gets, if it is `self` that may; and if schedulers are answered here,
 * observes the others, so that every replica gives them the same answers.
 */
function memberController(services: HostServices, self: ProcessIdentity | undefined): MemberClusterController {
  const { config, host, hostId, logger } = services;
  const leases = new Map<string, LeaseElection>();
  const leaseFor = ({ identity, incarnation }: ProcessIdentity, member: string): LeaseElection => {
    const lease = new LeaseElection({
      client: host,
      namespace: config.namespace,
      name: `spillway-member-${member}`,
      identity: config.identity ?? identity,
      incarnation: { annotation: INCARNATION_ANNOTATION, value: incarnation },
      logger: logger.child({ member }),
    });
    leases.set(member, lease);
    return lease;
  };
  const controller = new MemberClusterController({
    host,
    hostId,
    podIndexes: podIndexes(hostId),
    clientMetrics: services.clientMetrics,
    informerMetrics: services.informerMetrics,
    metrics: new MemberMetrics(services.registry),
    invariants: services.invariants,
    events: services.events,
    whyMovesPaused,
    forgotten: async (member) =>
      await forgetSeries(
        services.registry,
        isOfMember(member, (name) => controller.knows(name)),
      ),
    hostProblem: () => services.hostIdentity.problem,
    ...(self === undefined ? {} : { leaseFor: (member: string) => leaseFor(self, member) }),
    startScope: (member, connection, signal) => {
      const leaseHeld = (): boolean => leases.get(member.metadata.name)?.held ?? false;
      const sharesCluster = (other: string): boolean => controller.mayStandFor(other, connection.identity());
      const othersWant = (nodeName: string): boolean => controller.wantsNode(nodeName, member.metadata.name);
      const knowsMember = (name: string): boolean => controller.knows(name);
      const memberNamed = (name: string): MemberCluster | undefined => controller.named(name);
      const isShared = (): boolean => controller.isShared(connection.identity(), member.metadata.name);
      const isKnownToBeShared = (): boolean =>
        controller.isKnownToBeShared(connection.identity(), member.metadata.name);
      const standing = { leaseHeld, sharesCluster, othersWant, knowsMember, memberNamed, isShared, isKnownToBeShared };
      return startMemberScope(services, member, connection, standing, signal);
    },
    ...(config.components.includes('scheduler')
      ? { startObserved: (member, connection, signal) => observeMember(services, member, connection, signal) }
      : {}),
    logger,
  });
  return controller;
}

function clusterTaints(
  { host, events, informerMetrics, logger }: HostServices,
  controller: MemberClusterController,
): ClusterTaintController {
  const members = (): MemberCluster[] | undefined => controller.members;
  return new ClusterTaintController({ host, members, events, metrics: informerMetrics, logger });
}

/** Whether a label of a metric speaks of a member that is gone, or of a virtual node of it that no other one can have. */
function isOfMember(member: string, knows: (name: string) => boolean): (label: string, value: string) => boolean {
  const isItsNode = (node: string): boolean => {
    if (!isNodeNameOf(member, node) || knows(node)) return false;
    const dashes = [...node.matchAll(/-/g)].map(({ index }) => node.slice(0, index));
    return !dashes.some((name) => name !== member && knows(name));
  };
  return (label, value) => {
    if (label === 'member' || label === 'cluster') return value === member;
    if (label === 'node') return isItsNode(value);
    return label === 'name' && isItsNode(value.slice(value.indexOf('-') + 1));
  };
}

/** The host's identity goes into every mark, so nothing starts before it is known. Undefined when stopped meanwhile. */
async function readHostUid(host: KubeClient, logger: Logger, signal: AbortSignal): Promise<string | undefined> {
  while (!signal.aborted) {
    try {
      const uid = await readUid(host, signal);
      if (uid !== '') return uid;
    } catch (error) {
      if (!signal.aborted) logger.warn(`the host cluster does not answer yet: ${describeError(error)}`);
    }
    await pause(FIRST_CONTACT_RETRY_MS, signal);
  }
  return undefined;
}

/** The same over a connection that nothing has used before. */
async function readUidAnew(options: KubeClientOptions, signal: AbortSignal): Promise<string> {
  const client = new KubeClient({ ...options, connections: 1 });
  try {
    return await readUid(client, signal);
  } finally {
    await client.close();
  }
}

async function readUid(client: KubeClient, signal: AbortSignal): Promise<string> {
  const reference = { name: 'kube-system' };
  const { metadata } = await get<Namespace>(client, NAMESPACES, reference, {
    signal,
    deadlineMs: IDENTITY_DEADLINE_MS,
  });
  return metadata.uid ?? '';
}
