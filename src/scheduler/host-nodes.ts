import type { Logger } from 'pino';
import { LOCAL } from '../api/cluster-tiers.ts';
import {
  isNodeNameOf,
  MEMBER_CLUSTERS,
  type MemberCluster,
  parseMemberCluster,
  virtualNodesOf,
} from '../api/member-cluster.ts';
import { memberOfNode } from '../api/provider-id.ts';
import type { Node, Pod } from '../kube/core-v1.ts';
import type { KubeClient } from '../kube/client.ts';
import type { InformerMetrics } from '../kube/informer-metrics.ts';
import { Informer } from '../kube/informer.ts';
import { jsonEqual } from '../kube/json-equal.ts';
import type { KubeObject } from '../kube/object.ts';
import type { Taint, Toleration } from '../kube/taints.ts';
import { nodeIsChosenBy } from '../kube/node-selector.ts';
import { NODES } from '../kube/resource.ts';
import { whyTainted } from '../placement/candidates.ts';
import { clusterOf, localCluster } from '../api/cluster.ts';
import type { Cluster } from '../api/cluster.ts';
import { hostNodeProjection } from './projections.ts';

/** A MemberCluster as placement knows it. */
interface KnownMember extends KubeObject {
  readonly member: MemberCluster | undefined;
  readonly cluster: Cluster | undefined;
  readonly nodes: readonly string[];
  /** Taints that its spec gives its virtual nodes, by their names. */
  readonly taints: ReadonlyMap<string, readonly Taint[]>;
}

export interface HostNodesOptions {
  host: KubeClient;
  logger: Logger;
  metrics?: InformerMetrics | undefined;
}

/** Index of the members by the virtual nodes that they want. */
const NODE_NAME = 'node';
/** Index of the nodes by the member that they stand for. */
const MEMBER = 'member';
const REGION_LABEL = 'topology.kubernetes.io/region';
const ZONE_LABEL = 'topology.kubernetes.io/zone';

/** Which nodes of the host stand for which member, and what there is to choose from. */
export class HostNodes {
  readonly nodes: Informer<Node>;
  readonly members: Informer<KnownMember>;
  #clusters: readonly Cluster[] | undefined;
  /** Rises with every event of nodes and members. */
  version = 0;

