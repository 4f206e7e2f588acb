import type { PodAffinityTerm, PodSpec, TopologySpreadConstraint } from '../kube/core-v1.ts';
import type { LabelSelectorObject } from '../kube/label-selector.ts';
import type { NodeSelectorRequirement } from '../kube/node-selector.ts';

/** Each has pods of the member counted, and that kept up to date. */
const MAX_RULES = 32;
const MAX_REQUIREMENTS = 256;

/**
 * Why a pod asks more of nodes and of other pods than room is worked out for, for people; undefined while it does not. Only what may
 * refuse it a node counts, not what it prefers. Whoever writes pods chooses how much that is, and everybody waits for the answer.
 */
export function whyTooManyConstraints(spec: PodSpec): string | undefined {
  const { nodeSelector = {}, affinity = {}, tolerations = [] } = spec;
  const nodeTerms = affinity.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
  const podTerms = [affinity.podAffinity, affinity.podAntiAffinity].flatMap(
    (part) => part?.requiredDuringSchedulingIgnoredDuringExecution ?? [],
  );
  const spread = (spec.topologySpreadConstraints ?? []).filter(
    ({ whenUnsatisfiable }) => whenUnsatisfiable === 'DoNotSchedule',
  );
  const rules = podTerms.length + spread.length;
  if (rules > MAX_RULES) {
    return `its required pod affinity, anti-affinity and topology spread constraints are ${rules} together; virtual nodes take pods with ${MAX_RULES} at most`;
  }
  const size =
    Object.keys(nodeSelector).length +
    tolerations.length +
    sum(nodeTerms.map(({ matchExpressions, matchFields }) => 1 + sizeOf(matchExpressions) + sizeOf(matchFields))) +
    sum([...podTerms, ...spread].map(sizeOfRule));
  if (size <= MAX_REQUIREMENTS) return undefined;
  return `its node selector, tolerations, required affinity and topology spread constraints have ${size} requirements and values together; virtual nodes take pods with ${MAX_REQUIREMENTS} at most`;
}

/** The pod as if it asked nothing of nodes and of other pods. */
export function withoutConstraints(spec: PodSpec): PodSpec {
  const { nodeSelector: _, affinity: _affinity, topologySpreadConstraints: _spread, ...others } = spec;
  return { ...others, tolerations: [{ operator: 'Exists' }] };
}

function sizeOfRule(rule: PodAffinityTerm | TopologySpreadConstraint): number {
  const { labelSelector, matchLabelKeys = [] } = rule;
  const own = 1 + sizeOfSelector(labelSelector) + matchLabelKeys.length;
  if ('whenUnsatisfiable' in rule) return own;
  const { namespaces = [], namespaceSelector, mismatchLabelKeys = [] } = rule;
  return own + namespaces.length + sizeOfSelector(namespaceSelector) + mismatchLabelKeys.length;
}

function sizeOfSelector({ matchLabels = {}, matchExpressions }: LabelSelectorObject = {}): number {
  return Object.keys(matchLabels).length + sizeOf(matchExpressions);
}

function sizeOf(requirements: readonly Pick<NodeSelectorRequirement, 'values'>[] = []): number {
  return sum(requirements.map(({ values }) => 1 + (values?.length ?? 0)));
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, one) => all + one, 0);
}
