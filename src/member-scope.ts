import type { Logger } from 'pino';
import { GROUP } from './api/marks.ts';
import { type MemberCluster, virtualNodesOf } from './api/member-cluster.ts';
import type { MemberClusterStatus } from './api/member-cluster-status.ts';
import { addTo, formatAmounts, NOTHING, parseAmounts } from './capacity/amounts.ts';
import { elasticGroupsOf } from './capacity/elastic.ts';
import { MemberCapacity } from './capacity/member-capacity.ts';
import { NodeImages } from './capacity/node-images.ts';
import { poolsOf } from './capacity/pool.ts';
import { feedCapacity } from './capacity-feed.ts';
import type { HostServices } from './host-services.ts';
import type { KubeClient } from './kube/client.ts';
import { describeError } from './kube/errors.ts';
import { pause } from './kube/timers.ts';
import { MemberDependents } from './member-dependents.ts';
import { MemberEvents } from './member-events/member-events.ts';
import type { MemberConnection } from './members/connection.ts';
import type { MemberScope } from './members/member-scope.ts';
import { deletionToken, type KeptDeletions } from './members/kept-deletions.ts';
import { wasBreakerOpen } from './members/member-status.ts';
import { MemberNamespaces } from './members/namespaces.ts';
import { type Cluster, clusterOf, renewedCluster } from './placement/cluster.ts';
import { NodeIdentity } from './nodes/node-identity.ts';
import { providerIdOf } from './nodes/render-node.ts';
import { VirtualNodeScope } from './virtual-node-scope.ts';

/** Between a virtual node that failed and its next start, in ms. */
const RESTART_MS = 5000;
/** Between two looks at whether all caches are complete after a start, in ms. */
const SYNC_POLL_MS = 100;

interface RunningNode {
  scope: VirtualNodeScope | undefined;
  stop: AbortController;
  ended: Promise<void>;
}

/** How the member stands in this process and among the others. */
export interface MemberStanding {
  /** This process may act for it. */
  leaseHeld: () => boolean;
  /** Whether another MemberCluster of that name stands for the same cluster, or may. */
  sharesCluster: (member: string) => boolean;
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
  };
}

class MemberWork {
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
  /** Those of nodes that are not wanted any more too: their pods are still there. */
  readonly #identities = new Map<string, { identity: NodeIdentity; ended: Promise<void> }>();
  readonly #frozen: () => string | undefined;
  #member: MemberCluster;
  /** The member as override policies know it; another object only when something of that changed. */
  #cluster: Cluster;
  #complete = false;
  #wasReachable = false;
  /** As a former process left it; what is open now is for the virtual nodes to say. */
  #breakerWasOpen: boolean;
  #breakerOpen: boolean;

