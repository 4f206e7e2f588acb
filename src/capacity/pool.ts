import type { MemberCluster } from '../api/member-cluster.ts';
import { virtualNodesOf } from '../api/member-cluster.ts';
import type { Taint } from '../kube/core-v1.ts';
import { acceptedOf } from './accepted-taints.ts';
import { parseAmounts } from '../kube/amounts.ts';
import type { Amounts } from '../kube/amounts.ts';

/** Which of a member's nodes stand behind a virtual node, and how much of them it may offer. */
export interface Pool {
  /** The virtual node's name. */
  readonly virtualNode: string;
  /** Labels a node must carry. */
  readonly nodeSelector: Readonly<Record<string, string>>;
  /** Taints that nodes may have all the same, because they stand on the virtual node too: all pods that come tolerate them. */
  readonly taints: readonly Taint[];
  /** Nodes that carry all of these are left out; an empty map leaves out none. */
  readonly excluded: Readonly<Record<string, string>>;
  /** Kept free for the member itself. */
  readonly headroom: Amounts;
  /** The most to offer. */
  readonly caps: Amounts;
}

export function poolsOf(member: MemberCluster): Pool[] {
  const { excludeNodes, headroom, caps } = member.spec.capacity;
  return virtualNodesOf(member).map(({ name, nodeSelector, taints }) => ({
    virtualNode: name,
    nodeSelector,
    taints: acceptedOf(taints),
    excluded: excludeNodes?.matchLabels ?? {},
    headroom: parseAmounts(headroom),
    caps: parseAmounts(caps),
  }));
}
