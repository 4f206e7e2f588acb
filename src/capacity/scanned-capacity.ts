import { UID_LABEL } from '../api/marks.ts';
import type { Node, Pod } from '../api/wire.ts';
import { nodeIsChosenBy } from '../kube/node-selector.ts';
import { toleratesAll } from '../kube/taints.ts';
import { addTo, parseAmounts, remainder } from './amounts.ts';
import type { Amounts } from './amounts.ts';
import { whyNotEligible } from './eligible-nodes.ts';
import type { FitAnswer } from './fit-answer.ts';
import type { FitRequest } from './fit-request.ts';
import { holdsResources, podRequests } from './pod-requests.ts';
import type { Pool } from './pool.ts';
import type { VirtualNodeCapacity } from './virtual-node-capacity.ts';

/** With the pod as it will be in the member. */
interface Asked extends FitRequest {
  readonly pod: Pod;
}

export interface ScannedCapacityOptions {
  /** Undefined once the virtual node is not wanted any more. */
  pool: () => Pool | undefined;
  nodes: () => Iterable<Node>;
  pods: () => Iterable<Pod>;
  /** Bound to the virtual node. */
  hostPods: () => Iterable<Pod>;
  ready: () => boolean;
  /** The pod as it will be in the member. `hold`: why it cannot be there. `unknown`: why that cannot be told yet. */
  render: (pod: Pod) => { pod: Pod } | { hold: { message: string } } | { unknown: string };
}

/** The room behind a virtual node, worked out anew from all nodes and pods of the member with every question. */
export class ScannedCapacity implements VirtualNodeCapacity {
  readonly nodeName: string;
  readonly member: string;
  readonly #o: ScannedCapacityOptions;
  readonly #reserved = new Map<string, Amounts>();

  constructor(nodeName: string, member: string, o: ScannedCapacityOptions) {
    this.nodeName = nodeName;
    this.member = member;
    this.#o = o;
  }

  get ready(): boolean {
    return this.#o.ready();
  }

  request(hostPod: Pod): Asked | { refused: string } | { unknown: string } {
    const rendered = this.#o.render(hostPod);
    if ('unknown' in rendered) return rendered;
    if ('hold' in rendered) return { refused: rendered.hold.message };
    const { pod } = rendered;
    return { key: '', requests: podRequests(pod), pod };
  }

  fits(request: FitRequest): FitAnswer {
    const slots = this.slots(request, 1);
    return slots > 0
      ? { fits: true, nodes: slots }
      : { fits: false, reasons: [{ text: 'no node can take it', nodes: 0 }], unresolvable: false };
  }

  slots(request: FitRequest, upTo: number): number {
    const { pod } = request as Asked;
    let total = 0;
    for (const free of this.#free(pod).values()) {
      let count = upTo;
      for (const [name, wanted] of request.requests) {
        if (wanted > 0n) count = Math.min(count, Number((free.get(name) ?? 0n) / wanted));
      }
      total += count;
    }
    return Math.min(total, upTo);
  }

  largestFreeSlot(request: FitRequest): Amounts | undefined {
    let largest: Map<string, bigint> | undefined;
    for (const free of this.#free((request as Asked).pod).values()) {
      largest ??= new Map();
      for (const [name, amount] of free) if (amount > (largest.get(name) ?? 0n)) largest.set(name, amount);
    }
    return largest;
  }

  reserve(podUid: string, request: FitRequest): void {
    this.#reserved.set(podUid, request.requests);
  }

  release(podUid: string): void {
    this.#reserved.delete(podUid);
  }

  /** What nodes that the pod may use have left, by name; pods on their way are put on the first that can take them. */
  #free(pod: Pod): Map<string, Map<string, bigint>> {
    const pool = this.#o.pool();
    const used = new Map<string, Map<string, bigint>>();
    const shown = new Set<string>();
    for (const one of this.#o.pods()) {
      const { nodeName } = one.spec;
      if (nodeName === undefined || !holdsResources(one)) continue;
      const uid = one.metadata.labels?.[UID_LABEL];
      if (uid !== undefined) shown.add(uid);
      const sum = used.get(nodeName) ?? new Map<string, bigint>();
      used.set(nodeName, sum);
      addTo(sum, podRequests(one));
    }
    const free = new Map<string, Map<string, bigint>>();
    for (const node of this.#o.nodes()) {
      if (pool === undefined || whyNotEligible(node, pool) !== undefined) continue;
      if (!nodeIsChosenBy(pod.spec, node) || !toleratesAll(pod.spec.tolerations ?? [], node.spec?.taints ?? []))
        continue;
      free.set(
        node.metadata.name,
        remainder(parseAmounts(node.status?.allocatable), used.get(node.metadata.name) ?? new Map<string, bigint>()),
      );
    }
    const held = new Map(this.#reserved);
    for (const one of this.#o.hostPods()) {
      const { uid = '' } = one.metadata;
      if (holdsResources(one)) held.set(uid, podRequests(one));
    }
    for (const [uid, requests] of held) {
      if (shown.has(uid)) continue;
      for (const left of free.values()) {
        if ([...requests].every(([name, wanted]) => (left.get(name) ?? 0n) >= wanted)) {
          for (const [name, wanted] of requests) left.set(name, (left.get(name) ?? 0n) - wanted);
          break;
        }
      }
    }
    return free;
  }
}
