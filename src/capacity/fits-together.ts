import type { Node, Pod } from '../api/wire.ts';
import { nodeIsChosenBy } from '../kube/node-selector.ts';
import { firstUntolerated } from '../kube/taints.ts';
import { addTo, type Amounts, parseAmounts, remainder } from './amounts.ts';
import { holdsResources, podRequests } from './pod-requests.ts';

/**
 * How many of the pods find a node, if they are put on nodes one after the other, the largest first, each on the node that it
 * leaves the least of. By resources, selectors and taints; what else a scheduler looks at (spread, ports, volumes) is not asked.
 *
 * @param running - all pods of the cluster; those that are bound to one of the nodes take room there.
 */
export function fitTogether(pods: readonly Pod[], nodes: readonly Node[], running: Iterable<Pod>): number {
  const used = new Map<string, Map<string, bigint>>();
  for (const pod of running) {
    const { nodeName } = pod.spec;
    if (nodeName === undefined || !holdsResources(pod)) continue;
    const sum = used.get(nodeName) ?? new Map<string, bigint>();
    used.set(nodeName, sum);
    addTo(sum, podRequests(pod));
  }
  const free = new Map<Node, Map<string, bigint>>();
  for (const node of nodes) {
    if (node.spec?.unschedulable === true) continue;
    free.set(node, remainder(parseAmounts(node.status?.allocatable), used.get(node.metadata.name) ?? new Map()));
  }
  const asked = pods.map((pod) => ({ pod, requests: podRequests(pod) }));
  asked.sort((a, b) => compare(b.requests, a.requests));
  let count = 0;
  for (const { pod, requests } of asked) {
    const takers = [...free].filter(([node, left]) => isOpenTo(pod, node) && hasRoom(left, requests));
    takers.sort(([, a], [, b]) => compare(a, b));
    const [taker] = takers;
    if (taker === undefined) continue;
    addTo(taker[1], requests, -1n);
    count += 1;
  }
  return count;
}

function isOpenTo({ spec }: Pod, node: Node): boolean {
  return nodeIsChosenBy(spec, node) && firstUntolerated(spec.tolerations ?? [], node.spec?.taints ?? []) === undefined;
}

function hasRoom(left: Amounts, requests: Amounts): boolean {
  return [...requests].every(([name, wanted]) => wanted <= 0n || (left.get(name) ?? 0n) >= wanted);
}

/** By CPU, then by memory. */
function compare(a: Amounts, b: Amounts): number {
  for (const name of ['cpu', 'memory']) {
    const [left, right] = [a.get(name) ?? 0n, b.get(name) ?? 0n];
    if (left !== right) return left < right ? -1 : 1;
  }
  return 0;
}
