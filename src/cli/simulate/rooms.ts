import { LOCAL } from '../../api/cluster-tiers.ts';
import { specOf, type MemberCluster } from '../../api/member-cluster.ts';
import { memberOfNode } from '../../api/provider-id.ts';
import { podRequests } from '../../capacity/pod-requests.ts';
import { isReady } from '../../kube/conditions.ts';
import { addTo, parseAmounts, remainder, type Amounts } from '../../kube/amounts.ts';
import type { Node, Pod } from '../../kube/core-v1.ts';
import { nodeIsChosenBy } from '../../kube/node-selector.ts';
import { firstUntolerated } from '../../kube/taints.ts';
import type { Room } from '../../placement/candidates.ts';
import { shortageInWords } from '../../placement/free-slots.ts';
import { requestsByNode } from '../cluster-summary.ts';
import { whyPodKeepsOff, whyPodNeverFits, whyPodWouldLeave } from '../../scheduler/node-demands.ts';

/** What of the cluster the viewer could read; undefined: not allowed. */
export interface RoomFacts {
  members: readonly MemberCluster[];
  /** All nodes, virtual ones included. */
  nodes: readonly Node[] | undefined;
  /** All pods that hold resources. */
  pods: readonly Pod[] | undefined;
}

/**
 * Room for pods like this one in each cluster, by what nodes and members show. Of members it is an estimate, and never more than
 * they say: what of each of their nodes is free only managers know.
 */
export function roomsFor(pod: Pod, { members, nodes, pods }: RoomFacts): Map<string, Room> {
  const rooms = new Map<string, Room>();
  const asked = podRequests(pod);
  const taken = requestsByNode(pods ?? []);
  const real = nodes?.filter((node) => memberOfNode(node) === undefined);
  rooms.set(LOCAL, localRoom(pod, asked, real, pods === undefined ? undefined : taken));
  for (const member of members) {
    const own = nodes?.filter((node) => memberOfNode(node) === member.metadata.name);
    rooms.set(member.metadata.name, memberRoom(pod, asked, member, own, taken));
  }
  return rooms;
}

function localRoom(
  pod: Pod,
  asked: Amounts,
  nodes: readonly Node[] | undefined,
  taken: ReadonlyMap<string, Amounts> | undefined,
): Room {
  if (nodes === undefined || taken === undefined) return { fits: undefined };
  const open = nodes.filter(
    (node) => isReady(node) && node.spec?.unschedulable !== true && nodeIsChosenBy(pod.spec, node),
  );
  const suited = open.filter(
    (node) => firstUntolerated(pod.spec.tolerations ?? [], node.spec?.taints ?? []) === undefined,
  );
  if (suited.length === 0) {
    const why =
      nodes.length === 0
        ? 'it has no nodes of its own'
        : 'the node selector, affinity or tolerations of the pod leave all of its nodes out';
    return { fits: 0, why };
  }
  const free = suited.map((node) =>
    remainder(parseAmounts(node.status?.allocatable), taken.get(node.metadata.name) ?? new Map<string, bigint>()),
  );
  const fits = free.reduce((sum, one) => sum + slots(one, asked), 0);
  return fits > 0 ? { fits } : { fits: 0, why: shortageInWords(asked, largest(free)) };
}

function memberRoom(
  pod: Pod,
  asked: Amounts,
  member: MemberCluster,
  nodes: readonly Node[] | undefined,
  taken: ReadonlyMap<string, Amounts>,
): Room {
  if (nodes !== undefined) {
    if (nodes.length === 0) return { fits: 0, why: 'it has no virtual node yet' };
    const never = nodes.map(
      (node) => whyPodNeverFits(pod, node) ?? whyPodWouldLeave(pod, specOf(member, node.metadata.name).taints),
    );
    if (never.every((why) => why !== undefined)) return { fits: 0, impossible: never[0] ?? '' };
    const now = nodes.map((node) => whyPodKeepsOff(pod, node));
    if (now.every((why) => why !== undefined)) return { fits: 0, why: now[0] ?? '' };
  }
  const { allocatable, largestFreeSlot } = member.status ?? {};
  if (allocatable === undefined) return { fits: 0, why: 'its nodes are not known yet' };
  const slot = largestFreeSlot === undefined ? undefined : parseAmounts(largestFreeSlot);
  const isShort =
    slot !== undefined && [...asked].some(([name, amount]) => slot.has(name) && amount > (slot.get(name) ?? 0n));
  if (slot !== undefined && isShort)
    return { fits: 0, why: shortageInWords(new Map([...asked].filter(([name]) => slot.has(name))), slot) };
  const used = new Map<string, bigint>();
  for (const node of nodes ?? []) addTo(used, taken.get(node.metadata.name) ?? new Map<string, bigint>());
  const free = remainder(parseAmounts(allocatable), used);
  const fits = slots(free, asked);
  return fits > 0 ? { fits } : { fits: 0, why: shortageInWords(asked, free) };
}

/** How many pods that ask for so much. Resources that nobody offers do not fit at all. */
function slots(free: Amounts, asked: Amounts): number {
  let least = 1_000_000;
  for (const [name, amount] of asked) {
    if (amount > 0n) least = Math.min(least, Number((free.get(name) ?? 0n) / amount));
  }
  return least;
}

function largest(free: readonly Amounts[]): Amounts {
  const most = new Map<string, bigint>();
  for (const one of free) for (const [name, amount] of one) if (amount > (most.get(name) ?? 0n)) most.set(name, amount);
  return most;
}
