import type { Logger } from 'pino';
import { type MemberCluster, virtualNodesOf, wantedNodesOf } from '../api/member-cluster.ts';
import type { Pod } from '../kube/core-v1.ts';
import { elasticGroupsOf } from '../capacity/elastic.ts';
import { MemberCapacity } from '../capacity/member-capacity.ts';
import { NodeImages } from '../capacity/node-images.ts';
import { poolsOf } from '../capacity/pool.ts';
import { feedCapacity } from './capacity-feed.ts';
import { ObservedClaims } from '../dependents/observed-claims.ts';
import type { HostServices } from './host-services.ts';
import { Informer } from '../kube/informer.ts';
import { PODS } from '../kube/resource.ts';
import { childSignal, type ChildSignal } from '../kube/child-signal.ts';
import { isAnotherCluster } from '../members/cluster-identity.ts';
import type { MemberConnection } from '../members/connection.ts';
import type { ObservedScope } from '../members/member-scope.ts';
import { MemberNamespaces } from '../members/namespaces.ts';
import { type Cluster, clusterOf, renewedCluster } from '../api/cluster.ts';
import { serviceAccountModes } from './pod-service-accounts.ts';
import type { VirtualNodeFit } from './virtual-node-fit.ts';
import { VirtualNodeView } from './virtual-node-view.ts';

interface ObservedNode {
  room: VirtualNodeFit;
  stop: ChildSignal;
  ended: Promise<void>;
}

/**
 * What schedulers that ask this replica want to know of a member which another one acts for: the room behind its virtual
 * nodes. The connection can only read, and nothing is written to the host either.
 */
export function observeMember(
  services: HostServices,
  member: MemberCluster,
  connection: MemberConnection,
  signal: AbortSignal,
): ObservedScope {
  const observed = new ObservedMember(services, member, connection, signal);
  return { changed: (edited) => observed.changed(edited), done: observed.run() };
}

class ObservedMember {
  readonly #services: HostServices;
  readonly #connection: MemberConnection;
  readonly #signal: AbortSignal;
  readonly #logger: Logger;
  readonly #capacity: MemberCapacity;
  readonly #images = new NodeImages();
  readonly #namespaces: MemberNamespaces;
  readonly #claims: ObservedClaims;
  readonly #nodes = new Map<string, ObservedNode>();
  readonly #ending = new Set<Promise<void>>();
  #member: MemberCluster;
  /** The member as override policies know it; another object only when something of that changed. */
  #cluster: Cluster;