  constructor({ host, logger, metrics }: HostNodesOptions) {
    const common = { client: host, logger, metrics };
    this.nodes = new Informer<Node>({
      ...common,
      resource: NODES,
      transform: hostNodeProjection,
      indexes: { [MEMBER]: memberIn },
    });
    this.members = new Informer<KnownMember>({
      ...common,
      resource: MEMBER_CLUSTERS,
      transform: readMember,
      indexes: { [NODE_NAME]: ({ nodes }) => nodes },
    });
    // Before anybody else, who may ask in the course of the same event.
    const seen = (): void => {
      this.version += 1;
    };
    const changed = (): void => {
      seen();
      this.#clusters = undefined;
    };
    this.members.on({ added: changed, updated: changed, deleted: changed });
    this.nodes.on({
      added: changed,
      updated: (node, old) => (jsonEqual(node.metadata.labels, old.metadata.labels) ? seen() : changed()),
      deleted: changed,
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([this.nodes.run(signal), this.members.run(signal)]);
  }

  get hasSynced(): boolean {
    return this.nodes.hasSynced && this.members.hasSynced;
  }

  /** Resolves when all nodes and members are known, or the signal ends the wait. */
  async whenSynced(signal: AbortSignal): Promise<void> {
    try {
      await Promise.all([this.nodes.whenSynced(signal), this.members.whenSynced(signal)]);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  get problem(): string | undefined {
    return this.nodes.problem ?? this.members.problem;
  }

  /**
   * The member that a node stands for; undefined for a node of the host itself. A Node says it from its first moment on; one
   * that is not there (yet) is taken for that of the MemberCluster that wants it.
   */
  memberOf(nodeName: string): string | undefined {
    const node = this.nodes.get(nodeName);
    if (node !== undefined) return memberOfNode(node);
    return this.members.byIndex(NODE_NAME, nodeName)[0]?.metadata.name;
  }

  /** The member, or `local`. */
  clusterOf(nodeName: string): string {
    return this.memberOf(nodeName) ?? LOCAL;
  }

  /** Some virtual node that is there. */
  anyVirtualNode(): string | undefined {
    for (const { metadata } of this.members.values()) {
      const found = this.virtualNodesOf(metadata.name).find((name) => this.nodes.get(name) !== undefined);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** All virtual nodes that a member wants, there or not yet. A name that a node of somebody else has is none of them. */
  virtualNodesOf(member: string): readonly string[] {
    const wanted = this.members.get(member)?.nodes ?? [];
    return wanted.filter((name) => this.memberOf(name) === member);
  }

  /**
   * The same with those that it does not want any more, as after its pools were renamed: they take no new pods, but those that are
   * there stay until they are moved or end.
   */
  everyVirtualNodeOf(member: string): readonly string[] {
    const wanted = this.virtualNodesOf(member);
    const there = this.nodes.byIndex(MEMBER, member).map(({ metadata }) => metadata.name);
    const others = there.filter((name) => !wanted.includes(name) && isNodeNameOf(member, name));
    return others.length === 0 ? wanted : [...wanted, ...others];
  }

  /** Whether the node selector and affinity of the pod leave any node of the host itself. */
  someRealNodeIsChosenBy({ spec }: Pod): boolean {
    for (const node of this.nodes.values()) {
      if (this.memberOf(node.metadata.name) === undefined && nodeIsChosenBy(spec, node)) return true;
    }
    return false;
  }

  member(name: string): MemberCluster | undefined {
    return this.members.get(name)?.member;
  }

  /** The taint of a member that rules with these tolerations do not tolerate, in words; undefined: there is none. */
  whyTainted(member: string, tolerations: readonly Toleration[]): string | undefined {
    const cluster = this.members.get(member)?.cluster;
    return cluster === undefined ? undefined : whyTainted(cluster, tolerations);
  }

  /** What the spec of a member says of one of its virtual nodes, each taint with the effect that it has there. */
  wantedTaints(member: string, nodeName: string): readonly Taint[] {
    return this.members.get(member)?.taints.get(nodeName) ?? [];
  }

  /** All members, and `local`. The same list until something changes. */
  clusters(): readonly Cluster[] {
    this.#clusters ??= [this.#local(), ...Array.from(this.members.values(), clusterOfKnown)];
    return this.#clusters;
  }

  /** The host's own place, as far as its real nodes agree on it. */
  #local(): Cluster {
    const real = [...this.nodes.values()].filter((node) => memberOfNode(node) === undefined);
    const valuesOf = (label: string): string[] => [
      ...new Set(real.map(({ metadata }) => metadata.labels?.[label]).filter((value) => value !== undefined)),
    ];
    const regions = valuesOf(REGION_LABEL);
    const [region] = regions;
    return localCluster({
      ...(region === undefined || regions.length > 1 ? {} : { region }),
      zones: valuesOf(ZONE_LABEL).toSorted(),
    });
  }
}

function memberIn(node: Node): string[] {
  const member = memberOfNode(node);
  return member === undefined ? [] : [member];
}

function readMember(raw: KubeObject): KnownMember {
  const parsed = parseMemberCluster(raw);
  const { name, uid, resourceVersion } = raw.metadata;
  const metadata = {
    name,
    ...(uid === undefined ? {} : { uid }),
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
  };
  if (!('member' in parsed)) return { metadata, member: undefined, cluster: undefined, nodes: [], taints: new Map() };
  const member = withoutFencedPods(parsed.member);
  const nodes = virtualNodesOf(member);
  return {
    metadata,
    member,
    cluster: clusterOf(member),
    nodes: nodes.map(({ name: node }) => node),
    taints: new Map(nodes.map(({ name: node, taints }) => [node, taints])),
  };
}

/** Nobody here asks for what was ended on virtual nodes that are out of service, which may be much. */
function withoutFencedPods(member: MemberCluster): MemberCluster {
  const { status } = member;
  if (status?.fencing?.pods === undefined) return member;
  const { pods: _pods, ...fencing } = status.fencing;
  return { ...member, status: { ...status, fencing } };
}

/** A member whose spec cannot be read is there, but takes no pods. */
function clusterOfKnown({ metadata, cluster }: KnownMember): Cluster {
  return cluster ?? { ...localCluster(), name: metadata.name, unavailable: 'its spec cannot be read' };
}
