import { BURST_LABEL, VIRTUAL_NODE_TAINT } from '../../api/marks.ts';
import { type MemberCluster, virtualNodesOf } from '../../api/member-cluster.ts';
import { isSystemNamespace } from '../../api/namespace-mapping.ts';
import { asksForVirtualNode } from '../../api/virtual-node-choice.ts';
import type { Pod } from '../../kube/core-v1.ts';
import { fieldsOf } from '../../kube/json-fields.ts';
import { tolerates } from '../../kube/taints.ts';
import { givesToleration } from '../../placement/namespace-burst.ts';
import type { ExplainedNamespace } from './explained-policy.ts';

const TAINT = { key: VIRTUAL_NODE_TAINT, effect: 'NoSchedule' };

export interface NotLabelledFacts {
  /** Of the policy: what it decides about, and which members it chooses. */
  workloads: readonly { namespace: string; of: string; pod: Pod }[];
  chosen: ReadonlySet<string>;
  members: readonly MemberCluster[];
  /** None of a namespace: not known. */
  namespaceLabels: ReadonlyMap<string, Readonly<Record<string, string>>>;
}

/**
 * Namespaces without the label by which admission has pods tolerate virtual nodes, and their workloads that the policy sends to
 * members in vain for want of it.
 */
export function notLabelled({ workloads, chosen, members, namespaceLabels }: NotLabelledFacts): ExplainedNamespace[] {
  const isClosed = members.some(({ metadata, spec }) => chosen.has(metadata.name) && spec.taintMode === TAINT.effect);
  if (!isClosed) return [];
  const nodes = new Set(members.flatMap(virtualNodesOf).map(({ name }) => name));
  const found = new Map<string, string[]>();
  for (const { namespace, of, pod } of workloads) {
    const labels = namespaceLabels.get(namespace);
    // Admission keeps pods of the cluster itself, whatever the label.
    if (isSystemNamespace(namespace)) continue;
    if (labels === undefined || givesToleration(labels) || !isForTheLabel(pod, nodes)) continue;
    found.set(namespace, [...(found.get(namespace) ?? []), of]);
  }
  return [...found].map(([namespace, names]) => {
    const overwrite = namespaceLabels.get(namespace)?.[BURST_LABEL] === undefined ? '' : ' --overwrite';
    const fix = `kubectl label namespace ${namespace} ${BURST_LABEL}=policies${overwrite}`;
    return { namespace, workloads: names, fix };
  });
}

/** Whether it depends on the label of the namespace that the pod tolerates virtual nodes. */
function isForTheLabel({ metadata, spec }: Pod, nodes: ReadonlySet<string>): boolean {
  if (metadata.labels?.[BURST_LABEL] === 'disabled') return false;
  // One that tolerates whatever there is admission keeps on the host without the label.
  const named = (spec.tolerations ?? []).filter(({ key }) => key === VIRTUAL_NODE_TAINT);
  if (named.some((one) => tolerates(one, TAINT))) return false;
  return !asksForVirtualNode(fieldsOf(spec), (name) => nodes.has(name));
}
