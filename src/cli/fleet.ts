import { MEMBER_LABEL } from '../api/marks.ts';
import { MEMBER_CLUSTERS } from '../api/member-cluster.ts';
import type { Node, Pod } from '../kube/core-v1.ts';
import type { KubeObject } from '../kube/object.ts';
import { NODES, PODS } from '../kube/resource.ts';
import { nodeNamesOf, type FleetFacts } from './cluster-summary.ts';
import { MissingRight, type Viewer } from './viewer.ts';

/** How many lists are asked for at once. */
const AT_ONCE = 8;

/** Members, their virtual nodes and the pods on these. `missing`: rights that the viewer lacks, each once. */
export async function readFleet(host: Viewer): Promise<{ facts: FleetFacts; missing: readonly string[] }> {
  const [members, nodes] = await Promise.all([
    host.list<KubeObject>(MEMBER_CLUSTERS),
    host.tryList<Node>(NODES, { labelSelector: MEMBER_LABEL }),
  ]);
  const known = nodes instanceof MissingRight ? undefined : nodes;
  const names = [...new Set(members.flatMap((member) => nodeNamesOf(member, known)))];
  const pods = await podsOn(host, names);
  const facts = { members, nodes: known, pods: pods instanceof MissingRight ? undefined : pods };
  const missing = [nodes, pods].flatMap((one) => (one instanceof MissingRight ? [one.right] : []));
  return { facts, missing: [...new Set(missing)] };
}

/** Pods bound to these nodes, of all namespaces. */
async function podsOn(host: Viewer, nodes: readonly string[]): Promise<Pod[] | MissingRight> {
  const found: Pod[] = [];
  for (let start = 0; start < nodes.length; start += AT_ONCE) {
    const answers = await Promise.all(
      nodes
        .slice(start, start + AT_ONCE)
        .map(async (node) => await host.tryList<Pod>(PODS, { fieldSelector: `spec.nodeName=${node}` })),
    );
    for (const answer of answers) {
      if (answer instanceof MissingRight) return answer;
      found.push(...answer);
    }
  }
  return found;
}
