import type { MemberCluster } from '../api/member-cluster.ts';
import { virtualNodesOf } from '../api/member-cluster.ts';
import { parseAmounts } from '../kube/amounts.ts';
import type { Amounts } from '../kube/amounts.ts';

/** Which of a member's nodes stand behind a virtual node, and how much of them it may offer. */
export interface Pool {
  /** The virtual node's name. */
  readonly virtualNode: string;
  /** Labels a node must carry. */
  readonly nodeSelector: Readonly<Record<string, string>>;
  /** Nodes that carry all of these are left out; an empty map leaves out none. */
  readonly excluded: Readonly<Record<string, string>>;
  /** Kept free for the member itself. */
  readonly headroom: Amounts;
  /** The most to offer. */
  readonly caps: Amounts;
}

export function poolsOf(member: MemberCluster): Pool[] {
  const { excludeNodes, headroom, caps } = member.spec.capacity;
  return virtualNodesOf(member).map(({ name, nodeSelector }) => ({
    virtualNode: name,
    nodeSelector,
    excluded: excludeNodes?.matchLabels ?? {},
    headroom: parseAmounts(headroom),
    caps: parseAmounts(caps),
  }));
}
