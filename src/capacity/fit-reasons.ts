import { elasticGroupOf } from './elastic.ts';
import type { InterPodCheck } from './inter-pod-constraints.ts';
import type { FitReason } from './fit-answer.ts';
import type { FitShape } from './fit-shape.ts';
import { VERDICT } from './node-choice.ts';
import type { NodeTable } from './node-table.ts';

/** Taints and the like are named; of many different ones only the most frequent. */
const MAX_REASONS = 8;

/** Why no node of a member takes a pod; each node says what kube-scheduler would say first of it. */
export function reasonsOf(shape: FitShape, interPod: InterPodCheck | undefined, table: NodeTable): FitReason[] {
  const counts = new Map<string, number>();
  /** Nodes that lack a resource; the words are put together once. */
  const short = new Map<string, number>();
  const note = (text: string): void => void counts.set(text, (counts.get(text) ?? 0) + 1);
  for (let row = 0; row < table.rows; row++) {
    const node = table.node(row);
    const verdict = shape.column.verdict(row);
    if (node === undefined || verdict === VERDICT.hidden || elasticGroupOf(node) !== undefined) continue;
    if (verdict !== VERDICT.suits) {
      note(shape.column.choice.reason(node));
      continue;
    }
    if (!shape.portsAreFree(row)) {
      note('host port in use');
      continue;
    }
    const lacking = shape.lacking(row);
    const noPod = !((table.podsFree[row] ?? 0) >= 1);
    if (noPod) note('too many pods');
    if (lacking.length > 0 || noPod) {
      for (const resource of lacking) short.set(resource, (short.get(resource) ?? 0) + 1);
      continue;
    }
    const reason = interPod?.(row);
    if (reason !== undefined) note(reason);
  }
  for (const [resource, nodes] of short) counts.set(`insufficient ${resource}`, nodes);
  const reasons = [...counts]
    .map(([text, nodes]): FitReason => ({ text, nodes }))
    .toSorted((a, b) => b.nodes - a.nodes || (a.text < b.text ? -1 : 1))
    .slice(0, MAX_REASONS);
  return reasons.length === 0 ? [{ text: 'it has no nodes', nodes: 0 }] : reasons;
}
