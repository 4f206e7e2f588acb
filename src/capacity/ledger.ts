import { HOST_LABEL, NODE_LABEL } from '../api/marks.ts';
import type { Pod } from '../kube/core-v1.ts';
import { addTo, formatAmounts } from '../kube/amounts.ts';
import type { Amounts } from '../kube/amounts.ts';
import type { Pool } from './pool.ts';

/** What a virtual node shows: quantities by resource name; cpu, memory and pods are always there. */
export interface Offer {
  capacity: Record<string, string>;
  allocatable: Record<string, string>;
  nodes: { total: number; eligible: number };
}

/** Sums over one pool, as the member counts, before headroom and caps. */
export interface PoolSums {
  /** Capacity of all its nodes. */
  capacity: Amounts;
  /** What its eligible nodes have left, each counted for itself: a node that is overcommitted takes nothing from others. */
  free: Amounts;
  /** Requests of the pods of this virtual node that are bound to any node of the member. */
  ours: Amounts;
}

/** A pod on its way, whose room is set aside on a node of the member. */
export interface Coming {
  readonly node: string;
  readonly virtualNode: string;
  /** As the member will count them. */
  readonly requests: Amounts;
}

const ALWAYS = ['cpu', 'memory', 'pods'];

/** The sums as if pods on their way were there. `holds`: the node is an eligible one of the pool. */
export function withComing(
  sums: PoolSums,
  coming: Iterable<Coming>,
  { virtualNode }: Pool,
  holds: (node: string) => boolean,
): PoolSums {
  // Pods of a template share what they ask for: to count them costs less than to add exact amounts for each.
  const taken = new Map<Amounts, number>();
  const added = new Map<Amounts, number>();
  for (const pod of coming) {
    if (holds(pod.node)) taken.set(pod.requests, (taken.get(pod.requests) ?? 0) + 1);
    if (pod.virtualNode === virtualNode) added.set(pod.requests, (added.get(pod.requests) ?? 0) + 1);
  }
  const free = new Map(sums.free);
  const ours = new Map(sums.ours);
  for (const [requests, count] of taken) addTo(free, requests, -BigInt(count));
  for (const [requests, count] of added) addTo(ours, requests, BigInt(count));
  return { ...sums, free, ours };
}

/**
 * How much more pods of a virtual node may take of a resource, as the member counts: what its nodes have left beside headroom, and no
 * more than is missing to its cap. Less than nothing where either is exceeded.
 */
export function roomLeft({ free, ours }: PoolSums, { headroom, caps }: Pool, resource: string): bigint {
  const left = (free.get(resource) ?? 0n) - (headroom.get(resource) ?? 0n);
  const cap = caps.get(resource);
  const rest = cap === undefined ? left : cap - (ours.get(resource) ?? 0n);
  return rest < left ? rest : left;
}

/**
 * The host's scheduler subtracts from allocatable what it counts of the pods that are bound to the virtual node (`bound`), which is not
 * what the member counts of them: overrides, defaults of its namespaces and overhead of its runtime classes make
 * copies ask for less or more, some pods have no copy (yet), and some copies have outlived their pod. So allocatable is the
 * room that is left, and `bound` on top. Never negative, which the API server would refuse. Capacity is what the pool's nodes
 * have in all, capped too.
 */
export function offered(sums: PoolSums, pool: Pool, bound: Amounts): Pick<Offer, 'capacity' | 'allocatable'> {
  const allocatable = new Map<string, bigint>();
  const capacity = new Map<string, bigint>();
  const all = [sums.capacity, sums.free, sums.ours, bound].flatMap((amounts) => [...amounts.keys()]);
  for (const name of new Set([...ALWAYS, ...all])) {
    const room = roomLeft(sums, pool, name) + (bound.get(name) ?? 0n);
    const offer = room > 0n ? room : 0n;
    const cap = pool.caps.get(name);
    const inAll = sums.capacity.get(name) ?? 0n;
    const whole = cap !== undefined && inAll > cap ? cap : inAll;
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
