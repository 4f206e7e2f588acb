import { GANG_LABEL, MEMBER_LABEL } from '../../api/marks.ts';
import { MEMBER_CLUSTERS, parseMemberCluster } from '../../api/member-cluster.ts';
import { DESCHEDULER_LEASE, movesStopped } from '../../api/moves-stopped.ts';
import { CLUSTER_PLACEMENT_POLICIES, PLACEMENT_POLICIES } from '../../api/placement-policy.ts';
import { WORKLOAD_PLACEMENTS, type WorkloadPlacement } from '../../api/workload-placement.ts';
import type { Event, Namespace, Node, Pod } from '../../kube/core-v1.ts';
import type { Lease } from '../../kube/lease.ts';
import type { KubeObject } from '../../kube/object.ts';
import { EVENTS, LEASES, NAMESPACES, NODES, PODS } from '../../kube/resource.ts';
import { placementOf, placementRef } from '../../placement/own-placement.ts';
import { workloadOf, type OwnerChain } from '../../placement/owner-chain.ts';
import { CliError, isNotThere } from '../cli-error.ts';
import { compiledPolicies } from '../compiled-policies.ts';
import { EXIT } from '../exit-code.ts';
import { ownersOf } from '../owners.ts';
import { isHeld, memberLease, SCHEDULER_LEASE } from '../overview.ts';
import { MissingRight, type Viewer } from '../viewer.ts';
import { heldDeletions } from './held-deletions.ts';
import { PODS_WITH_FIELDS } from './named-node.ts';
import type { PodFacts } from './pod-facts.ts';
import { memberOf } from './scheduler-step.ts';

/** All that the viewer may know of a pod and what decides about it. `missing`: rights that the viewer lacks, each once. Throws CliError. */
export async function readPodFacts(
  host: Viewer,
  { namespace, name }: { namespace: string; name: string },
  systemNamespace: string,
  now: number,
): Promise<{ facts: PodFacts; missing: string[] }> {
  const pod = await host
    .get<Pod>(PODS_WITH_FIELDS, { namespace, name })
    .catch(async (error: unknown) => await withHeldDeletions(host, error));
  const about = `involvedObject.kind=Pod,involvedObject.name=${name},involvedObject.uid=${pod.metadata.uid ?? ''}`;
  const gang = pod.metadata.labels?.[GANG_LABEL];
  const [owners, events, labels, members, nodes, own, clusterWide, lease, kin] = await Promise.all([
    ownersOf(host, pod),
    host.tryList<Event>(EVENTS, { namespace, fieldSelector: about }),
    host.tryGet<Namespace>(NAMESPACES, { name: namespace }),
    host.tryList<KubeObject>(MEMBER_CLUSTERS),
    host.tryList<Node>(NODES, { labelSelector: MEMBER_LABEL }),
    host.tryList<KubeObject>(PLACEMENT_POLICIES, { namespace }),
    host.tryList<KubeObject>(CLUSTER_PLACEMENT_POLICIES),
    host.tryGet<Lease>(LEASES, { namespace: systemNamespace, name: SCHEDULER_LEASE }),
    gang === undefined ? undefined : host.tryList<Pod>(PODS, { namespace, labelSelector: `${GANG_LABEL}=${gang}` }),
  ]);
  const knownMembers = known(members)?.flatMap((raw) => {
    const parsed = parseMemberCluster(raw);
    return 'member' in parsed ? [parsed.member] : [];
  });
  const member = memberOf({ nodes: known(nodes), members: knownMembers }, pod.spec.nodeName ?? '');
  const [placement, served, moves] = await Promise.all([
    readPlacement(host, owners.chain),
    member === undefined
      ? undefined
      : host.tryGet<Lease>(LEASES, { namespace: systemNamespace, name: memberLease(member) }),
    member === undefined
      ? undefined
      : host.tryGet<Lease>(LEASES, { namespace: systemNamespace, name: DESCHEDULER_LEASE }),
  ]);
  const answers = [
    owners.missing,
    events,
    labels,
    members,
    nodes,
    own,
    clusterWide,
    lease,
    kin,
    placement,
    served,
    moves,
  ];
  const missing = answers.flatMap((one) => (one instanceof MissingRight ? [one.right] : []));
  const facts: PodFacts = {
    pod,
    chain: owners.chain,
    now,
    events: known(events),
    namespaceLabels:
      labels instanceof MissingRight || labels === undefined ? undefined : (labels.metadata.labels ?? {}),
    members: knownMembers,
    nodes: known(nodes),
    policies:
      own instanceof MissingRight || clusterWide instanceof MissingRight
        ? undefined
        : compiledPolicies([...own, ...clusterWide]),
    placement: placement instanceof MissingRight ? undefined : placement,
    schedulerAnswers: lease instanceof MissingRight ? undefined : lease !== undefined && isHeld(lease, now),
    memberServed:
      member === undefined || served instanceof MissingRight ? undefined : served !== undefined && isHeld(served, now),
    movesStopped: moves === undefined || moves instanceof MissingRight ? undefined : movesStopped(moves),
    gang: kin === undefined ? undefined : known(kin),
  };
  return { facts, missing: [...new Set(missing)] };
}

/** A pod that is not here may run on in a member that keeps what vanished here. Throws always. */
async function withHeldDeletions(host: Viewer, error: unknown): Promise<never> {
  if (!isNotThere(error)) throw error;
  const members = await host.tryList<KubeObject>(MEMBER_CLUSTERS).catch(() => []);
  const held = members instanceof MissingRight ? undefined : heldDeletions(members);
  if (held === undefined) throw error;
  throw new CliError(error.message, { ...held, exitCode: EXIT.notFound, cause: error });
}

function known<T>(answer: T | MissingRight): T | undefined {
  return answer instanceof MissingRight ? undefined : answer;
}

/** What the scheduler component wrote about the workload of the pod; null: nothing. */
async function readPlacement(host: Viewer, chain: OwnerChain): Promise<WorkloadPlacement | null | MissingRight> {
  const { object } = workloadOf(chain);
  const raw = await host.tryGet<KubeObject>(WORKLOAD_PLACEMENTS, placementRef(object));
  return raw instanceof MissingRight ? raw : (placementOf(raw, object) ?? null);
}
