import { labelRequirement, matchesRequirement } from './label-selector.ts';

/** One line of a node selector term; operators In, NotIn, Exists, DoesNotExist, Gt, Lt. */
export interface NodeSelectorRequirement {
  key: string;
  operator: string;
  values?: readonly string[];
}
export interface NodeSelectorTerm {
  matchExpressions?: readonly NodeSelectorRequirement[];
  matchFields?: readonly NodeSelectorRequirement[];
}

/** What a node selector looks at. */
export interface SelectableNode {
  metadata: { name: string; labels?: Readonly<Record<string, string>> };
}

/** The parts of a pod's spec that choose nodes by label. */
export interface NodeChoosingSpec {
  nodeSelector?: Readonly<Record<string, string>>;
  affinity?: {
    nodeAffinity?: {
      requiredDuringSchedulingIgnoredDuringExecution?: { nodeSelectorTerms: readonly NodeSelectorTerm[] };
    };
  };
}

/**
 * Whether a node matches any of the terms, as kube-scheduler decides it: terms are ORed, lines within a term ANDed, a
 * term without lines matches no node, and a term with an invalid line matches no node either.
 */
export function matchesNodeSelectorTerms(terms: readonly NodeSelectorTerm[], node: SelectableNode): boolean {
  return terms.some((term) => matchesTerm(term, node));
}

function matchesTerm(term: NodeSelectorTerm, node: SelectableNode): boolean {
  const expressions = term.matchExpressions ?? [];
  const fields = term.matchFields ?? [];
  if (expressions.length === 0 && fields.length === 0) return false;
  return (
    expressions.every((expression) => matchesExpression(expression, node)) &&
    fields.every((field) => matchesField(field, node))
  );
}

function matchesExpression({ key, operator, values }: NodeSelectorRequirement, node: SelectableNode): boolean {
  try {
    return matchesRequirement(labelRequirement(key, operator, values), node.metadata.labels);
  } catch {
    return false;
  }
}

/** Fields know only `metadata.name`, with In or NotIn and exactly one value. */
function matchesField({ key, operator, values }: NodeSelectorRequirement, node: SelectableNode): boolean {
  if (values?.length !== 1) return false;
  const actual = key === 'metadata.name' ? node.metadata.name : '';
  if (operator === 'In') return values[0] === actual;
  return operator === 'NotIn' && values[0] !== actual;
}

/** Whether a pod's `nodeSelector` and its required node affinity both allow the node. */
export function nodeIsChosenBy(spec: NodeChoosingSpec, node: SelectableNode): boolean {
  const labels = node.metadata.labels ?? {};
  const plain = Object.entries(spec.nodeSelector ?? {});
  if (!plain.every(([key, value]) => Object.hasOwn(labels, key) && labels[key] === value)) return false;
  const required = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  return required === undefined || matchesNodeSelectorTerms(required.nodeSelectorTerms, node);
}
