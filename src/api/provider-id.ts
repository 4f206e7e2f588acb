import { MEMBER_LABEL } from './marks.ts';
import type { Node } from '../kube/core-v1.ts';

const SCHEME = 'spillway://';

/** Never changes in a Node's life, so it tells a virtual node of ours from all others. */
export function providerIdOf(member: string, node: string): string {
  return `${SCHEME}${member}/${node}`;
}

/**
 * The MemberCluster that a Node stands for; undefined: it is no virtual node. The provider ID decides: it cannot be changed
 * once it is set, while anybody may put our label on a Node, or take it off.
 */
export function memberOfNode({ metadata, spec }: Pick<Node, 'metadata' | 'spec'>): string | undefined {
  const { providerID = '' } = spec ?? {};
  if (providerID === '') return metadata.labels?.[MEMBER_LABEL];
  return providerID.startsWith(SCHEME) ? providerID.slice(SCHEME.length).split('/')[0] : undefined;
}
