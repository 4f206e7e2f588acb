import { MEMBER_CLUSTERS } from '../../api/member-cluster.ts';
import { CLUSTER_PLACEMENT_POLICIES, PLACEMENT_POLICIES } from '../../api/placement-policy.ts';
import { WORKLOAD_PLACEMENTS } from '../../api/workload-placement.ts';
import { WORKLOAD_MIGRATIONS } from '../../api/workload-migration.ts';
import { WORKLOAD_REBALANCERS } from '../../api/workload-rebalancer.ts';
import type { Event, Node, Pod } from '../../kube/core-v1.ts';
import { ApiError } from '../../kube/errors.ts';
import type { Lease } from '../../kube/lease.ts';
import type { KubeObject } from '../../kube/object.ts';
import { EVENTS, LEASES, NODES, PODS, type Resource } from '../../kube/resource.ts';
import { CliError } from '../cli-error.ts';
import { MissingRight, type Viewer } from '../viewer.ts';

/** What of the cluster the page shows. */
export interface Scope {
  /** Pods and policies of this one; '': of all namespaces. */
  namespace: string;
  /** Where Spillway itself lives. */
  systemNamespace: string;
}

/** All that the viewer could read; undefined: not allowed. */
export interface PageFacts {
  context: string;
  namespace: string;
  members: readonly KubeObject[] | undefined;
  /** Real and virtual ones. */
  nodes: readonly Node[] | undefined;
  pods: readonly Pod[] | undefined;
  placements: readonly KubeObject[] | undefined;
  rebalancers: readonly KubeObject[] | undefined;
  migrations: readonly KubeObject[] | undefined;
  policies: readonly { resource: string; object: KubeObject }[] | undefined;
  leases: readonly Lease[] | undefined;
  /** Events of MemberClusters. */
  events: readonly Event[] | undefined;
  /** Rights that are missing, each once. */
  missing: readonly string[];
}

/** Kubernetes puts Events of objects without a namespace there. */
const EVENTS_OF_CLUSTER = 'default';

/** One look at everything. Throws CliError. */
export async function readPageFacts(host: Viewer, { namespace, systemNamespace }: Scope): Promise<PageFacts> {
  const missing = new Set<string>();
  const list = async <T extends KubeObject>(
    resource: Resource,
    options: { namespace?: string; fieldSelector?: string } = {},
  ): Promise<T[] | undefined> => {
    const answer = await host.tryList<T>(resource, options);
    if (!(answer instanceof MissingRight)) return answer;
    missing.add(answer.right);
    return undefined;
  };
  const there = namespace === '' ? {} : { namespace };
  const [members, nodes, pods, placements, rebalancers, migrations, own, clusterWide, leases, events] =
    await Promise.all([
      list<KubeObject>(MEMBER_CLUSTERS),
      list<Node>(NODES),
      list<Pod>(PODS, there),
      list<KubeObject>(WORKLOAD_PLACEMENTS, there),
      list<KubeObject>(WORKLOAD_REBALANCERS).catch(noneOfThem),
      list<KubeObject>(WORKLOAD_MIGRATIONS, there).catch(noneOfThem),
      list<KubeObject>(PLACEMENT_POLICIES, there),
      list<KubeObject>(CLUSTER_PLACEMENT_POLICIES),
      list<Lease>(LEASES, { namespace: systemNamespace }),
      list<Event>(EVENTS, { namespace: EVENTS_OF_CLUSTER, fieldSelector: 'involvedObject.kind=MemberCluster' }),
    ]);
  const policies = [
    ...(own ?? []).map((object) => ({ resource: PLACEMENT_POLICIES.plural, object })),
    ...(clusterWide ?? []).map((object) => ({ resource: CLUSTER_PLACEMENT_POLICIES.plural, object })),
  ];
  return {
    context: host.context,
    namespace,
    members,
    nodes,
    pods,
    placements,
    rebalancers,
    migrations,
    policies: own === undefined && clusterWide === undefined ? undefined : policies,
    leases,
    events,
    missing: [...missing],
  };
}

/** An older installation has not all kinds, and is shown all the same. */
function noneOfThem(error: unknown): [] {
  if (error instanceof CliError && error.cause instanceof ApiError && error.cause.code === 404) return [];
  throw error;
}
