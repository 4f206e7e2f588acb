import type { Logger } from 'pino';
import { HOST_LABEL, NODE_LABEL, UID_LABEL } from './api/marks.ts';
import { daemonSetsOn } from './api/member-cluster.ts';
import type { Pod } from './api/wire.ts';
import { HostOnlyRequests } from './capacity/host-only-requests.ts';
import type { HostServices } from './host-services.ts';
import type { KubeClient } from './kube/client.ts';
import { Informer } from './kube/informer.ts';
import { keyFor, keyOf, withoutManagedFields } from './kube/object.ts';
import { PODS } from './kube/resource.ts';
import type { PodDirectory } from './kubelet/pod-directory.ts';
import { KubeletServer } from './kubelet/server.ts';
import type { MemberDependents } from './member-dependents.ts';
import type { MemberConnection } from './members/connection.ts';
import type { MemberNamespaces } from './members/namespaces.ts';
import { formerKubeletPort } from './nodes/former-port.ts';
import { NodeKeeper } from './nodes/node-keeper.ts';
import { type NodeFacts, renderNode } from './nodes/render-node.ts';
import { isShownIgnored } from './pods/daemon-pod.ts';
import { isFinished } from './api/pod-phase.ts';
import { podTarget } from './pod-target.ts';
import { podServiceAccounts } from './pod-service-accounts.ts';
import { PodController } from './pods/pod-controller.ts';
import { HOST_POD_INDEX } from './pods/pod-ports.ts';
import { servingCertificates } from './serving-certificates.ts';
import { PodUsage } from './usage/pod-usage.ts';
import type { UsageTarget } from './usage/usage-target.ts';
import { VirtualNodeView, type VirtualNodeViewOptions } from './virtual-node-view.ts';

export interface VirtualNodeOptions extends Pick<
  VirtualNodeViewOptions,
  'capacity' | 'images' | 'member' | 'nodeName' | 'pool' | 'cluster'
> {
  services: HostServices;
  /** With the identity of the node. */
  host: KubeClient;
  connection: MemberConnection;
  namespaces: MemberNamespaces;
  dependents: MemberDependents;
  /** Why nothing may be written, or undefined. */
  frozen: () => string | undefined;
  /** The deletion breaker was open when a former process ended. */
  breakerOpen: boolean;
  /** Told when pods begin or cease to be kept although their host pods are gone. */
  keptChanged: () => void;
  logger: Logger;
}

/**
 * One virtual node at work: its Node object, its kubelet port, its pods. Starts, ends and fails alone; ending leaves
 * Node and pods as they are.
 */
export class VirtualNodeScope {
  readonly nodeName: string;
  readonly pods: PodController;
  readonly #o: VirtualNodeOptions;
  readonly #hostPods: Informer<Pod>;
  readonly #ignored = new HostOnlyRequests();
  readonly #view: VirtualNodeView;
  #node: NodeKeeper | undefined;

