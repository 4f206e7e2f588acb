import { MEMBER_LABEL, NODE_LABEL } from '../../src/api/marks.ts';
import type { Node, Pod } from '../../src/kube/core-v1.ts';
import { controllerOf } from '../../src/kube/owner-references.ts';
import { nodeIsChosenBy } from '../../src/kube/node-selector.ts';
import { firstUntolerated } from '../../src/kube/taints.ts';
import { GPU, HERE, RULE, SHRINKS, SHRUNK_CPU, standsFor } from './crowded.ts';
import { asPod, hostUidOf, isFinal } from './pod-shapes.ts';
import type { SimCluster, SimObject } from './sim-cluster.ts';
import { pathOf, WORKLOADS } from './workload-controllers.ts';
import type { World } from './world.ts';

/** What a pod takes of a node, counted here by itself: whole CPUs and GPUs. */
export interface Need {
  readonly cpu: number;
  readonly gpu: number;
}

export function needOf(object: SimObject): Need {
  const { containers, initContainers = [] } = asPod(object).spec;
  const of = (resource: string): number => {
    const amounts = (list: Pod['spec']['containers']): number[] =>
      list.map(({ resources }) => Number(resources?.requests?.[resource] ?? 0));
    const together = amounts(containers).reduce((sum, one) => sum + one, 0);
    return Math.max(together, ...amounts(initContainers));
  };
  return { cpu: of('cpu'), gpu: of(GPU) };
}

/** What the copy of a host pod will take. */
function needInMember(pod: SimObject): Need {
  if (pod.metadata.labels?.[SHRINKS] === undefined) return needOf(pod);
  const { spec } = asPod(pod);
  const { gpu } = needOf(pod);
  const atStart = (spec.initContainers ?? []).map(({ resources }) => Number(resources?.requests?.['cpu'] ?? 0));
  return { cpu: Math.max(SHRUNK_CPU, ...atStart), gpu };
}

/** What is free on a node of a cluster. `without`: UIDs of pods there that are not counted. */
export function freeOn(cluster: SimCluster, node: SimObject, without?: ReadonlySet<string>): Need {
  const { allocatable = {} } = (node as unknown as Node).status ?? {};
  let [cpu, gpu] = [Number(allocatable['cpu'] ?? 0), Number(allocatable[GPU] ?? 0)];
  for (const other of cluster.list('/api/v1/pods')) {
    if (asPod(other).spec.nodeName !== node.metadata.name || isFinal(other)) continue;
    if (without?.has(other.metadata.uid) === true) continue;
    const need = needOf(other);
    cpu -= need.cpu;
    gpu -= need.gpu;
  }
  return { cpu, gpu };
}

export function holds(free: Need, need: Need): boolean {
  // What asks for nothing fits beside whatever is there already.
  return (need.cpu === 0 || need.cpu <= free.cpu) && (need.gpu === 0 || need.gpu <= free.gpu);
}

export function suits({ spec }: Pod, node: SimObject): boolean {
  const { metadata, spec: own } = node as unknown as Node;
  return (
    nodeIsChosenBy(spec, { metadata }) && firstUntolerated(spec.tolerations ?? [], own?.taints ?? []) === undefined
  );
}

/** Where the scheduler of a member puts a pod: of the nodes with room the one that has the most left. */
export function nodeInMember(cluster: SimCluster, object: SimObject): string | undefined {
  const need = needOf(object);
  const fitting = cluster
    .list('/api/v1/nodes')
    .filter((node) => suits(asPod(object), node))
    .map((node) => ({ name: node.metadata.name, free: freeOn(cluster, node) }))
    .filter(({ free }) => holds(free, need));
  return fitting.toSorted((a, b) => b.free.cpu - a.free.cpu || (a.name < b.name ? -1 : 1))[0]?.name;
}

/**
 * Whether a pod of the host truly fits behind a virtual node: on one of the member's nodes, and what the host counts of it into all that
 * is free there. `gone`: UIDs of host pods whose copies are not counted.
 */
