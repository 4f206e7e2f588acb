import { HOST_LABEL, NODE_LABEL } from '../api/marks.ts';
import type { Node, Pod } from '../kube/core-v1.ts';
import { addTo, formatAmounts, parseAmounts, remainder } from '../kube/amounts.ts';
import type { Amounts } from '../kube/amounts.ts';
import { whyNotEligible, whyNotInPool } from './eligible-nodes.ts';
import { holdsResources, isUnschedulable, podRequests } from './pod-requests.ts';
import type { Pool } from './pool.ts';

/** What a virtual node shows: quantities by resource name; cpu, memory and pods are always there. */
export interface Offer {
  capacity: Record<string, string>;
  allocatable: Record<string, string>;
  nodes: { total: number; eligible: number };
}

/** Sums over one pool, before headroom and caps. */
export interface PoolSums {
  /** Capacity of all its nodes. */
  capacity: Amounts;
  /** What its eligible nodes have left, each counted for itself: a node that is overcommitted takes nothing from others. */
  free: Amounts;
  /** Requests of the pods of this virtual node that are bound to any node of the member. */
  ours: Amounts;
  /** Requests of its pods for which the member has no node. */
  stuck: Amounts;
}

const ALWAYS = ['cpu', 'memory', 'pods'];

/**
 * Allocatable is the free room plus what our own pods hold: the host's scheduler subtracts these itself. They count
 * wherever they run, a node cordoned since then included, or the host would see them take room from the other nodes. Pods
 * that the member has no node for hold nothing there, so what the host subtracts for them is put back on top.
 * Headroom comes off, caps limit, and nothing is ever negative, which the API server would refuse. Capacity is what the
 * pool's nodes have in all, capped too.
 */
export function offered(sums: PoolSums, pool: Pool): Pick<Offer, 'capacity' | 'allocatable'> {
  const allocatable = new Map<string, bigint>();
  const capacity = new Map<string, bigint>();
  const capped = (name: string, nanos: bigint): bigint => {
    const cap = pool.caps.get(name);
    const limited = cap !== undefined && nanos > cap ? cap : nanos;
    return limited > 0n ? limited : 0n;
  };
  const all = [sums.capacity, sums.free, sums.ours, sums.stuck].flatMap((amounts) => [...amounts.keys()]);
  const names = new Set([...ALWAYS, ...all]);
  for (const name of names) {
    const room = (sums.free.get(name) ?? 0n) + (sums.ours.get(name) ?? 0n) - (pool.headroom.get(name) ?? 0n);
    const offer = capped(name, room) + (sums.stuck.get(name) ?? 0n);
    const whole = capped(name, sums.capacity.get(name) ?? 0n);
    allocatable.set(name, offer);
    capacity.set(name, whole > offer ? whole : offer);
  }
  return { capacity: formatAmounts(capacity), allocatable: formatAmounts(allocatable) };
}

/** The virtual node of this host that a member pod runs for; undefined for pods of anyone else. */
export function virtualNodeOf(pod: Pod, hostId: string): string | undefined {
  const { labels } = pod.metadata;
  return labels?.[HOST_LABEL] === hostId ? labels[NODE_LABEL] : undefined;
}

/**
 * The offer of a pool computed from nothing but lists: what {@link CapacityTracker} arrives at step by step. Takes time in
 * proportion to all nodes and pods. `pools`: all of the member.
 */
export function offerFromScratch(
  nodes: Iterable<Node>,
  pods: Iterable<Pod>,
  pool: Pool,
  hostId: string,
  pools: readonly Pool[] = [],
): Offer {
  const used = new Map<string, Map<string, bigint>>();
  const ours = new Map<string, bigint>();
  const stuck = new Map<string, bigint>();
  for (const pod of pods) {
    const { nodeName = '' } = pod.spec;
    if (!holdsResources(pod)) continue;
    const requests = podRequests(pod);
    if (nodeName === '') {
      if (virtualNodeOf(pod, hostId) === pool.virtualNode && isUnschedulable(pod)) addTo(stuck, requests);
      continue;
    }
    const onNode = used.get(nodeName) ?? new Map<string, bigint>();
    used.set(nodeName, onNode);
    addTo(onNode, requests);
    if (virtualNodeOf(pod, hostId) === pool.virtualNode) addTo(ours, requests);
  }
  const free = new Map<string, bigint>();
  const capacity = new Map<string, bigint>();
  const count = { total: 0, eligible: 0 };
  for (const node of nodes) {
    if (whyNotInPool(node, pool, pools) !== undefined) continue;
    count.total += 1;
    addTo(capacity, parseAmounts(node.status?.capacity));
    if (whyNotEligible(node, pool, pools) !== undefined) continue;
    count.eligible += 1;
    addTo(free, remainder(parseAmounts(node.status?.allocatable), used.get(node.metadata.name) ?? new Map()));
  }
  return { ...offered({ capacity, free, ours, stuck }, pool), nodes: count };
}