  constructor(
    services: HostServices,
    member: MemberCluster,
    connection: MemberConnection,
    { leaseHeld, sharesCluster }: MemberStanding,
    signal: AbortSignal,
  ) {
    const { hostId, logger, informerMetrics, queueMetrics } = services;
    this.#services = services;
    this.#member = member;
    this.#cluster = clusterOf(member);
    this.#breakerWasOpen = wasBreakerOpen(member.status);
    this.#breakerOpen = this.#breakerWasOpen;
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
        for (const { scope } of this.#nodes.values()) scope?.pods.requeueAll();
      }),
      this.#services.capacityMetrics.watch(connection.name, this.#capacity),
    ];
    this.#adjustNodes();
    await Promise.all([this.#dependents.run(this.#signal), this.#ended(), this.#whenComplete()]);
    for (const unsubscribe of off) unsubscribe();
    await this.#closeIdentities();
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

  #overridesChanged(): void {
    this.#dependents.overridesChanged();
    for (const { scope } of this.#nodes.values()) scope?.pods.requeueAll();
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
      const identity = this.#identities.get(name)?.identity;
      const message = identity?.problem ?? scope?.problem;
      if (message !== undefined) return { reason: 'NodeNotKept', message, open: identity?.asking === true };
    }
    return undefined;
  }

  keptDeletions(): KeptDeletions {
    const parts = [...this.#nodes.values()].flatMap(({ scope }) => (scope === undefined ? [] : [scope.pods.keptPods]));
    return {
      uids: parts.flatMap(({ uids }) => uids),
      open: parts.some(({ open }) => open),
      hostWentBack: parts.some(({ hostWentBack }) => hostWentBack),
    };
  }

  confirmDeletions(token: string): void {
    const { uids } = this.keptDeletions();
    if (uids.length === 0 || token !== deletionToken(uids)) return;
    this.#logger.warn({ count: uids.length }, 'an administrator confirmed deletions that were held back');
    this.#event('Normal', 'DeletionsConfirmed', `The deletion of ${uids.length} pods that were kept was confirmed.`);
    this.#breakerWasOpen = false;
    for (const { scope } of this.#nodes.values()) scope?.pods.confirmDeletions(new Set(uids));
  }

  #keptChanged(): void {
    const { open } = this.keptDeletions();
    if (open && !this.#breakerOpen) {
      const message =
        'More host pods vanished at once than is believed: their copies in the member are kept until an administrator confirms the deletions. See condition DeletionsAllowed.';
      this.#event('Warning', 'DeletionBreakerOpen', message);
    }
    this.#breakerOpen = open;
  }

  #event(type: 'Normal' | 'Warning', reason: string, message: string): void {
    const { name, uid } = this.#member.metadata;
    const object = { apiVersion: `${GROUP}/v1alpha1`, kind: 'MemberCluster', name, uid };
    this.#services.events.record(object, type, reason, message);
  }

  allocatable(): MemberClusterStatus['allocatable'] | undefined {
    if (!this.#connection.synced()) return undefined;
    const sum = new Map<string, bigint>();
    for (const name of this.#nodes.keys()) addTo(sum, parseAmounts(this.#capacity.tracker.offer(name)?.allocatable));
    return formatAmounts(sum);
  }

  room(): ReturnType<MemberScope['room']> {
    if (!this.#connection.synced()) return undefined;
    const largest = this.#capacity.largestFreeSlot();
    return { largestFreeSlot: formatAmounts(largest ?? NOTHING), fits: this.#capacity.roomForShapes() };
  }

  roomsKnown(): boolean {
    return this.#nodes.size > 0 && [...this.#nodes.values()].every(({ scope }) => scope?.roomKnown === true);
  }

  /** Starts virtual nodes that the spec wants and ends those it does not want any more. */
  #adjustNodes(): void {
    const wanted = new Set(virtualNodesOf(this.#member).map(({ name }) => name));
    for (const [name, node] of this.#nodes) if (!wanted.has(name)) node.stop.abort();
    for (const name of wanted) {
      if (this.#nodes.get(name)?.stop.signal.aborted === false) continue;
      const former = this.#nodes.get(name)?.ended;
      const node: RunningNode = { scope: undefined, stop: new AbortController(), ended: Promise.resolve() };
      node.ended = this.#runNode(name, node, former);
      this.#nodes.set(name, node);
    }
  }

  async #runNode(name: string, node: RunningNode, former: Promise<void> | undefined): Promise<void> {
    await former;
    const signal = AbortSignal.any([this.#signal, node.stop.signal]);
    const identity = this.#identityOf(name);
    await identity.ready(signal);
    while (!signal.aborted) {
      node.scope = this.#nodeScope(name, identity.client);
      try {
        await node.scope.run(signal);
      } catch (error) {
        this.#logger.error({ node: name, err: error }, `the virtual node is started anew: ${describeError(error)}`);
        await pause(RESTART_MS, signal);
      }
    }
    if (this.#nodes.get(name) === node) this.#nodes.delete(name);
  }

  #identityOf(nodeName: string): NodeIdentity {
    const known = this.#identities.get(nodeName)?.identity;
    if (known !== undefined) return known;
    const { host, hostAccess, connectHost, nodeClients, nodeIdentityMetrics, config } = this.#services;
    const { name } = this.#member.metadata;
    const identity = new NodeIdentity({
      owner: { name: nodeName, member: name, providerID: providerIdOf(name, nodeName) },
      mode: config.hostIdentity,
      manager: host,
      access: hostAccess,
      connect: connectHost,
      metrics: nodeIdentityMetrics,
      logger: this.#logger,
    });
    this.#identities.set(nodeName, { identity, ended: identity.run(this.#signal) });
    nodeClients.set(nodeName, identity.client);
    return identity;
  }

  async #closeIdentities(): Promise<void> {
    for (const [nodeName, { identity, ended }] of this.#identities) {
      await ended;
      const { nodeClients } = this.#services;
      if (nodeClients.get(nodeName) === identity.client) nodeClients.delete(nodeName);
      await identity.close();
    }
  }

  #nodeScope(nodeName: string, host: KubeClient): VirtualNodeScope {
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
      pool: () => virtualNodesOf(this.#member).find(({ name }) => name === nodeName)?.nodeSelector,
      cluster: () => this.#cluster,
      frozen: this.#frozen,
      breakerOpen: this.#breakerWasOpen,
      keptChanged: () => this.#keptChanged(),
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
    while (![...this.#nodes.values()].every(({ scope }) => scope?.synced === true)) {
      await pause(SYNC_POLL_MS, this.#signal);
      if (this.#signal.aborted) return;
    }
    this.#complete = true;
    // Copies without a user are garbage only now.
    this.#dependents.setComplete();
    await this.#connection.pods.whenSynced(this.#signal).catch(() => undefined);
    if (!this.#signal.aborted) await this.#memberEvents.run(this.#signal);
  }
}