  constructor(services: HostServices, member: MemberCluster, connection: MemberConnection, signal: AbortSignal) {
    const { hostId, hostClaims, informerMetrics, logger } = services;
    this.#services = services;
    this.#member = member;
    this.#cluster = clusterOf(member);
    this.#connection = connection;
    this.#signal = signal;
    this.#logger = logger.child({ member: member.metadata.name, observed: true });
    this.#capacity = new MemberCapacity({ hostId, pools: poolsOf(member), elastic: elasticGroupsOf(member) });
    this.#namespaces = new MemberNamespaces({ member: connection, hostId, spec: () => this.#member.spec.namespaces });
    this.#claims = new ObservedClaims({
      client: connection.client,
      hostId,
      namespaces: connection.namespaces,
      isUsable: (namespace) => this.#namespaces.isUsable(namespace),
      hostClaims,
      member: () => this.#member,
      identity: () => connection.identity(),
      logger: this.#logger,
      metrics: informerMetrics,
    });
  }

  /** Settles when everything has ended after the signal. */
  async run(): Promise<void> {
    const { capacityMetrics } = this.#services;
    const off = [
      ...feedCapacity(this.#connection.caches, this.#capacity, this.#images),
      capacityMetrics.observe(this.#connection.name, () => [...this.#nodes.values()].every(({ room }) => room.ready)),
    ];
    this.#adjustNodes();
    await this.#claims.run(this.#signal);
    await Promise.all([...this.#ending, ...[...this.#nodes.values()].map(({ ended }) => ended)]);
    for (const unsubscribe of off) unsubscribe();
  }

  changed(member: MemberCluster): void {
    this.#member = member;
    this.#cluster = renewedCluster(this.#cluster, member);
    this.#capacity.setSpec(poolsOf(member), elasticGroupsOf(member));
    this.#adjustNodes();
  }

  /** Begins to observe virtual nodes that the spec wants and ends that for those it does not want any more. */
  #adjustNodes(): void {
    const wanted = new Set(wantedNodesOf(this.#member).map(({ name }) => name));
    for (const [name, { stop, ended }] of this.#nodes) {
      if (wanted.has(name)) continue;
      stop.abort();
      this.#nodes.delete(name);
      this.#track(ended);
    }
    for (const name of wanted) {
      if (this.#nodes.has(name)) continue;
      const stop = childSignal(this.#signal);
      const { room, ended } = this.#observeNode(name, stop.signal);
      this.#nodes.set(name, { room, stop, ended: ended.finally(() => stop.release()) });
    }
  }

  /** What is not wanted any more may take a moment to end. */
  #track(work: Promise<void>): void {
    const tracked = work.finally(() => this.#ending.delete(tracked));
    this.#ending.add(tracked);
  }

  /** Why what is known of the member does not count. */
  #problem(): string | undefined {
    const connection = this.#connection;
    if (isAnotherCluster(connection)) return 'another cluster answers in its place';
    // Whoever acts for it may see it all the same, and what was seen last from here may be hours old.
    return connection.reachable() ? undefined : 'it does not answer';
  }

  /** Pods that are bound to the node need their room there, whether the member has been shown them or not. */
  #observeNode(nodeName: string, signal: AbortSignal): { room: VirtualNodeFit; ended: Promise<void> } {
    const { host, namespaceModes, overridePolicies, informerMetrics, rooms } = this.#services;
    const hostPods = new Informer<Pod>({
      client: host,
      resource: PODS,
      fieldSelector: `spec.nodeName=${nodeName}`,
      transform: hostPodProjection,
      logger: this.#logger,
      metrics: informerMetrics,
    });
    const connection = this.#connection;
    const member = (): MemberCluster => this.#member;
    const { room } = new VirtualNodeView({
      services: this.#services,
      connection,
      namespaces: this.#namespaces,
      capacity: this.#capacity,
      images: this.#images,
      member,
      nodeName,
      pool: () => virtualNodesOf(this.#member).find(({ name }) => name === nodeName)?.nodeSelector,
      cluster: () => this.#cluster,
      ready: () => this.#problem() === undefined && connection.synced() && hostPods.hasSynced,
      problem: () => this.#problem(),
      modeOf: serviceAccountModes({ modes: namespaceModes, member }),
      claims: this.#claims.places,
      // Pods that are only asked about are not looked into for that by whoever acts for the member either.
      environmentKeys: () => [],
    });
    const noteAnew = (): void => {
      for (const pod of hostPods.values()) room.noteBound(pod);
    };
    const off = [
      rooms.add(room),
      hostPods.on(room.hostPodHandler),
      // What a pod asks for in the member may be known only now, or be another.
      overridePolicies.on(noteAnew),
      namespaceModes.on(noteAnew),
      () => room.end(),
    ];
    const ended = hostPods.run(signal).finally(() => {
      for (const end of off) end();
    });
    return { room, ended };
  }
}

/** Of the status only what tells whether the pod still needs room that the member does not show. */
function hostPodProjection(raw: object): Pod {
  const pod = raw as Pod;
  const { phase, conditions } = pod.status ?? {};
  const status = { ...(phase === undefined ? {} : { phase }), ...(conditions === undefined ? {} : { conditions }) };
  return { ...pod, status };
}
