import type { InterPodReason } from './inter-pod-constraints.ts';
import { elasticGroupOf } from './elastic.ts';
import type { FitReason } from './fit-answer.ts';
import type { FitShape } from './fit-shape.ts';
import { VERDICT } from './node-choice.ts';
import type { NodeTable } from './node-table.ts';

/** Taints and the like are named; of many different ones only the most frequent. */
const MAX_REASONS = 8;

/** Why no node of a member takes a pod; each node says what kube-scheduler would say first of it. */
export function reasonsOf(
  shape: FitShape,
  interPod: ((row: number) => InterPodReason | undefined) | undefined,
  table: NodeTable,
): { reasons: FitReason[]; unresolvable: boolean } {
  const counts = new Map<string, number>();
  /** Nodes that lack a resource; the words are put together once. */
  const short = new Map<string, number>();
  let unresolvable = true;
  const note = (text: string, ever: boolean): void => {
    counts.set(text, (counts.get(text) ?? 0) + 1);
    if (!ever) unresolvable = false;
  };
  for (let row = 0; row < table.rows; row++) {
    const node = table.node(row);
    const verdict = shape.column.verdict(row);
    if (node === undefined || verdict === VERDICT.hidden || elasticGroupOf(node) !== undefined) continue;
    if (verdict !== VERDICT.suits) {
      note(shape.column.choice.reason(node), true);
      continue;
    }
    if (!shape.portsAreFree(row)) {
      note('host port in use', false);
      continue;
    }
    const lacking = shape.lacking(row);
    const noPod = !((table.podsFree[row] ?? 0) >= 1);
    if (noPod) note('too many pods', false);
    if (lacking.length > 0 || noPod) {
      if (!lacking.some(({ ever }) => ever)) unresolvable = false;
      for (const { resource } of lacking) short.set(resource, (short.get(resource) ?? 0) + 1);
      continue;
    }
    const reason = interPod?.(row);
    if (reason !== undefined) note(reason.text, reason.unresolvable);
  }
  for (const [resource, nodes] of short) counts.set(`insufficient ${resource}`, nodes);
  const reasons = [...counts]
    .map(([text, nodes]): FitReason => ({ text, nodes }))
    .toSorted((a, b) => b.nodes - a.nodes || (a.text < b.text ? -1 : 1))
    .slice(0, MAX_REASONS);
  if (reasons.length === 0) return { reasons: [{ text: 'it has no nodes', nodes: 0 }], unresolvable: true };
  return { reasons, unresolvable };
}
