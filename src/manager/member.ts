import type { Logger } from 'pino';
import { GROUP, HOST_LABEL, HOST_NAME_ANNOTATION, HOST_NAMESPACE_ANNOTATION, NODE_LABEL } from '../api/marks.ts';
import { isLeaving, type MemberCluster, wantedNodesOf, wantedServicesOf } from '../api/member-cluster.ts';
import { providerIdOf } from '../api/provider-id.ts';
import type { MemberClusterStatus } from '../api/member-cluster-status.ts';
import { addTo, formatAmounts, NOTHING, parseAmounts } from '../kube/amounts.ts';
import { elasticGroupsOf } from '../capacity/elastic.ts';
import { MemberCapacity } from '../capacity/member-capacity.ts';
import { NodeImages } from '../capacity/node-images.ts';
import { poolsOf } from '../capacity/pool.ts';
import { MemberBudgets } from '../budgets/member-budgets.ts';
import { feedCapacity } from './capacity-feed.ts';
import { NAMESPACE_INDEX, type HostServices } from './host-services.ts';
import type { KubeClient } from '../kube/client.ts';
import type { Pod } from '../kube/core-v1.ts';
import { describeError } from '../kube/errors.ts';
import { refusalOf } from '../kube/member-trial.ts';
import { keyFor } from '../kube/object.ts';
import { pause } from '../kube/timers.ts';
import type { LeavingState, MemberLeaving } from '../leaving/member-leaving.ts';
import { isGivenUp, memberLeaving } from './leaving.ts';
import { MemberDependents } from './member-dependents.ts';
import { MemberEvents } from '../member-events/member-events.ts';
import { childSignal, type ChildSignal } from '../kube/child-signal.ts';
import type { MemberConnection } from '../members/connection.ts';
import type { MemberScope } from '../members/member-scope.ts';
import { deletionToken, type KeptDeletions } from '../members/kept-deletions.ts';
import { servicesWereMirrored, wasBreakerOpen } from '../members/member-status.ts';
import { TokenRenewal } from '../members/token-renewal.ts';
import { MemberNamespaces } from '../members/namespaces.ts';
import { type Cluster, clusterOf, renewedCluster } from '../placement/cluster.ts';
import type { RetiringNode } from '../members/retiring-node.ts';
import { NodeRetirement } from './node-retirement.ts';
import { NodeIdentity } from '../nodes/node-identity.ts';
import { NodeStanding } from '../nodes/node-standing.ts';
import { isShownIgnored } from '../pods/daemon-pod.ts';
import { HOST_NAMESPACE_INDEX, HOST_UID_INDEX } from '../pods/pod-indexes.ts';
import { MemberServices } from '../services/member-services.ts';
import { VirtualNodeScope } from './virtual-node.ts';

/** Between a virtual node that failed and its next start, in ms. */
const RESTART_MS = 5000;
/** Between two looks at whether all caches are complete after a start, in ms. */
const SYNC_POLL_MS = 100;

interface RunningNode {
  scope: VirtualNodeScope | undefined;
  /** The deletion breaker as the scope before left it, or the process before. */
  breakerOpen: boolean;
  stop: ChildSignal;
  ended: Promise<void>;
}

/** Who a virtual node is towards the host. */
interface NodeSelf {
  identity: NodeIdentity;
  standing: NodeStanding;
  stop: ChildSignal;
  ended: Promise<void>;
}

/** How the member stands in this process and among the others. */
export interface MemberStanding {
  /** This process may act for it. */
  leaseHeld: () => boolean;
  /** Whether another MemberCluster of that name stands for the same cluster, or may. */
  sharesCluster: (member: string) => boolean;
  /** Whether another MemberCluster wants a virtual node of that name. */
  othersWant: (nodeName: string) => boolean;
  /** Whether there is a MemberCluster of that name, as far as is known. */
  knowsMember: (name: string) => boolean;
  /** Whether any other MemberCluster stands for the same cluster, or may. */
  isShared: () => boolean;
}

/**
 * Everything that runs for one member on a given connection: what it can take, copies of dependents, and each of its
 * virtual nodes, which come and go with the spec. Ends with the signal and leaves everything in the clusters as it is.
 */
