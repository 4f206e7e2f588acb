import { HOST_LABEL, HOST_NAMESPACE_ANNOTATION } from '../api/marks.ts';
import type { MemberCluster } from '../api/member-cluster.ts';
import type { MemberBudgets } from '../budgets/member-budgets.ts';
import { elasticGroupsOf } from '../capacity/elastic.ts';
import { MemberCapacity } from '../capacity/member-capacity.ts';
import { NodeImages } from '../capacity/node-images.ts';
import { poolsOf } from '../capacity/pool.ts';
import type { Pod } from '../kube/core-v1.ts';
import { pause } from '../kube/timers.ts';
import type { MemberLeaving } from '../members/leaving/member-leaving.ts';
import { MemberEvents } from '../pods/events/member-events.ts';
import type { MemberConnection } from '../members/connection.ts';
import type { MemberScope } from '../members/member-scope.ts';
import type { MemberFencing } from '../members/member-fencing.ts';
import { MemberNamespaces } from '../members/namespaces.ts';
import { PodSecurity } from '../members/pod-security.ts';
import type { MemberServices } from '../services/member-services.ts';
import { ActingMember, type MemberStanding } from './acting-member.ts';
import { memberBudgets } from './budgets.ts';
import { feedCapacity } from './capacity-feed.ts';
import { HeldDeletions } from './held-deletions.ts';
import type { HostServices } from './host-services.ts';
import { memberLeaving } from './leaving.ts';
import { memberFencing } from './member-fencing.ts';
import { MemberDependents } from './member-dependents.ts';
import { MemberReport } from './member-report.ts';
import { NodeIdentities } from './node-identities.ts';
import { NodeRetirement } from './node-retirement.ts';
import type { MemberExchange } from '../multi-cluster/member-exchange.ts';
import { memberExchange } from './multi-cluster.ts';
import { memberServices } from './services.ts';
import { tokenRenewal } from './token-renewal.ts';
import { VirtualNodeScope } from './virtual-node.ts';
import { VirtualNodes } from './virtual-nodes.ts';

/** Poll interval while caches sync (ms). */
const SYNC_POLL_MS = 100;

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
  const work = new MemberWork(new ActingMember(services, member, connection, standing), signal);
  const { report, held } = work;
  return {
    changed: (edited) => work.changed(edited),
    done: work.run(),
    podCounts: () => (work.complete ? report.podCounts() : undefined),
    takenNames: () => report.takenNames(),
    problem: () => report.problem(),
    allocatable: () => report.allocatable(),
    room: () => report.room(),
    roomsKnown: () => report.roomsKnown(),
    keptDeletions: () => held.kept(),
    confirmDeletions: (token) => held.confirm(token),
    retiring: () => work.retirement.retiring(),
    budgets: () => work.budgets.finding(),
    services: () => work.services.finding(),
    podSecurity: () => work.podSecurity.finding(),
    exchange: () => work.exchange.finding(),
    leaving: () => work.leaving.state,
    fencing: () => work.fencing.finding(),
  };
}

class MemberWork {
  readonly budgets: MemberBudgets;
  readonly services: MemberServices;
  readonly podSecurity: PodSecurity;
  readonly exchange: MemberExchange;
  readonly report: MemberReport;
  readonly held: HeldDeletions;
  readonly retirement: NodeRetirement;
  readonly leaving: MemberLeaving;
  readonly fencing: MemberFencing;
  readonly #acting: ActingMember;
  readonly #signal: AbortSignal;
  readonly #nodes: VirtualNodes;
  readonly #identities: NodeIdentities;
  readonly #capacity: MemberCapacity;
  readonly #images = new NodeImages();
  readonly #namespaces: MemberNamespaces;
  readonly #dependents: MemberDependents;
  readonly #memberEvents: MemberEvents;
  #complete = false;
  #wasReachable = false;

