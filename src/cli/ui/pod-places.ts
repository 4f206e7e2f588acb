import { LOCAL } from '../../api/cluster-tiers.ts';
import { memberOfNode } from '../../api/provider-id.ts';
import type { Pod } from '../../kube/core-v1.ts';
import { nodeNamesOf } from '../cluster-summary.ts';
import type { PageFacts } from './page-facts.ts';

/** Says of a pod where it is: `local`, the name of a member, or '' while it has no node. */
export type PlaceOf = (pod: Pod) => string;

/** By the Nodes that the viewer may see, and by the names that MemberClusters give to theirs. */
export function placeOf({ members, nodes }: Pick<PageFacts, 'members' | 'nodes'>): PlaceOf {
  const memberByNode = new Map<string, string>();
  for (const raw of members ?? []) {
    for (const node of nodeNamesOf(raw, nodes)) memberByNode.set(node, raw.metadata.name);
  }
  for (const node of nodes ?? []) {
    const member = memberOfNode(node);
    // A real node may have the name that a MemberCluster would like to give.
    if (member === undefined) memberByNode.delete(node.metadata.name);
    else memberByNode.set(node.metadata.name, member);
  }
  return ({ spec: { nodeName = '' } }) => (nodeName === '' ? '' : (memberByNode.get(nodeName) ?? LOCAL));
}

/** Pods by what `key` says of each. */
export function podsBy(pods: readonly Pod[], key: (pod: Pod) => string): Map<string, Pod[]> {
  const groups = new Map<string, Pod[]>();
  for (const pod of pods) {
    const name = key(pod);
    const group = groups.get(name);
    if (group === undefined) groups.set(name, [pod]);
    else group.push(pod);
  }
  return groups;
}
