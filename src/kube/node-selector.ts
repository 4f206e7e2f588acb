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
  return compiledTerms(terms)(node);
}

type NodeTest = (node: SelectableNode) => boolean;

function compiledTerms(terms: readonly NodeSelectorTerm[]): NodeTest {
  const tests = terms.map(compiledTerm).filter((test) => test !== undefined);
  return (node) => tests.some((test) => test(node));
}

/** Undefined: no node can match it. */
function compiledTerm({ matchExpressions, matchFields }: NodeSelectorTerm): NodeTest | undefined {
  const expressions = matchExpressions ?? [];
  const fields = matchFields ?? [];
  if (expressions.length === 0 && fields.length === 0) return undefined;
  try {
    const requirements = expressions.map(({ key, operator, values }) => labelRequirement(key, operator, values));
    return (node) =>
      requirements.every((requirement) => matchesRequirement(requirement, node.metadata.labels)) &&
      fields.every((field) => matchesField(field, node));
  } catch {
    return undefined;
  }
}

/** Fields know only `metadata.name`, with In or NotIn and exactly one value. */
function matchesField({ key, operator, values }: NodeSelectorRequirement, node: SelectableNode): boolean {
  if (values?.length !== 1) return false;
  const actual = key === 'metadata.name' ? node.metadata.name : '';
  if (operator === 'In') return values[0] === actual;
  return operator === 'NotIn' && values[0] !== actual;
}

/** Whether a pod's `nodeSelector` and its required node affinity both allow a node; for asking about many nodes. */
export function nodesChosenBy(spec: NodeChoosingSpec): NodeTest {
  const plain = Object.entries(spec.nodeSelector ?? {});
  const required = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  const matches = required === undefined ? undefined : compiledTerms(required.nodeSelectorTerms);
  return (node) => {
    const labels = node.metadata.labels ?? {};
    if (!plain.every(([key, value]) => Object.hasOwn(labels, key) && labels[key] === value)) return false;
    return matches === undefined || matches(node);
  };
}

/** The same for a single node. */
export function nodeIsChosenBy(spec: NodeChoosingSpec, node: SelectableNode): boolean {
  return nodesChosenBy(spec)(node);
}
