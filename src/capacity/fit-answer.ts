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
      /** Nodes that can take it. */
      readonly nodes: number;
      /** Set when only a node that does not exist yet can take it: how long the member needs to get one. */
      readonly leadTimeSeconds?: number;
    }
  | {
      readonly fits: false;
      /** The most frequent first. */
      readonly reasons: readonly FitReason[];
      /** No pod that ends would change it: selectors, taints, a request larger than any node, a refusal by admission. */
      readonly unresolvable: boolean;
    };

/** `3 nodes: insufficient cpu, 1 node: cordoned`; what concerns the whole member stands alone. */
export function reasonsInWords(reasons: readonly FitReason[]): string {
  return reasons
    .map(({ text, nodes }) => (nodes === 0 ? text : `${String(nodes)} ${nodes === 1 ? 'node' : 'nodes'}: ${text}`))
    .join(', ');
}
