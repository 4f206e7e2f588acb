/** Why nodes of a member cannot take a pod. A node may appear under several reasons, as in the scheduler's own messages. */
export interface FitReason {
  /** `insufficient cpu`, `untolerated taint {dedicated: gpu}`, or what a namespace's quota says. */
  readonly text: string;
  /** How many nodes it concerns; 0 when it concerns the member as a whole, such as a quota. */
  readonly nodes: number;
}

/** Whether a pod can run on some real node of a member now. */
export type FitAnswer =
  | {
      readonly fits: true;
      /** Nodes that can take it; when only nodes that do not exist yet can, those. */
      readonly nodes: number;
    }
  | {
      readonly fits: false;
      /** The most frequent first, as things are when they are read first: at once, or never. */
      readonly reasons: readonly FitReason[];
    };

/** `3 nodes: insufficient cpu, 1 node: cordoned`; what concerns the whole member stands alone. */
export function reasonsInWords(reasons: readonly FitReason[]): string {
  return reasons
    .map(({ text, nodes }) => (nodes === 0 ? text : `${String(nodes)} ${nodes === 1 ? 'node' : 'nodes'}: ${text}`))
    .join(', ');
}

/** Whether some node has too little of a resource, or too many pods. */
export function isShort(reasons: readonly FitReason[]): boolean {
  return reasons.some(({ text, nodes }) => nodes > 0 && (text.startsWith('insufficient ') || text === 'too many pods'));
}
