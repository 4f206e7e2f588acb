import { type Cluster, whySilent } from '../api/cluster.ts';
import { LOCAL } from '../api/cluster-tiers.ts';
import { FENCED } from '../api/fencing.ts';
import { DRAIN_TAINT, OUT_OF_SERVICE_TAINT } from '../api/marks.ts';
import { clusterTaintsOf, isLeaving, type MemberCluster, specOf } from '../api/member-cluster.ts';
import { conditionOf } from '../kube/conditions.ts';
import { HARD_EFFECTS, type Taint } from '../kube/taints.ts';
import { isLost, reachabilityOf } from '../placement/lost-members.ts';
import type { PlacedMember } from '../placement/placed-pods.ts';
import type { HostNodes } from './host-nodes.ts';

/** A member as the descheduler sees it; undefined: the cluster is none. */
export function placedMember({ name, unavailable }: Cluster, nodes: HostNodes): PlacedMember | undefined {
  if (name === LOCAL) return undefined;
  const member = nodes.member(name);
  if (member === undefined) return unreadable(name, unavailable);
  const every = nodes.everyVirtualNodeOf(name);
  const taintsOn = new Map(every.map((node) => [node, nodes.nodes.get(node)?.spec?.taints ?? []]));
  const drains = [...taintsOn].map(([node, taints]) => [node, taints.filter(isDrain)] as const);
  const drained = new Map(drains.filter(([, taints]) => taints.length > 0));
  const outOfService = outOfServiceOf(member, taintsOn);
  const isContacted = conditionOf(member, 'Ready') !== undefined;
  const heard = { unavailable, silent: whySilent(member), isContacted, ...reachabilityOf(member) };
  return { ...heard, isLeaving: isLeaving(member), ...taintsOf(member, every), outOfService, drained };
}

/** It is there, and nothing is known of it: pods there are not moved, and none is taken for gone. */
function unreadable(name: string, unavailable: string | undefined): PlacedMember {
  return {
    name,
    unavailable,
    silent: unavailable ?? 'its MemberCluster cannot be read',
    isContacted: true,
    isLeaving: false,
    reachable: undefined,
    mayBeLost: false,
    answers: false,
    since: 0,
    nodeTaints: new Map(),
    clusterTaints: [],
    outOfService: new Map(),
    drained: new Map(),
  };
}

/** One that does not keep new pods away empties nothing: they would come back. */
function isDrain({ key, effect }: Taint): boolean {
  return key === DRAIN_TAINT && HARD_EFFECTS.includes(effect);
}

/**
 * Taints by which an administrator says that nothing runs there, where whoever acts for the member has let that count (`status.fencing`) and
 * it is lost. For how long it has to be lost, the descheduler asks.
 */
function outOfServiceOf(
  member: MemberCluster,
  taintsOn: ReadonlyMap<string, readonly Taint[]>,
): PlacedMember['outOfService'] {
  const found = new Map<string, readonly Taint[]>();
  if (!isLost(reachabilityOf(member))) return found;
  for (const [node, state] of Object.entries(member.status?.fencing?.nodes ?? {})) {
    const taints = (taintsOn.get(node) ?? []).filter(({ key }) => key === OUT_OF_SERVICE_TAINT);
    if (state === FENCED && taints.length > 0) found.set(node, taints);
  }
  return found;
}

function taintsOf(
  member: MemberCluster,
  virtualNodes: readonly string[],
): Pick<PlacedMember, 'nodeTaints' | 'clusterTaints'> {
  const isEvicting = ({ effect }: Taint): boolean => effect === 'NoExecute';
  const nodes = virtualNodes.map((name) => [name, specOf(member, name).taints.filter(isEvicting)] as const);
  return {
    nodeTaints: new Map(nodes.filter(([, taints]) => taints.length > 0)),
    clusterTaints: clusterTaintsOf(member).filter(isEvicting),
  };
}
