import { MAX_SCORE } from './extender-wire.ts';
import type { HostPriority } from './extender-wire.ts';

/** A node that a scheduler may choose; of the host itself without a score. */
export interface RankedNode {
  readonly name: string;
  /** Of its member. */
  readonly score: number | undefined;
  /** How many such pods it takes. */
  readonly slots: number;
}

/**
 * The host's own nodes come before all others, and how they stand among themselves is left to the scheduler. Of virtual
 * nodes those of the better member come first, of one member the roomier. The scheduler knows eleven steps only, so it is
 * told the order and not the scores.
 */
export function nodePriorities(nodes: readonly RankedNode[]): HostPriority[] {
  const keyOf = ({ score = 0, slots }: RankedNode): string => `${String(score)} ${String(slots)}`;
  const virtual = nodes
    .filter(({ score }) => score !== undefined)
    .toSorted((a, b) => (b.score ?? 0) - (a.score ?? 0) || b.slots - a.slots);
  const ranks = new Map<string, number>();
  for (const node of virtual) if (!ranks.has(keyOf(node))) ranks.set(keyOf(node), ranks.size);
  return nodes.map((node) => {
    const Score = node.score === undefined ? MAX_SCORE : Math.max(0, MAX_SCORE - 1 - (ranks.get(keyOf(node)) ?? 0));
    return { Host: node.name, Score };
  });
}
