import type { PodAffinityTerm, PodSpec, TopologySpreadConstraint } from '../kube/core-v1.ts';
import { canonicalJson } from '../kube/canonical-json.ts';
import { type LabelMatcher, labelMatcher } from '../kube/label-matcher.ts';
import { labelSelectorOf } from '../kube/label-selector.ts';
import type { LabelSelector, LabelSelectorObject } from '../kube/label-selector.ts';

export type Labels = Readonly<Record<string, string>>;

/** A pod as rules about other pods see it. */
export interface LabelledPod {
  readonly namespace: string;
  readonly labels: Labels;
}

/** Labels of a namespace; undefined when it is not known. */
export type NamespaceLabels = (namespace: string) => Labels | undefined;

/** A required term of pod affinity or anti-affinity: pods it means, and the label of nodes that makes them near. */
export interface PodTerm {
  /** Equal for equal terms. */
  readonly key: string;
  readonly topologyKey: string;
  /** Whether namespaces are chosen by their labels, which may change. */
  readonly byNamespaceLabels: boolean;
  means(pod: LabelledPod, namespaceLabels: NamespaceLabels): boolean;
}

/** A hard topology spread constraint, with the API server's defaults filled in. */
export interface SpreadRule {
  readonly key: string;
  readonly topologyKey: string;
  readonly maxSkew: number;
  readonly minDomains: number;
  readonly honorsAffinity: boolean;
  readonly honorsTaints: boolean;
  /** The pod itself is one of those that are spread. */
  readonly includesItself: boolean;
  /** Whether a pod counts; pods of other namespaces and those being deleted never do. */
  counts(labels: Labels): boolean;
}

const NOTHING: readonly never[] = [];

export function affinityTermsOf(spec: PodSpec, pod: LabelledPod): readonly PodTerm[] {
  return termsOf(spec.affinity?.podAffinity?.requiredDuringSchedulingIgnoredDuringExecution, pod);
}

export function antiAffinityTermsOf(spec: PodSpec, pod: LabelledPod): readonly PodTerm[] {
  return termsOf(spec.affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution, pod);
}

function termsOf(terms: readonly PodAffinityTerm[] | undefined, pod: LabelledPod): readonly PodTerm[] {
  return terms === undefined || terms.length === 0 ? NOTHING : terms.map((term) => new CompiledTerm(term, pod));
}

class CompiledTerm implements PodTerm {
  readonly key: string;
  readonly topologyKey: string;
  readonly byNamespaceLabels: boolean;
  readonly #isMeant: LabelMatcher;
  readonly #namespaces: ReadonlySet<string>;
  readonly #isNamespaceMeant: LabelMatcher;

  constructor(term: PodAffinityTerm, pod: LabelledPod) {
    const { namespaces = [], namespaceSelector, topologyKey } = term;
    const selector = withMatchLabelKeys(term, pod.labels);
    // No namespaces and no selector at all means those of the pod itself.
    const listed = namespaces.length === 0 && namespaceSelector === undefined ? [pod.namespace] : namespaces;
    this.topologyKey = topologyKey;
    this.key = canonicalJson([topologyKey, selector ?? null, listed.toSorted(), namespaceSelector ?? null]);
    this.#isMeant = labelMatcher(selectorOf(selector));
    this.#namespaces = new Set(listed);
    const ofNamespaces = selectorOf(namespaceSelector);
    this.byNamespaceLabels = ofNamespaces !== undefined && ofNamespaces.length > 0;
    this.#isNamespaceMeant = labelMatcher(ofNamespaces);
  }

  means({ namespace, labels }: LabelledPod, namespaceLabels: NamespaceLabels): boolean {
    return (
      (this.#namespaces.has(namespace) || this.#isNamespaceMeant(namespaceLabels(namespace))) && this.#isMeant(labels)
    );
  }
}

/** Hard constraints only; the soft ones never refuse a node. */
export function spreadRulesOf(spec: PodSpec, labels: Labels): readonly SpreadRule[] {
  const hard = spec.topologySpreadConstraints?.filter(({ whenUnsatisfiable }) => whenUnsatisfiable === 'DoNotSchedule');
  return hard === undefined || hard.length === 0 ? NOTHING : hard.map((one) => spreadRuleOf(one, labels));
}

function spreadRuleOf(constraint: TopologySpreadConstraint, labels: Labels): SpreadRule {
  const { topologyKey, maxSkew, minDomains = 1, nodeAffinityPolicy, nodeTaintsPolicy } = constraint;
  const object = withMatchLabelKeys(constraint, labels);
  const selector = selectorOf(object);
  const isMeant = labelMatcher(selector);
  const honorsAffinity = nodeAffinityPolicy !== 'Ignore';
  const honorsTaints = nodeTaintsPolicy === 'Honor';
  return {
    key: canonicalJson([topologyKey, maxSkew, minDomains, honorsAffinity, honorsTaints, object ?? null]),
    topologyKey,
    maxSkew,
    minDomains,
    honorsAffinity,
    honorsTaints,
    includesItself: isMeant(labels),
    // kube-scheduler counts no pods for an empty selector.
    counts: (others) => selector !== undefined && selector.length > 0 && isMeant(others),
  };
}

/** The API server adds to the selector what the pod itself has under these keys (KEP-3243, KEP-3633). */
function withMatchLabelKeys(
  term: {
    labelSelector?: LabelSelectorObject;
    matchLabelKeys?: readonly string[];
    mismatchLabelKeys?: readonly string[];
  },
  labels: Labels,
): LabelSelectorObject | undefined {
  const { labelSelector, matchLabelKeys = [], mismatchLabelKeys = [] } = term;
  if (labelSelector === undefined || matchLabelKeys.length + mismatchLabelKeys.length === 0) return labelSelector;
  const expressions = [...(labelSelector.matchExpressions ?? [])];
  const add = (keys: readonly string[], operator: string): void => {
    for (const key of keys) {
      const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
      if (value !== undefined) expressions.push({ key, operator, values: [value] });
    }
  };
  add(matchLabelKeys, 'In');
  add(mismatchLabelKeys, 'NotIn');
  return { ...labelSelector, matchExpressions: expressions };
}

/** A selector that cannot be read matches nothing; the API server would have refused it. */
function selectorOf(object: LabelSelectorObject | undefined): LabelSelector | undefined {
  if (object === undefined) return undefined;
  try {
    return labelSelectorOf(object);
  } catch {
    return undefined;
  }
}