  constructor(options: VirtualNodeOptions) {
    const { services, connection, nodeName, member, logger } = options;
    this.#o = options;
    this.nodeName = nodeName;
    this.#hostPods = new Informer<Pod>({
      client: options.host,
      resource: PODS,
      fieldSelector: `spec.nodeName=${nodeName}`,
      transform: (raw) => withoutManagedFields(raw as Pod),
      logger,
      metrics: services.informerMetrics,
    });
    const { dependents } = options;
    const serviceAccounts = podServiceAccounts({ modes: services.namespaceModes, tokens: dependents.tokens, member });
    this.#view = new VirtualNodeView({
      ...options,
      ready: () => connection.synced() && this.#hostPods.hasSynced,
      modeOf: (hostPod) => serviceAccounts.modeOf(hostPod),
      claims: dependents.claims.places,
      environmentKeys: (kind, namespace, name) => dependents.mirror.environmentKeys(kind, namespace, name),
    });
    this.pods = new PodController({
      host: options.host,
      hostPods: this.#hostPods,
      member: connection,
      hostId: services.hostId,
      nodeName,
      network: () => member().spec.network,
      daemonSets: () => daemonSetsOn(member(), nodeName),
      podsUnreadyAfterMs: () => member().spec.probe.podsUnreadyAfterSeconds * 1000,
      frozen: options.frozen,
      confirmHost: async () => await services.hostIdentity.confirm(),
      namespaces: options.namespaces,
      dependents,
      serviceAccounts,
      overrides: {
        unknown: () => services.overridePolicies.unknown(),
        policies: (namespace) => services.overridePolicies.in(namespace),
        owners: (hostPod) => services.podOwners.known(hostPod),
        readOwners: async (hostPod, signal) => await services.podOwners.read(hostPod, signal),
        member: options.cluster,
        pool: () => options.pool() ?? {},
      },
      translateContext: (hostPod, memberNamespace, mode) => this.#view.translateContext(hostPod, memberNamespace, mode),
      events: services.events,
      metrics: services.podMetrics,
      invariants: services.invariants,
      breakerOpen: options.breakerOpen,
      keptChanged: options.keptChanged,
      queueMetrics: services.queueMetrics,
      logger,
    });
  }

  /** How many of them there are in the member, or are to be. */
  podCounts(): { running: number; pending: number; total: number } {
    const counts = { running: 0, pending: 0, total: 0 };
    for (const pod of this.#takingPods()) {
      counts.total += 1;
      if (pod.status?.phase === 'Running') counts.running += 1;
      else if (pod.status?.phase === 'Pending') counts.pending += 1;
    }
    return counts;
  }

  hostPod(key: string): Pod | undefined {
    return this.#hostPods.get(key);
  }

  get synced(): boolean {
    return this.#hostPods.hasSynced;
  }

  /** The room behind it can be asked about. */
  get roomKnown(): boolean {
    const { services, nodeName } = this.#o;
    const { room } = this.#view;
    return room.ready && services.rooms.get(nodeName) === room;
  }

  /** The member's state or spec changed in a way that may concern every pod and the Node. */
  changed(): void {
    this.#node?.trigger();
    this.pods.requeueAll();
  }

  /** Why the Node is not kept, in words for people; undefined while it is. */
  get problem(): string | undefined {
    return this.#node?.problem;
  }

  /** Capacity changed. */
  capacityChanged(): void {
    this.#node?.trigger();
  }

  async run(signal: AbortSignal): Promise<void> {
    const { services, logger, nodeName } = this.#o;
    const certificates = await servingCertificates(services, this.#o);
    const usage = this.#usage();
    const server = new KubeletServer({
      nodeName,
      address: services.config.kubelet.bindAddress,
      certificates,
      clientCa: services.clientCa,
      host: this.#o.host,
      pods: this.#directory(),
      usage,
      registry: services.registry,
      logger,
      clock: Date.now,
    });
    const port = await this.#openPort(server, signal);
    logger.info({ node: nodeName, port }, 'kubelet port is open');
    this.#node = new NodeKeeper({
      host: this.#o.host,
      manager: services.host,
      name: nodeName,
      desired: () => renderNode(this.#nodeFacts(port)),
      events: services.events,
      informerMetrics: services.informerMetrics,
      invariants: services.invariants,
      logger,
    });
    const counted = (pod: Pod, takesNothing: boolean): void => {
      if (this.#ignored.set(keyOf(pod), pod, takesNothing)) this.#node?.trigger();
    };
    this.#hostPods.on({
      added: (pod) => counted(pod, isShownIgnored(pod)),
      updated: (pod) => counted(pod, isShownIgnored(pod)),
      deleted: (pod) => counted(pod, false),
    });
    const { room } = this.#view;
    const off = [services.rooms.add(room), this.#hostPods.on(room.hostPodHandler)];
    const ended = Promise.all([
      this.#hostPods.run(signal),
      this.pods.run(signal),
      this.#node.run(signal),
      certificates.run(signal),
      usage.run(signal),
    ]);
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    await Promise.all([ended, server.close(services.config.shutdownGraceSeconds * 1000)]);
    for (const end of off) end();
  }

  async #openPort(server: KubeletServer, signal: AbortSignal): Promise<number> {
    const { services, host, nodeName, logger } = this.#o;
    const { kubeletPorts } = services;
    const before = kubeletPorts.fixed ? await formerKubeletPort(host, nodeName, logger, signal) : undefined;
    return await kubeletPorts.open(nodeName, before, async (port) => await server.listen(port));
  }

  /** Host pods that take room of the member, or are going to. */
  *#takingPods(): Generator<Pod> {
    for (const pod of this.#hostPods.values()) if (!isShownIgnored(pod)) yield pod;
  }

  #nodeFacts(kubeletPort: number): NodeFacts {
    const { services, connection, capacity, member, nodeName } = this.#o;
    const synced = connection.synced();
    const { reachable, failure } = connection.reachability;
    const offer = synced ? capacity.tracker.offer(nodeName) : undefined;
    return {
      name: nodeName,
      member: connection.name,
      spec: member().spec,
      pool: synced ? capacity.tracker.facts(nodeName) : undefined,
      offer: offer === undefined ? undefined : this.#ignored.onTopOf(offer),
      memberVersion: connection.version,
      address: services.nodeAddress,
      kubeletPort,
      reachable,
      unreachableMessage: failure?.message,
    };
  }

  #directory(): PodDirectory {
    const { connection, namespaces } = this.#o;
    const hostPods = this.#hostPods;
    return {
      get: (namespace, name) => hostPods.get(keyFor(namespace, name)),
      list: () => hostPods.values(),
      *running() {
        for (const pod of hostPods.values()) if (isRunning(pod)) yield pod;
      },
      target: (pod) =>
        podTarget(pod, {
          member: connection.name,
          client: connection.client,
          copy: this.#memberPodOf(pod),
          unavailable: this.#unavailable(),
          hasPlace: namespaces.memberNamespaceOf(pod.metadata.namespace ?? '') !== undefined,
        }),
    };
  }

  /** The pod of the member that runs for exactly this host pod. */
  #memberPodOf(hostPod: Pod): Pod | undefined {
    const { connection, nodeName } = this.#o;
    const pods = connection.pods.byIndex(HOST_POD_INDEX, `${nodeName}/${keyOf(hostPod)}`);
    return pods.find(({ metadata }) => metadata.labels?.[UID_LABEL] === hostPod.metadata.uid);
  }

  /** Why the member cannot be asked about pods now. */
  #unavailable(): string | undefined {
    const { connection } = this.#o;
    if (!connection.reachable()) {
      return `cluster "${connection.name}", where the pod runs, does not answer at the moment; try again later`;
    }
    if (!connection.identityOk()) {
      return `another cluster answers in the place of "${connection.name}"; its administrator has to confirm that`;
    }
    return undefined;
  }

  #usage(): PodUsage {
    const { services, connection, nodeName, logger } = this.#o;
    return new PodUsage({
      nodeName,
      member: connection.name,
      client: connection.client,
      targets: () => this.#usageTargets(),
      selector: `${HOST_LABEL}=${services.hostId},${NODE_LABEL}=${nodeName}`,
      annotationsOf: (node) => connection.nodes.get(node)?.metadata.annotations,
      unavailable: () => this.#unavailable(),
      metrics: services.usageMetrics,
      logger,
    });
  }

  *#usageTargets(): Generator<UsageTarget> {
    for (const hostPod of this.#hostPods.values()) {
      const memberPod = isFinished(hostPod) ? undefined : this.#memberPodOf(hostPod);
      const memberNode = memberPod?.spec.nodeName;
      if (memberPod === undefined || memberNode === undefined) continue;
      yield { hostPod, memberPod, memberKey: keyOf(memberPod), memberNode };
    }
  }
}

/** As a kubelet counts: what is being deleted does not run any more, however long it takes to end. */
function isRunning(pod: Pod): boolean {
  const { status, metadata } = pod;
  return status?.phase === 'Running' && metadata.deletionTimestamp === undefined && !isShownIgnored(pod);
}