export function startMemberScope(
  services: HostServices,
  member: MemberCluster,
  connection: MemberConnection,
  standing: MemberStanding,
  signal: AbortSignal,
): MemberScope {
  const work = new MemberWork(services, member, connection, standing, signal);
  return {
    changed: (edited) => work.changed(edited),
    done: work.run(),
    podCounts: () => work.podCounts(),
    problem: () => work.problem(),
    allocatable: () => work.allocatable(),
    room: () => work.room(),
    roomsKnown: () => work.roomsKnown(),
    keptDeletions: () => work.keptDeletions(),
    confirmDeletions: (token) => work.confirmDeletions(token),
    retiring: () => work.retiring(),
    budgets: () => work.budgets.finding(),
    services: () => work.memberServices.finding(),
    leaving: () => work.leaving(),
  };
}

class MemberWork {
  readonly budgets: MemberBudgets;
  readonly memberServices: MemberServices;
  readonly #services: HostServices;
  readonly #connection: MemberConnection;
  readonly #signal: AbortSignal;
  readonly #logger: Logger;
  readonly #capacity: MemberCapacity;
  readonly #images = new NodeImages();
  readonly #namespaces: MemberNamespaces;
  readonly #dependents: MemberDependents;
  readonly #memberEvents: MemberEvents;
  readonly #nodes = new Map<string, RunningNode>();
  readonly #selves = new Map<string, NodeSelf>();
  readonly #retirement: NodeRetirement;
  readonly #leaving: MemberLeaving;
  /** Labels that choose the member's nodes behind each virtual node, of those that retire as they were last. */
  readonly #pools = new Map<string, Record<string, string>>();
  readonly #frozen: () => string | undefined;
  #member: MemberCluster;
  /** The member as override policies know it; another object only when something of that changed. */
  #cluster: Cluster;
  #complete = false;
  #wasReachable = false;
  /** As the virtual nodes said last; before all of them have, as a former process left it. */
  #breakerOpen: boolean;

