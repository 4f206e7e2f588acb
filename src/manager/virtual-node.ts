import { OUT_OF_SERVICE_TAINT } from '../api/marks.ts';
import { daemonSetsOn, specOf } from '../api/member-cluster.ts';
import type { Pod } from '../kube/core-v1.ts';
import type { KubeClient } from '../kube/client.ts';
import { monotonic } from '../kube/clock.ts';
import { KubeletServer } from '../kubelet/server.ts';
import { BoundPods } from './bound-pods.ts';
import { nodeOutages } from './node-outages.ts';
import { KubeletPods } from './kubelet-pods.ts';
import type { MemberDependents } from './member-dependents.ts';
import type { MemberFencing } from '../members/member-fencing.ts';
import type { MemberNamespaces } from '../members/namespaces.ts';
import { childSignal } from '../kube/child-signal.ts';
import { formerKubeletPort } from '../nodes/former-port.ts';
import { NodeKeeper } from '../nodes/node-keeper.ts';
import { outageBegan } from '../placement/lost-members.ts';
import type { NodeStanding } from '../nodes/node-standing.ts';
import { type NodeFacts, renderNode } from '../nodes/render-node.ts';
import type { TolerationKeeper } from '../pods/outages/toleration-keeper.ts';
import type { MemberCapacity } from '../capacity/member-capacity.ts';
import type { NodeImages } from '../capacity/node-images.ts';
import { podFencing } from './pod-fencing.ts';
import { podServiceAccounts } from './pod-service-accounts.ts';
import { PodController } from '../pods/pod-controller.ts';
import type { MemberServices } from '../services/member-services.ts';
import type { UndeletedList } from '../pods/undeleted-copies.ts';
import { OPEN_CREATION_MS } from '../pods/unanswered-creation.ts';
import { servingCertificates } from './serving-certificates.ts';
import type { ActingMember } from './acting-member.ts';
import type { OwnNode } from './node-identities.ts';
import { VirtualNodeView } from './virtual-node-view.ts';

/** What the virtual nodes of one member share. */
export interface SharedParts {
  readonly namespaces: MemberNamespaces;
  readonly dependents: MemberDependents;
  readonly capacity: MemberCapacity;
  readonly images: NodeImages;
  /** Services of the host in the member. */
  readonly memberServices: Pick<MemberServices, 'require' | 'seenFrom'>;
}

export interface VirtualNodeOptions {
  acting: ActingMember;
  shared: SharedParts;
  nodeName: string;
  /** Who it is towards the host, and whose the Node is. */
  own: OwnNode;
  /** Labels that choose the member's nodes behind it; undefined once it is not wanted any more. */
  pool: () => Record<string, string> | undefined;
  fencing: MemberFencing;
  /** The deletion breaker was open when a former process ended. */
  breakerOpen: boolean;
  /** Told when pods begin or cease to be kept although their host pods are gone. */
  keptChanged: () => void;
  /** Told of each host pod on it that came, changed or went. */
  hostPodChanged: (pod: Pod, before?: Pod) => void;
}

/**
 * One virtual node at work: its Node object, its kubelet port, its pods. Nothing but the keeper of the Node works before
 * that is seen to be ours. Starts, ends and fails alone; ending leaves Node and pods as they are.
 */
export class VirtualNodeScope {
  readonly nodeName: string;
  readonly bound: BoundPods;
  readonly pods: PodController;
  readonly #o: VirtualNodeOptions;
  readonly #acting: ActingMember;
  /** With the identity of the node. */
  readonly #host: KubeClient;
  readonly #standing: NodeStanding;
  readonly #view: VirtualNodeView;
  #node: NodeKeeper | undefined;
  #tolerations: TolerationKeeper | undefined;
  /** Monotonic ms. */
  readonly #startedAt = monotonic();
  /** Takes the room away from schedulers. */
  #endRoom: (() => void) | undefined;

