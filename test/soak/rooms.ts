import { EXTENDER_RESOURCE } from '../../src/api/marks.ts';
import { LOCAL } from '../../src/api/cluster-tiers.ts';
import { podRequests } from '../../src/capacity/pod-requests.ts';
import type { Amounts } from '../../src/kube/amounts.ts';
import { addTo, parseAmounts } from '../../src/kube/amounts.ts';
import type { Node, Pod } from '../../src/kube/core-v1.ts';
import { nodeIsChosenBy } from '../../src/kube/node-selector.ts';
import { firstUntolerated, HARD_EFFECTS } from '../../src/kube/taints.ts';
import type { Room } from '../../src/placement/candidates.ts';
import { isFinished, placeOf, type State } from './state.ts';

/** What every real node has left: what it has, less the requests of all pods that are bound to it. Looked at without Spillway. */
export class Rooms {
  readonly #state: State;
  /** By cluster. */
  readonly #free: ReadonlyMap<string, readonly { node: Node; free: Amounts }[]>;

  constructor(state: State) {
    this.#state = state;
    const real = [...state.nodes.values()].filter(({ metadata }) => placeOf(state, metadata.name) === LOCAL);
    this.#free = new Map([
      [LOCAL, freeOf(real, state.pods)],
      ...[...state.inMembers].map(([name, { nodes, pods }]) => [name, freeOf(nodes, pods)] as const),
    ]);
  }

  /** How many such pods fit in every cluster, node by node; in a member only by way of a virtual node that the pod may go to. */
  forPod(pod: Pod): Map<string, Room> {
    return new Map([...this.#free.keys()].map((cluster) => [cluster, this.#roomIn(cluster, pod)]));
  }

  #roomIn(cluster: string, pod: Pod): Room {
    const tolerations = pod.spec.tolerations ?? [];
    if (cluster !== LOCAL && !this.#hasWay(cluster, pod))
      return { fits: 0, impossible: 'no virtual node of it takes the pod' };
    const requests = new Map(podRequests(pod));
    requests.delete(EXTENDER_RESOURCE);
    let fits = 0;
    for (const { node, free } of this.#free.get(cluster) ?? []) {
      const taints = (node.spec?.taints ?? []).filter(({ effect }) => HARD_EFFECTS.includes(effect));
      if (node.spec?.unschedulable === true || firstUntolerated(tolerations, taints) !== undefined) continue;
      // The pools of a member are told apart by nothing but taints.
      const isOpen = cluster === LOCAL ? nodeIsChosenBy(pod.spec, node) : this.#hasWay(cluster, pod, taints);
      if (!isOpen) continue;
      fits += slotsIn(free, requests);
    }
    return { fits, why: 'its nodes are full' };
  }

  /** Whether the pod may be bound to a virtual node of the member, or to the one that stands for nodes with such taints. */
  #hasWay(member: string, { spec }: Pod, taints?: readonly { key: string }[]): boolean {
    return [...this.#state.nodes.values()].some(({ metadata, spec: node }) => {
      if (placeOf(this.#state, metadata.name) !== member || node?.unschedulable === true) return false;
      const own = (node?.taints ?? []).filter(({ effect }) => HARD_EFFECTS.includes(effect));
      const keys = own.map(({ key }) => key).filter((key) => !key.startsWith('spillway.dev/'));
      if (taints !== undefined && !sameKeys(keys, taints)) return false;
      const selector = Object.entries(spec.nodeSelector ?? {});
      return (
        selector.every(([key, value]) => metadata.labels?.[key] === value) &&
        firstUntolerated(spec.tolerations ?? [], own) === undefined
      );
    });
  }
}

function sameKeys(keys: readonly string[], taints: readonly { key: string }[]): boolean {
  return keys.length === taints.length && taints.every(({ key }) => keys.includes(key));
}

function freeOf(nodes: readonly Node[], pods: readonly Pod[]): { node: Node; free: Amounts }[] {
  return nodes.map((node) => {
    const free = parseAmounts(node.status?.allocatable);
    for (const pod of pods) {
      if (pod.spec.nodeName === node.metadata.name && !isFinished(pod)) addTo(free, podRequests(pod), -1n);
    }
    return { node, free };
  });
}

function slotsIn(free: Amounts, requests: Amounts): number {
  let slots = Number.POSITIVE_INFINITY;
  for (const [resource, amount] of requests) {
    if (amount > 0n) slots = Math.min(slots, Number((free.get(resource) ?? 0n) / amount));
  }
  return Math.max(0, slots);
}