  constructor(
    services: HostServices,
    member: MemberCluster,
    connection: MemberConnection,
    standing: MemberStanding,
    signal: AbortSignal,
  ) {
    const { leaseHeld, sharesCluster, othersWant, knowsMember } = standing;
    const { hostId, logger, informerMetrics, queueMetrics } = services;
    this.#services = services;
    this.#member = member;
    this.#cluster = clusterOf(member);
    this.#breakerOpen = wasBreakerOpen(member.status);
    this.#connection = connection;
    this.#signal = signal;
    this.#logger = logger.child({ member: member.metadata.name });
    this.#frozen = () => {
      if (services.hostIdentity.problem !== undefined) return services.hostIdentity.problem;
      if (!leaseHeld()) return 'the lease of the member is not held';
      if (!connection.identityOk()) return 'the member is not known to be the pinned cluster';
      return undefined;
    };
    this.#capacity = new MemberCapacity({
      hostId,
      pools: poolsOf(member),
      elastic: elasticGroupsOf(member),
      onChange: () => {
        for (const { scope } of this.#nodes.values()) scope?.capacityChanged();
      },
    });
    this.#namespaces = new MemberNamespaces({ member: connection, hostId, spec: () => this.#member.spec.namespaces });
    this.#dependents = new MemberDependents({
      services,
      connection,
      namespaces: this.#namespaces,
      member: () => this.#member,
      cluster: () => this.#cluster,
      mayWrite: () => this.#frozen() === undefined,
      sharesCluster,
      hostPod: (podKey) => this.#scopeOf(podKey)?.hostPod(podKey),
      requeue: (podKey) => this.#requeue(podKey),
      logger: this.#logger,
    });
    this.#retirement = this.#makeRetirement(othersWant);
    this.budgets = this.#makeBudgets(knowsMember);
    this.memberServices = this.#makeServices(sharesCluster);
    this.#leaving = memberLeaving({
      services,
      connection,
      standing,
      givenUp: () => this.#isGivenUp(),
      namespaces: this.#namespaces,
      dependents: this.#dependents,
      retirement: this.#retirement,
      budgets: this.budgets,
      member: () => this.#member,
      scopes: () => [...this.#nodes.values()].flatMap(({ scope }) => scope ?? []),
      mayWrite: () => this.#frozen() === undefined,
      event: (type, reason, message) => this.#event(type, reason, message),
      logger: this.#logger,
    });
    this.#memberEvents = new MemberEvents({
      host: services.host,
      hostId,
      member: connection,
      hostPod: (nodeName, key) => this.#nodes.get(nodeName)?.scope?.hostPod(key),
      hostClaim: (namespace, name, uid) => this.#dependents.toldClaim(namespace, name, uid),
      podEvents: () => this.#member.spec.podEvents,
      mayWrite: () => this.#frozen() === undefined,
      metrics: services.memberEventMetrics,
      informerMetrics,
      queueMetrics,
      logger: this.#logger,
    });
  }

  #makeRetirement(othersWant: (nodeName: string) => boolean): NodeRetirement {
    return new NodeRetirement({
      host: this.#services.host,
      member: this.#member.metadata.name,
      memberPods: this.#connection.pods,
      isWanted: (name) => this.#isWanted(name),
      othersWant,
      refusalOf: (name) => this.#selves.get(name)?.standing.refusal,
      running: () => [...this.#nodes].map(([name, { scope }]) => [name, scope]),
      serve: (name, pool) => {
        if (pool !== undefined) this.#pools.set(name, pool);
        this.#startNode(name);
      },
      drop: (name) => this.#nodes.get(name)?.stop.abort(),
      mayWrite: () => this.#frozen() === undefined,
      givenUp: () => this.#isGivenUp(),
      event: (type, reason, message) => this.#event(type, reason, message),
      logger: this.#logger,
    });
  }

  #makeTokenRenewal(): TokenRenewal {
    return new TokenRenewal({
      host: this.#services.host,
      member: this.#connection.client,
      reference: () => this.#member.spec.credentials.secretRef,
      refusal: async (...tried) => await refusalOf(this.#connection.name, ...tried),
      mayWrite: () => this.#frozen() === undefined,
      failed: (words, expiresAt) => {
        const until = new Date(expiresAt).toISOString();
        const message = `The member gives no new token: ${words}. The one there is lasts until ${until}; it is tried again. See manifests/member/token.yaml.`;
        this.#event('Warning', 'TokenNotRenewed', message);
      },
      logger: this.#logger,
      clock: Date.now,
    });
  }

  #makeBudgets(knowsMember: MemberStanding['knowsMember']): MemberBudgets {
    const connection = this.#connection;
    const { hostId, hostBudgets, events, budgetMetrics, informerMetrics, queueMetrics } = this.#services;
    return new MemberBudgets({
      hostId,
      hostBudgets,
      member: connection,
      mode: () => this.#member.spec.disruptionBudgets,
      hostPods: (namespace) => this.#hostPodsIn(namespace),
      hostPodOf: ({ metadata: { labels, annotations } }) => {
        const key = keyFor(annotations?.[HOST_NAMESPACE_ANNOTATION], annotations?.[HOST_NAME_ANNOTATION] ?? '');
        return this.#nodes.get(labels?.[NODE_LABEL] ?? '')?.scope?.hostPod(key);
      },
      copyOf: (uid) => connection.pods.byIndex(HOST_UID_INDEX, uid)[0],
      mayWrite: () => this.#frozen() === undefined,
      reachable: () => connection.reachable(),
      knowsMember,
      events,
      metrics: budgetMetrics,
      informerMetrics,
      queueMetrics,
      logger: this.#logger,
    });
  }

  #makeServices(sharesCluster: MemberStanding['sharesCluster']): MemberServices {
    const connection = this.#connection;
    const { services: hostServices, host, hostId, hostSlices, events } = this.#services;
    const { serviceMetrics, informerMetrics, queueMetrics } = this.#services;
    return new MemberServices({
      hostId,
      host,
      hostServices,
      servicesIn: (namespace) => hostServices.byIndex(NAMESPACE_INDEX, namespace),
      hostSlices,
      member: connection,
      spec: () => ({ ...this.#member.spec, services: wantedServicesOf(this.#member) }),
      hostPods: (namespace) => this.#hostPodsIn(namespace).filter((pod) => !isShownIgnored(pod)),
      copiesOf: (namespace) => connection.pods.byIndex(HOST_NAMESPACE_INDEX, namespace),
      copyOf: (uid) => connection.pods.byIndex(HOST_UID_INDEX, uid)[0],
      namespaces: this.#namespaces,
      sharesCluster,
      mayWrite: () => this.#frozen() === undefined,
      reachable: () => connection.reachable(),
      wereMirrored: servicesWereMirrored(this.#member.status),
      requeue: (podKey) => this.#requeue(podKey),
      events,
      metrics: serviceMetrics,
      informerMetrics,
      queueMetrics,
      logger: this.#logger,
    });
  }

  #hostPodsIn(namespace: string): Pod[] {
    return [...this.#nodes.values()].flatMap(({ scope }) => scope?.hostPodsIn(namespace) ?? []);
  }

  /** Settles when everything has ended after the signal. */
  async run(): Promise<void> {
    const connection = this.#connection;
    const off = [
      ...feedCapacity(connection, this.#capacity, this.#images),
      connection.onChange(() => {
        for (const { scope } of this.#nodes.values()) scope?.changed();
        this.#tellOutage();
      }),
      this.#services.hostIdentity.on(() => {
        for (const { scope } of this.#nodes.values()) scope?.changed();
      }),
      this.#services.overridePolicies.on(() => this.#overridesChanged()),
      this.#services.namespaceModes.on(() => {
        for (const { scope } of this.#nodes.values()) scope?.translationChanged();
      }),
      this.#services.capacityMetrics.watch(connection.name, this.#capacity),
      connection.pods.on({ deleted: (pod) => this.#copyGone(pod) }),
    ];
    this.#adjustNodes();
    await Promise.all([
      this.#dependents.run(this.#signal),
      this.memberServices.run(this.#signal),
      this.#retirement.run(this.#signal),
      this.#makeTokenRenewal().run(this.#signal),
      this.#leaving.run(this.#signal),
      this.#ended(),
      this.#whenComplete(),
    ]);
    for (const unsubscribe of off) unsubscribe();
    for (const nodeName of this.#selves.keys()) await this.#endSelf(nodeName);
  }

  changed(member: MemberCluster): void {
    const { podEvents } = this.#member.spec;
    this.#member = member;
    if (podEvents !== member.spec.podEvents) this.#memberEvents.restart();
    const cluster = renewedCluster(this.#cluster, member);
    if (cluster !== this.#cluster) {
      this.#cluster = cluster;
      this.#dependents.overridesChanged();
    }
    this.#capacity.setSpec(poolsOf(member), elasticGroupsOf(member));
    this.#adjustNodes();
    this.#dependents.changed();
    this.budgets.changed();
    this.memberServices.changed();
    for (const { scope } of this.#nodes.values()) scope?.changed();
  }

  #scopeOf(podKey: string): VirtualNodeScope | undefined {
    for (const { scope } of this.#nodes.values()) if (scope?.hostPod(podKey) !== undefined) return scope;
    return undefined;
  }

  #requeue(podKey: string): void {
    this.#scopeOf(podKey)?.pods.requeue(podKey);
  }

  /** Once for each outage. */
  #tellOutage(): void {
    const reachable = this.#connection.reachable();
    if (this.#wasReachable && !reachable && this.#frozen() === undefined) this.#dependents.claims.tellOutage();
    this.#wasReachable = reachable;
  }

  #copyGone({ metadata: { labels, annotations } }: Pod): void {
    const namespace = annotations?.[HOST_NAMESPACE_ANNOTATION];
    if (namespace !== undefined && labels?.[HOST_LABEL] === this.#services.hostId)
      this.memberServices.copyGone(namespace);
  }

  #overridesChanged(): void {
    this.#dependents.overridesChanged();
    for (const { scope } of this.#nodes.values()) scope?.translationChanged();
  }

  podCounts(): MemberClusterStatus['pods'] | undefined {
    if (!this.#complete) return undefined;
    const counts = { running: 0, pending: 0, total: 0 };
    for (const { scope } of this.#nodes.values()) {
      const { running = 0, pending = 0, total = 0 } = scope?.podCounts() ?? {};
      counts.running += running;
      counts.pending += pending;
      counts.total += total;
    }
    return counts;
  }

  problem(): ReturnType<MemberScope['problem']> {
    for (const [name, { scope }] of this.#nodes) {
      if (!this.#isWanted(name)) continue;
      const { identity, standing } = this.#selves.get(name) ?? {};
      if (standing?.refusal !== undefined) return { reason: 'NodeNameTaken', message: standing.refusal.message };
      const message = identity?.problem ?? scope?.problem;
      if (message !== undefined) return { reason: 'NodeNotKept', message, open: identity?.asking === true };
    }
    return undefined;
  }

  keptDeletions(): KeptDeletions | undefined {
    const parts = [...this.#nodes.values()].flatMap(({ scope }) => (scope === undefined ? [] : [scope.pods.keptPods]));
    const kept = {
      uids: parts.flatMap(({ uids }) => uids),
      open: parts.some(({ open }) => open),
      hostWentBack: parts.some(({ hostWentBack }) => hostWentBack),
    };
    // Who has not begun yet may have to keep some: until then it is as the process before left it.
    return kept.open || kept.uids.length > 0 || parts.length === this.#nodes.size ? kept : undefined;
  }

  confirmDeletions(token: string): void {
    const uids = this.keptDeletions()?.uids ?? [];
    if (uids.length === 0 || token !== deletionToken(uids)) return;
    this.#logger.warn({ count: uids.length }, 'an administrator confirmed deletions that were held back');
    this.#event('Normal', 'DeletionsConfirmed', `The deletion of ${uids.length} pods that were kept was confirmed.`);
    for (const { scope } of this.#nodes.values()) scope?.pods.confirmDeletions(new Set(uids));
  }

  retiring(): RetiringNode[] {
    return this.#retirement.retiring();
  }

  leaving(): LeavingState | undefined {
    return this.#leaving.state;
  }

  #isGivenUp(): boolean {
    return isGivenUp(this.#member, this.#connection);
  }

  #keptChanged(): void {
    const kept = this.keptDeletions();
    if (kept === undefined) return;
    if (kept.open && !this.#breakerOpen) {
      const message =
        'More host pods vanished at once than is believed: their copies in the member are kept until an administrator confirms the deletions. See condition DeletionsAllowed.';
      this.#event('Warning', 'DeletionBreakerOpen', message);
    }
    this.#breakerOpen = kept.open;
  }

  #event(type: 'Normal' | 'Warning', reason: string, message: string): void {
    const { name, uid } = this.#member.metadata;
    const object = { apiVersion: `${GROUP}/v1alpha1`, kind: 'MemberCluster', name, uid };
    this.#services.events.record(object, type, reason, message);
  }

  allocatable(): MemberClusterStatus['allocatable'] | undefined {
    if (!this.#connection.synced()) return undefined;
    const sum = new Map<string, bigint>();
    for (const name of this.#nodes.keys()) addTo(sum, parseAmounts(this.#capacity.offer(name)?.allocatable));
    return formatAmounts(sum);
  }

  room(): ReturnType<MemberScope['room']> {
    if (!this.#connection.synced()) return undefined;
    const largest = this.#capacity.largestFreeSlot();
    return { largestFreeSlot: formatAmounts(largest ?? NOTHING), fits: this.#capacity.roomForShapes() };
  }

  roomsKnown(): boolean {
    if (isLeaving(this.#member)) return true;
    const wanted = [...this.#nodes].filter(([name]) => this.#isWanted(name) && !this.#isOthers(name));
    return this.#nodes.size > 0 && wanted.every(([, { scope }]) => scope?.roomKnown === true);
  }

  #isWanted(nodeName: string): boolean {
    return wantedNodesOf(this.#member).some(({ name }) => name === nodeName);
  }

  /** Starts virtual nodes that the spec wants. Those that it does not want any more retire. */
  #adjustNodes(): void {
    for (const { name, nodeSelector } of wantedNodesOf(this.#member)) {
      this.#pools.set(name, nodeSelector);
      if (this.#nodes.get(name)?.stop.signal.aborted !== false) this.#startNode(name);
    }
  }

  #startNode(name: string): void {
    const former = this.#nodes.get(name)?.ended;
    const node: RunningNode = {
      scope: undefined,
      breakerOpen: this.#breakerOpen,
      stop: childSignal(this.#signal),
      ended: Promise.resolve(),
    };
    node.ended = this.#runNode(name, node, former);
    this.#nodes.set(name, node);
  }

  async #runNode(name: string, node: RunningNode, former: Promise<void> | undefined): Promise<void> {
    await former;
    const { signal } = node.stop;
    const { identity, standing } = this.#selfOf(name);
    await identity.ready(signal);
    while (!signal.aborted) {
      node.scope = this.#nodeScope(name, identity.client, standing, node.breakerOpen);
      try {
        await node.scope.run(signal);
        if (!signal.aborted) this.#logger.warn({ node: name }, `the virtual node pauses: ${standing.problem ?? ''}`);
      } catch (error) {
        this.#logger.error({ node: name, err: error }, `the virtual node is started anew: ${describeError(error)}`);
        await pause(RESTART_MS, signal);
      }
      node.breakerOpen = node.scope.pods.keptPods.open;
    }
    node.stop.release();
    if (!this.#signal.aborted) await this.#endSelf(name);
    if (this.#nodes.get(name) === node) this.#nodes.delete(name);
  }

  #selfOf(nodeName: string): NodeSelf {
    const known = this.#selves.get(nodeName);
    if (known !== undefined) return known;
    const { host, hostAccess, connectHost, nodeClients, nodeIdentityMetrics, config } = this.#services;
    const { name } = this.#member.metadata;
    const owner = { name: nodeName, member: name, providerID: providerIdOf(name, nodeName) };
    const standing = new NodeStanding(owner);
    const identity = new NodeIdentity({
      owner,
      standing,
      mode: config.hostIdentity,
      manager: host,
      access: hostAccess,
      connect: connectHost,
      metrics: nodeIdentityMetrics,
      logger: this.#logger,
    });
    const stop = childSignal(this.#signal);
    const self = { identity, standing, stop, ended: identity.run(stop.signal) };
    this.#selves.set(nodeName, self);
    nodeClients.set(nodeName, identity.client);
    return self;
  }

  /** What else works for the member may use its client until then. */
  async #endSelf(nodeName: string): Promise<void> {
    const self = this.#selves.get(nodeName);
    if (self === undefined) return;
    self.stop.abort();
    self.stop.release();
    await self.ended;
    this.#selves.delete(nodeName);
    const { nodeClients } = this.#services;
    if (nodeClients.get(nodeName) === self.identity.client) nodeClients.delete(nodeName);
    await self.identity.close();
  }

  #nodeScope(nodeName: string, host: KubeClient, standing: NodeStanding, breakerOpen: boolean): VirtualNodeScope {
    return new VirtualNodeScope({
      services: this.#services,
      host,
      connection: this.#connection,
      namespaces: this.#namespaces,
      dependents: this.#dependents,
      capacity: this.#capacity,
      images: this.#images,
      member: () => this.#member,
      nodeName,
      pool: () => this.#pools.get(nodeName),
      isWanted: () => this.#isWanted(nodeName),
      givenUp: () => this.#isGivenUp(),
      cluster: () => this.#cluster,
      frozen: this.#frozen,
      breakerOpen,
      standing,
      keptChanged: () => this.#keptChanged(),
      memberServices: this.memberServices,
      hostPodChanged: (pod, before) => {
        this.budgets.hostPodChanged(pod, before);
        this.memberServices.hostPodChanged(pod, before);
      },
      logger: this.#logger,
    });
  }

  /** Waits for the end of all virtual nodes, those that came later too. */
  async #ended(): Promise<void> {
    await new Promise<void>((resolve) => {
      if (this.#signal.aborted) resolve();
      else this.#signal.addEventListener('abort', () => resolve(), { once: true });
    });
    await Promise.all([...this.#nodes.values()].map(({ ended }) => ended));
  }

  /** What has to wait until every host pod of every virtual node is known, and every pod of the member. */
  async #whenComplete(): Promise<void> {
    await this.#when(() => this.#retirement.nodesKnown && this.#nodesSynced());
    this.#complete = true;
    await this.#when(() => this.#retirement.allKnown && this.#nodesSynced());
    if (this.#signal.aborted) return;
    // Copies without a user are garbage only now.
    this.#dependents.setComplete();
    this.memberServices.setComplete();
    await Promise.all([this.#memberEvents.run(this.#signal), this.budgets.run(this.#signal)]);
  }

  #nodesSynced(): boolean {
    return [...this.#nodes].every(([name, { scope }]) => scope?.synced === true || this.#isOthers(name));
  }

  /** Somebody else has the name: nothing there is ours. */
  #isOthers(nodeName: string): boolean {
    return this.#selves.get(nodeName)?.standing.refusal !== undefined;
  }

  async #when(isTrue: () => boolean): Promise<void> {
    while (!isTrue() && !this.#signal.aborted) await pause(SYNC_POLL_MS, this.#signal);
  }
}