  constructor(options: VirtualNodeOptions) {
    const { acting, shared, nodeName, own, pool } = options;
    const { services, connection, member, cluster, logger } = acting;
    const { namespaces, dependents, capacity, images, memberServices } = shared;
    this.#o = options;
    this.#acting = acting;
    this.#host = own.identity.client;
    this.#standing = own.standing;
    this.nodeName = nodeName;
    this.bound = new BoundPods({ acting, host: this.#host, nodeName, isOurs: () => own.standing.ours });
    const serviceAccounts = podServiceAccounts({ modes: services.namespaceModes, tokens: dependents.tokens, member });
    this.#view = new VirtualNodeView({
      services,
      connection,
      namespaces,
      capacity,
      images,
      member,
      nodeName,
      pool,
      cluster,
      ready: () => connection.synced() && this.bound.cache.hasSynced,
      modeOf: (hostPod) => serviceAccounts.modeOf(hostPod),
      boundChanged: () => this.#node?.roomChanged(),
      claims: dependents.claims.places,
      servicesSeen: (host, member) => memberServices.seenFrom(host, member),
      environmentKeys: (kind, namespace, name) => dependents.mirror.environmentKeys(kind, namespace, name),
    });
    this.pods = new PodController({
      host: this.#host,
      hostPods: this.bound.cache,
      member: connection,
      memberNodes: connection.nodes,
      hostId: services.hostId,
      nodeName,
      network: () => member().spec.network,
      daemonSets: () => daemonSetsOn(member(), nodeName),
      podsUnreadyAfterMs: () => member().spec.probe.podsUnreadyAfterSeconds * 1000,
      outageBegan: () => outageBegan(member()),
      frozen: () => own.standing.problem ?? acting.frozen(),
      confirmHost: async () => await services.hostIdentity.confirm(),
      namespaces,
      dependents,
      serviceAccounts,
      services: memberServices,
      fencing: podFencing(options.fencing, nodeName),
      overrides: {
        unknown: () => services.overridePolicies.unknown(),
        policies: (namespace) => services.overridePolicies.in(namespace),
        owners: (hostPod) => services.podOwners.known(hostPod),
        readOwners: async (hostPod, signal) => await services.podOwners.read(hostPod, signal),
        member: cluster,
        pool: () => pool() ?? {},
      },
      translateContext: (hostPod, memberNamespace, mode) => this.#view.translateContext(hostPod, memberNamespace, mode),
      events: services.events,
      metrics: services.podMetrics,
      invariants: services.invariants,
      breakerOpen: options.breakerOpen,
      permits: services.deletionPermits.of(nodeName),
      keptChanged: options.keptChanged,
      queueMetrics: services.queueMetrics,
      logger,
    });
  }

