import type { Pod } from '../kube/core-v1.ts';
import { memberNamespaceFor } from '../api/namespace-mapping.ts';
import type { MemberCluster } from '../api/member-cluster.ts';
import { type FitReason, isShort, reasonsInWords } from '../capacity/fit-answer.ts';
import type { FitRequest } from '../capacity/fit-request.ts';
import type { VirtualNodeCapacity } from '../capacity/virtual-node-capacity.ts';
import type { Room } from '../placement/candidates.ts';
import { shortageInWords } from '../placement/free-slots.ts';
import type { HostNodes } from './host-nodes.ts';
import { whyPodKeepsOff, whyPodNeverFits, whyPodWouldLeave } from './node-demands.ts';

/** Capacity of virtual nodes by name, and of `local`; undefined: this process knows nothing of it (yet). */
export type CapacityOf = (nodeName: string) => VirtualNodeCapacity | undefined;

/** Room for a pod in one member, and the virtual nodes that lead to it, the roomiest first. */
export interface MemberFit {
  readonly room: Room;
  readonly nodes: readonly { readonly name: string; readonly slots: number; readonly request: FitRequest }[];
}

/** More pods of a shape than this are all the same to a decision. */
export const MANY = 1_000;

export interface RoomQuestion {
  readonly pod: Pod;
  readonly member: string;
  /** Virtual nodes of the member that the scheduler asks about: they passed its own checks. */
  readonly asked: readonly string[];
  /** Pods of that shape that are of interest. */
  readonly upTo?: number;
  /** Nobody reads why there is no room. */
  readonly wordless?: boolean;
}

/** Without a word. */
const FULL: MemberFit = { room: { fits: 0 }, nodes: [] };

/** Asks the nodes of a member, pool by pool, whether they can take a pod now. */
export function memberFit(question: RoomQuestion, hostNodes: HostNodes, capacityOf: CapacityOf): MemberFit {
  const { pod, member, asked, upTo = MANY, wordless = false } = question;
  const mapping = whyNoNamespace(hostNodes.member(member), pod);
  if (mapping !== undefined) return { room: { fits: 0, impossible: mapping }, nodes: [] };
  if (asked.length === 0) return { room: whyNotAsked(pod, member, hostNodes), nodes: [] };
  const nodes: { name: string; slots: number; request: FitRequest }[] = [];
  const reasons: string[] = [];
  const unknown: string[] = [];
  let refused: string | undefined;
  let isFull = false;
  for (const name of asked) {
    const leaves = whyPodWouldLeave(pod, hostNodes.wantedTaints(member, name));
    if (leaves !== undefined) {
      refused ??= leaves;
      continue;
    }
    const capacity = capacityOf(name);
    if (capacity === undefined || !capacity.ready) {
      unknown.push(capacity?.problem ?? 'its nodes are not known yet');
      continue;
    }
    const request = capacity.request(pod);
    if ('refused' in request) refused ??= request.refused;
    else if ('unknown' in request) unknown.push(request.unknown);
    else {
      const answer = capacity.fits(request);
      if (answer.fits) nodes.push({ name, slots: Math.max(1, capacity.slots(request, upTo)), request });
      else if (wordless) isFull = true;
      else reasons.push(`${reasonsInWords(answer.reasons)}${largestInWords(capacity, request, answer.reasons)}`);
    }
  }
  if (nodes.length + reasons.length + unknown.length === 0) {
    return isFull ? FULL : { room: { fits: 0, impossible: refused ?? 'it cannot run the pod' }, nodes };
  }
  nodes.sort((a, b) => b.slots - a.slots || (a.name < b.name ? -1 : 1));
  const [first] = nodes;
  const fits = nodes.reduce((sum, { slots }) => sum + slots, 0);
  const images = first === undefined ? undefined : capacityOf(first.name)?.images(pod);
  const words = [...unknown, ...reasons];
  const why = words.length === 0 ? undefined : [...new Set(words)].join('; ');
  const isPending = nodes.length === 0 && unknown.length > 0;
  return { room: { fits, why, notKnown: isPending || undefined, images }, nodes };
}

/** Nothing where there is enough, and something else is in the way: a quota, a port, another pod. */
function largestInWords(capacity: VirtualNodeCapacity, request: FitRequest, reasons: readonly FitReason[]): string {
  const { requests } = request;
  const slot = capacity.largestFreeSlot(request);
  const isThere = slot !== undefined && [...requests].every(([name, wanted]) => wanted <= (slot.get(name) ?? 0n));
  if (isThere && !isShort(reasons)) return '';
  const words = shortageInWords(requests, slot);
  return words === '' ? '' : ` (${words})`;
}

function whyNoNamespace(member: MemberCluster | undefined, pod: Pod): string | undefined {
  if (member === undefined) return undefined;
  const place = memberNamespaceFor(member.spec.namespaces, pod.metadata.namespace ?? '');
  return 'refused' in place ? place.refused : undefined;
}

/**
 * None of its virtual nodes passed the scheduler's own checks. Whether a member is there at all only its probe says: a virtual
 * node that is not ready has no room at the moment, which does not take the member out of a division.
 */
function whyNotAsked(pod: Pod, member: string, hostNodes: HostNodes): Room {
  const all = hostNodes.virtualNodesOf(member).map((name) => hostNodes.nodes.get(name));
  const nodes = all.filter((node) => node !== undefined);
  if (nodes.length === 0) return { fits: 0, why: 'it has no virtual node yet' };
  const whys = nodes.map((node) => whyPodNeverFits(pod, node));
  const [first] = whys;
  if (first !== undefined && whys.every((why) => why !== undefined)) return { fits: 0, impossible: first };
  // What nodes for other pods lack, such as those with GPUs, is not what it waits for.
  const possible = nodes.filter((_, index) => whys[index] === undefined);
  const why = possible.map((node) => whyPodKeepsOff(pod, node)).find((one) => one !== undefined);
  return { fits: 0, why: why ?? 'its virtual node does not pass the checks of the scheduler itself' };
}
