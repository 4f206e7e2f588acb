import { NOT_READY_TAINT, UNREACHABLE_TAINT, VIRTUAL_NODE_TAINT } from '../api/marks.ts';
import type { Node, Pod } from '../kube/core-v1.ts';
import { matchesNodeSelectorTerms, nodeIsChosenBy } from '../kube/node-selector.ts';
import { firstUntolerated, type Taint, taintInWords, toleratesForGood } from '../kube/taints.ts';
import { givesToleration } from '../placement/namespace-burst.ts';
import { withMemberConstraints } from '../pods/translate-constraints.ts';
import { rewriteObject } from '../kube/json-fields.ts';

/** What a pod itself says of virtual nodes, beside any policy. */

/** Why the pod itself keeps off a virtual node, for people; undefined when it does not. */
export function whyPodKeepsOff(pod: Pod, node: Node): string | undefined {
  if (!nodeIsChosenBy(pod.spec, node)) return 'the node selector or node affinity of the pod leaves it out';
  const taint = firstUntolerated(pod.spec.tolerations ?? [], node.spec?.taints ?? []);
  return taint === undefined ? undefined : `the pod does not tolerate taint ${taintInWords(taint)}`;
}

/**
 * Why a pod that the scheduler would let onto a virtual node would be moved out again, for people. `taints`: those of its MemberCluster for
 * that node, of effect NoExecute, which stand as NoSchedule on the Node.
 */
export function whyPodWouldLeave({ spec }: Pod, taints: readonly Taint[]): string | undefined {
  for (const taint of taints) {
    if (taint.effect !== 'NoExecute' || toleratesForGood(spec.tolerations ?? [], taint)) continue;
    return `the pod does not tolerate taint ${taintInWords(taint)} for good`;
  }
  return undefined;
}

/** Taints of nodes that come and go by themselves, as the lease of a node is renewed or not, and its member is reachable or not. */
const PASSING_TAINTS = new Set([
  'node.kubernetes.io/not-ready',
  'node.kubernetes.io/unreachable',
  NOT_READY_TAINT,
  UNREACHABLE_TAINT,
]);

/** The same for good, and not only for as long as nobody serves the virtual node. */
export function whyPodNeverFits(pod: Pod, node: Node): string | undefined {
  const taints = node.spec?.taints?.filter(({ key }) => !PASSING_TAINTS.has(key)) ?? [];
  return whyPodKeepsOff(pod, { ...node, spec: { ...node.spec, taints } });
}

/**
 * Whether a pod that no rules speak about may go to a virtual node by its own words: it tolerates the taint of virtual
 * nodes by name, it asks for the node by a selector that real nodes do not satisfy, or the node is open to all. In a
 * namespace that opted in every pod is given the toleration when it is created, so that says nothing.
 */
export function asksForItself(pod: Pod, node: Node, namespaceLabels?: Readonly<Record<string, string>>): boolean {
  const taints = node.spec?.taints ?? [];
  if (!taints.some(({ key, effect }) => key === VIRTUAL_NODE_TAINT && effect !== 'PreferNoSchedule')) return true;
  const tolerates = (pod.spec.tolerations ?? []).some(({ key }) => key === VIRTUAL_NODE_TAINT);
  if (tolerates && !givesToleration(namespaceLabels)) return true;
  // Admission may have opened its selectors to all virtual nodes; what it asked for itself counts.
  const spec = rewriteObject(pod.spec, (own) => withMemberConstraints(own, pod));
  return choosesNodes({ spec }) && !choosesRealNodes({ spec }, node);
}

/** Whether the pod names any nodes by labels or name. */
export function choosesNodes({ spec }: Pick<Pod, 'spec'>): boolean {
  const required = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  return Object.keys(spec.nodeSelector ?? {}).length > 0 || required !== undefined;
}

/** Without the labels that only virtual nodes have: whether what the pod asks for would be true of such a node still. */
function choosesRealNodes({ spec }: Pick<Pod, 'spec'>, node: Node): boolean {
  const real = { metadata: { name: '', labels: withoutOwn(node.metadata.labels ?? {}) } };
  const selector = Object.entries(spec.nodeSelector ?? {});
  if (!selector.every(([key, value]) => real.metadata.labels[key] === value)) return false;
  const required = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  return required === undefined || matchesNodeSelectorTerms(required.nodeSelectorTerms, real);
}

const OWN_LABELS = new Set(['kubernetes.io/hostname', 'type']);

function withoutOwn(labels: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(labels).filter(([key]) => !OWN_LABELS.has(key) && !key.startsWith('spillway.dev/')),
  );
}