  #isWanted(): boolean {
    return this.#acting.wantsNode(this.nodeName);
  }

  /** All its host pods are known; of a node that is not ours there are none. */
  get synced(): boolean {
    return this.bound.cache.hasSynced || this.#standing.refusal !== undefined;
  }

  /** The room behind it can be asked about, or there is none to tell of. */
  get roomKnown(): boolean {
    const { services, connection } = this.#acting;
    const { room } = this.#view;
    if (this.#standing.refusal !== undefined || !this.#isWanted()) return true;
    return room.ready && services.rooms.get(this.nodeName, connection.name) === room;
  }

  /** The member's state or spec changed in a way that may concern every pod and the Node. */
  changed(): void {
    this.#offerRoom();
    this.#node?.trigger();
    this.#tolerations?.changed();
    this.translationChanged();
  }

  /** What pods become in the member may have changed. */
  translationChanged(): void {
    for (const pod of this.bound.cache.values()) this.#view.room.noteBound(pod);
    this.pods.requeueAll();
  }

  /** Whether an administrator says that nothing runs on it any more; undefined while its Node has not been seen. */
  get isOutOfService(): boolean | undefined {
    return this.#node?.taints?.some(({ key }) => key === OUT_OF_SERVICE_TAINT);
  }

  /** Why the Node is not kept, in words for people; undefined while it is. */
  get problem(): string | undefined {
    return this.#node?.problem;
  }

  /** Capacity changed. */
  capacityChanged(): void {
    this.#node?.roomChanged();
  }

  /** Works until the signal aborts, or until the Node is not ours any more. */
  async run(signal: AbortSignal): Promise<void> {
    const { services, connection, logger } = this.#acting;
    const { nodeName } = this;
    const host = this.#host;
    const hostPods = this.bound.cache;
    const standing = this.#standing;
    const certificates = await servingCertificates(services, { host, member: connection.name, nodeName, logger });
    const { namespaces } = this.#o.shared;
    const kubeletPods = new KubeletPods({ acting: this.#acting, namespaces, nodeName, hostPods });
    const usage = kubeletPods.usage();
    const server = new KubeletServer({
      nodeName,
      address: services.config.kubelet.bindAddress,
      certificates,
      clientCa: services.clientCa,
      host,
      pods: kubeletPods.directory(),
      usage,
      registry: services.registry,
      logger,
      clock: Date.now,
    });
    const port = await this.#openPort(server, signal);
    logger.info({ node: nodeName, port }, 'kubelet port is open');
    const outages = nodeOutages(this.#acting, { host, nodeName, hostPods });
    this.#tolerations = outages.tolerations;
    // Before the Node has its first heartbeat of this process.
    const outage = await outages.deletions.lastOutage(signal);
    this.#node = new NodeKeeper({
      host,
      manager: services.host,
      name: nodeName,
      standing,
      desired: () => renderNode(this.#nodeFacts(port)),
      isWanted: () => this.#isWanted(),
      isInUse: () => this.bound.remains()?.pods !== 0,
      seen: () => this.#o.fencing.touch(),
      pace: services.reportPace,
      events: services.events,
      informerMetrics: services.informerMetrics,
      invariants: services.invariants,
      logger,
    });
    const child = childSignal(signal);
    const kept = this.#node.run(child.signal);
    await standing.when('ours', signal);
    const off = signal.aborted ? [] : [...this.#watchRoom(), outages.deletions.recordFor(outage)];
    const working = signal.aborted
      ? []
      : [
          outages.tolerations.run(child.signal),
          hostPods.run(child.signal),
          this.#offerOnceKnown(child.signal),
          this.pods.run(child.signal),
          certificates.run(child.signal),
          usage.run(child.signal),
        ];
    await standing.when('lost', signal);
    child.abort();
    child.release();
    await Promise.all([kept, ...working, server.close(services.config.shutdownGraceSeconds * 1000)]);
    for (const end of off) end();
    this.#endRoom?.();
  }

  /** The Node waits for what is bound to it. */
  async #offerOnceKnown(signal: AbortSignal): Promise<void> {
    try {
      await this.bound.cache.whenSynced(signal);
      this.#node?.trigger();
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  /** Copies that were told to end, and do not go. */
  undeleted(): UndeletedList {
    return this.pods.undeleted;
  }

  /** Time until no pending creation, of this or a former process, can take effect any more (ms). */
  creationsOpenMs(): number {
    const ofFormer = this.#node?.madeHere === true ? 0 : this.#startedAt + OPEN_CREATION_MS - monotonic();
    return Math.max(0, ofFormer, this.pods.creationsOpenMs);
  }

  /** Removes the Node of a member that was given up. */
  async giveUpNode(signal: AbortSignal): Promise<boolean> {
    if (!this.#standing.ours) return false;
    await this.#removeOnceAllowed(() => !this.#isWanted() && this.#acting.givenUp(), signal);
    return true;
  }

  /** Removes the Node of one that retires, if the host knows no pod on it either; false: not yet. */
  async removeNode(signal: AbortSignal): Promise<boolean> {
    const isEmpty = (): boolean => !this.#isWanted() && this.bound.remains()?.pods === 0;
    if (!(await this.bound.onlyDaemonPodsAreLeft(signal)) || !isEmpty()) return false;
    if (!(await this.bound.copiesAreGone(signal)) || !isEmpty()) return false;
    await this.#removeOnceAllowed(isEmpty, signal);
    return true;
  }

  async #removeOnceAllowed(mayGo: () => boolean, signal: AbortSignal): Promise<void> {
    const end = this.#acting.services.nodeRemovals.allow(this.nodeName, mayGo);
    try {
      await this.#node?.remove(signal);
    } finally {
      end();
    }
  }

  /** Registers the capacity behind the node for schedulers; a retiring node offers none. */
  #offerRoom(): void {
    if (!this.#isWanted() || !this.#standing.ours) {
      this.#endRoom?.();
      this.#endRoom = undefined;
    } else if (this.#node !== undefined) {
      this.#endRoom ??= this.#acting.services.rooms.add(this.#view.room);
    }
  }

  /** Pods that are bound to it, and the room that they take. */
  #watchRoom(): (() => void)[] {
    const { hostPodChanged } = this.#o;
    const { boundPods } = this.#acting.services;
    boundPods.set(this.nodeName, this.bound);
    this.#offerRoom();
    const { room } = this.#view;
    return [
      this.bound.cache.on(room.hostPodHandler),
      () => room.end(),
      () => {
        if (boundPods.get(this.nodeName) === this.bound) boundPods.delete(this.nodeName);
      },
      this.bound.cache.on({ added: hostPodChanged, updated: hostPodChanged, deleted: (pod) => hostPodChanged(pod) }),
    ];
  }

  async #openPort(server: KubeletServer, signal: AbortSignal): Promise<number> {
    const { services, logger } = this.#acting;
    const { nodeName } = this;
    const { kubeletPorts } = services;
    const before = kubeletPorts.fixed ? await formerKubeletPort(this.#host, nodeName, logger, signal) : undefined;
    return await kubeletPorts.open(nodeName, before, async (port) => await server.listen(port));
  }

  #nodeFacts(kubeletPort: number): NodeFacts {
    const { services, connection, member } = this.#acting;
    const { nodeName } = this;
    const synced = connection.synced();
    const { reachable, failure } = connection.reachability;
    const since = connection.unreachableSince();
    const unreadyMs = member().spec.probe.podsUnreadyAfterSeconds * 1000;
    // Before all pods on it are known, the host's own figure of them would be missing.
    const offer = synced && this.bound.cache.hasSynced ? this.#view.room.offer() : undefined;
    return {
      name: nodeName,
      member: connection.name,
      spec: specOf(member(), nodeName),
      retiring: !this.#isWanted(),
      selector: this.#o.pool(),
      pool: synced ? this.#o.shared.capacity.tracker.facts(nodeName) : undefined,
      offer,
      memberVersion: connection.version,
      address: services.nodeAddress,
      kubeletPort,
      reachable,
      failure,
      failsWithMember: this.#acting.nodesFail(),
      unreadyInMs: since === undefined ? undefined : since.monotonic + unreadyMs - monotonic(),
    };
  }
}