  constructor(acting: ActingMember, signal: AbortSignal) {
    const { services, connection, member } = acting;
    this.#acting = acting;
    this.#signal = signal;
    this.#identities = new NodeIdentities(acting, signal);
    this.held = new HeldDeletions(acting, () => this.#nodes);
    this.fencing = memberFencing(acting, () => this.#nodes);
    const nodes = new VirtualNodes({
      acting,
      identities: this.#identities,
      breakerOpen: this.held.breakerOpen,
      makeScope: (nodeName, own, breakerOpen) =>
        new VirtualNodeScope({
          acting,
          shared: {
            namespaces: this.#namespaces,
            dependents: this.#dependents,
            capacity: this.#capacity,
            images: this.#images,
            memberServices: this.services,
          },
          nodeName,
          own,
          pool: () => nodes.pool(nodeName),
          fencing: this.fencing,
          breakerOpen,
          keptChanged: this.held.changed,
          hostPodChanged: (pod, before) => {
            this.budgets.hostPodChanged(pod, before);
            this.services.hostPodChanged(pod, before);
          },
        }),
      signal,
    });
    this.#nodes = nodes;
    this.#capacity = new MemberCapacity({
      hostId: services.hostId,
      pools: poolsOf(member()),
      elastic: elasticGroupsOf(member()),
      onChange: () => {
        for (const scope of nodes.scopes()) scope.capacityChanged();
      },
    });
    this.#namespaces = new MemberNamespaces({
      member: connection,
      hostId: services.hostId,
      spec: () => member().spec.namespaces,
    });
    this.podSecurity = new PodSecurity({
      hostId: services.hostId,
      pods: connection.pods,
      namespaces: connection.namespaces,
      wanted: () => member().spec.namespaces.podSecurity,
    });
    this.#dependents = new MemberDependents({
      services,
      connection,
      namespaces: this.#namespaces,
      member,
      cluster: acting.cluster,
      mayWrite: acting.mayWrite,
      sharesCluster: acting.standing.sharesCluster,
      hostPod: (podKey) => nodes.hostPod(podKey),
      requeue: (podKey) => nodes.requeue(podKey),
      logger: acting.logger,
    });
    this.report = new MemberReport(acting, nodes, this.#identities, this.#capacity);
    this.retirement = this.#makeRetirement();
    this.budgets = memberBudgets(acting, nodes);
    this.services = memberServices(acting, nodes, this.#namespaces);
    this.exchange = memberExchange(acting, this.#namespaces);
    this.leaving = memberLeaving({
      acting,
      namespaces: this.#namespaces,
      dependents: this.#dependents,
      retirement: this.retirement,
      budgets: this.budgets,
      memberServices: this.services,
      exchange: this.exchange,
      scopes: () => nodes.scopes(),
    });
    this.#memberEvents = this.#makeEvents();
  }

  #makeRetirement(): NodeRetirement {
    const { services, connection, standing, member, wantsNode, mayWrite, givenUp, event, logger } = this.#acting;
    return new NodeRetirement({
      host: services.host,
      member: member().metadata.name,
      memberPods: connection.pods,
      isWanted: wantsNode,
      othersWant: standing.othersWant,
      refusalOf: (name) => this.#identities.get(name)?.standing.refusal,
      running: () => this.#nodes.all(),
      serve: (name, pool) => this.#nodes.serve(name, pool),
      drop: (name) => this.#nodes.drop(name),
      mayWrite,
      givenUp,
      event,
      logger,
    });
  }

  #makeEvents(): MemberEvents {
    const { services, connection, member, mayWrite, logger } = this.#acting;
    return new MemberEvents({
      host: services.host,
      hostId: services.hostId,
      member: connection,
      hostPod: (nodeName, key) => this.#nodes.get(nodeName)?.bound.get(key),
      hostClaim: (namespace, name, uid) => this.#dependents.toldClaim(namespace, name, uid),
      podEvents: () => member().spec.podEvents,
      mayWrite,
      metrics: services.memberEventMetrics,
      informerMetrics: services.informerMetrics,
      queueMetrics: services.queueMetrics,
      logger,
    });
  }

  /** The pod caches of all virtual nodes have synced once. */
  get complete(): boolean {
    return this.#complete;
  }

  /** Settles when everything has ended after the signal. */
  async run(): Promise<void> {
    const { services, connection } = this.#acting;
    const changed = (): void => {
      for (const scope of this.#nodes.scopes()) scope.changed();
    };
    const off = [
      ...feedCapacity(connection.caches, this.#capacity, this.#images),
      connection.onChange(() => {
        changed();
        this.fencing.touch();
        this.#noteOutage();
      }),
      services.hostIdentity.on(changed),
      services.overridePolicies.on(() => {
        this.#dependents.overridesChanged();
        this.#translationChanged();
      }),
      services.namespaceModes.on(() => this.#translationChanged()),
      services.capacityMetrics.watch(connection.name, this.#capacity),
      connection.pods.on({ deleted: (pod) => this.#copyGone(pod) }),
      this.podSecurity.follow(),
    ];
    this.#nodes.adjust();
    await Promise.all([
      this.#dependents.run(this.#signal),
      this.services.run(this.#signal),
      this.exchange.run(this.#signal),
      this.retirement.run(this.#signal),
      tokenRenewal(this.#acting).run(this.#signal),
      this.leaving.run(this.#signal),
      this.fencing.run(this.#signal),
      this.#nodes.ended(),
      this.#whenComplete(),
    ]);
    for (const unsubscribe of off) unsubscribe();
    await this.#identities.endAll();
  }

  changed(member: MemberCluster): void {
    const { podEvents } = this.#acting.member().spec;
    const overridesChanged = this.#acting.edit(member);
    if (podEvents !== member.spec.podEvents) this.#memberEvents.restart();
    if (overridesChanged) this.#dependents.overridesChanged();
    this.#capacity.setSpec(poolsOf(member), elasticGroupsOf(member));
    this.#nodes.adjust();
    this.retirement.specChanged();
    this.#dependents.changed();
    this.budgets.changed();
    this.services.changed();
    this.exchange.changed();
    for (const scope of this.#nodes.scopes()) scope.changed();
  }

  /** Once for each outage. */
  #noteOutage(): void {
    const reachable = this.#acting.connection.reachable();
    if (this.#wasReachable && !reachable && this.#acting.mayWrite()) this.#dependents.claims.recordOutage();
    this.#wasReachable = reachable;
  }

  #copyGone({ metadata: { labels, annotations } }: Pod): void {
    const namespace = annotations?.[HOST_NAMESPACE_ANNOTATION];
    if (namespace !== undefined && labels?.[HOST_LABEL] === this.#acting.services.hostId)
      this.services.copyGone(namespace);
  }

  #translationChanged(): void {
    for (const scope of this.#nodes.scopes()) scope.translationChanged();
  }

  /** What has to wait until every host pod of every virtual node is known, and every pod of the member. */
  async #whenComplete(): Promise<void> {
    await this.#when(() => this.retirement.nodesKnown && this.#nodes.synced);
    this.#complete = true;
    await this.#when(() => this.retirement.allKnown && this.#nodes.synced);
    if (this.#signal.aborted) return;
    // Only now is a copy that no pod uses garbage.
    this.#dependents.setComplete();
    this.services.setComplete();
    await Promise.all([this.#memberEvents.run(this.#signal), this.budgets.run(this.#signal)]);
  }

  async #when(isTrue: () => boolean): Promise<void> {
    while (!isTrue() && !this.#signal.aborted) await pause(SYNC_POLL_MS, this.#signal);
  }
}