export function fitsBehind(world: World, pod: SimObject, virtualNode: string, gone?: ReadonlySet<string>): boolean {
  const cluster = world.members.get(memberOf(world, virtualNode) ?? '');
  if (cluster === undefined) return false;
  const without = new Set<string>();
  if (gone !== undefined) {
    for (const copy of cluster.list('/api/v1/pods'))
      if (gone.has(hostUidOf(copy) ?? '')) without.add(copy.metadata.uid);
  }
  const need = needInMember(pod);
  const free = nodesBehind(cluster, pod, virtualNode).map((node) => freeOn(cluster, node, without));
  const sum = free.reduce((all, one) => ({ cpu: all.cpu + one.cpu, gpu: all.gpu + one.gpu }), { cpu: 0, gpu: 0 });
  return holds(sum, needOf(pod)) && free.some((one) => holds(one, need));
}

/** Those of a member's nodes behind the virtual node that the pod tolerates. */
function nodesBehind(cluster: SimCluster, pod: SimObject, virtualNode: string): SimObject[] {
  const { tolerations = [] } = asPod(pod).spec;
  return [...cluster.list('/api/v1/nodes')].filter((node) => {
    const { taints = [] } = (node as unknown as Node).spec ?? {};
    return standsFor(virtualNode, node) && firstUntolerated(tolerations, taints) === undefined;
  });
}

/** How many such pods fit into a member, whatever its virtual nodes are. */
export function slotsIn(world: World, pod: SimObject, member: string): number {
  const cluster = world.members.get(member);
  if (cluster === undefined) return 0;
  const { cpu } = needInMember(pod);
  const nodes = cluster.list('/api/v1/nodes').filter((node) => suits(asPod(pod), node));
  return nodes.reduce((sum, node) => sum + Math.floor(Math.max(0, freeOn(cluster, node).cpu) / cpu), 0);
}

export function memberOf(world: World, nodeName: string): string | undefined {
  return world.host.get(`/api/v1/nodes/${nodeName}`)?.metadata.labels?.[MEMBER_LABEL];
}

/** All pods of a member that came from the host run where they are to be, and nothing is on its way there or out of it. */
export function isSettled(world: World, member: string): boolean {
  const cluster = world.members.get(member);
  if (cluster === undefined) return false;
  const copies = new Map<string, SimObject>();
  for (const pod of cluster.list('/api/v1/pods')) {
    const uid = hostUidOf(pod);
    if (pod.metadata.deletionTimestamp !== undefined || asPod(pod).spec.nodeName === undefined) return false;
    if (uid !== undefined) copies.set(uid, pod);
  }
  for (const pod of world.host.list('/api/v1/pods')) {
    const { nodeName } = asPod(pod).spec;
    if (nodeName === undefined || memberOf(world, nodeName) !== member) continue;
    const copy = copies.get(pod.metadata.uid);
    const isThere = copy !== undefined && copy.metadata.labels?.[NODE_LABEL] === nodeName;
    if (!isThere || isFinal(copy) !== isFinal(pod) || pod.metadata.deletionTimestamp !== undefined) return false;
    copies.delete(pod.metadata.uid);
  }
  return copies.size === 0;
}

/** By its own label, or by that of the ReplicaSet that made it. */
export function ruleOf(world: World, pod: SimObject): string | undefined {
  return pod.metadata.labels?.[RULE] ?? makerOf(world, pod)?.metadata.labels?.[RULE];
}

/** What says its rule is there still: nobody knows how soon others hear that it was deleted. */
export function isRuled(world: World, pod: SimObject): boolean {
  return controllerOf(asPod(pod)) === undefined || makerOf(world, pod) !== undefined;
}

/** The ReplicaSet that made it. */
function makerOf({ host }: World, pod: SimObject): SimObject | undefined {
  const owner = controllerOf(asPod(pod));
  if (owner?.kind !== 'ReplicaSet') return undefined;
  const metadata = { ...pod.metadata, name: owner.name };
  return host.get(pathOf({ ...pod, metadata }, WORKLOADS.ReplicaSet));
}

/** It asks for room that no node has of those where its rule has it. */
export function lacksRoom(world: World, pod: SimObject): boolean {
  const need = needOf(pod);
  if (need.cpu === 0 && need.gpu === 0) return false;
  const { host } = world;
  const isHere = ruleOf(world, pod) === HERE;
  return !host.list('/api/v1/nodes').some((node) => {
    const { name } = node.metadata;
    if ((memberOf(world, name) === undefined) !== isHere) return false;
    if (isHere) return holds(freeOn(host, node), need);
    return fitsBehind(world, pod, name);
  });
}
