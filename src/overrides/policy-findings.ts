import { absentKind, whyNeverChosen } from '../api/choosable-kinds.ts';
import { LOCAL } from '../api/cluster-tiers.ts';
import { type Condition, conditionNow } from '../api/conditions.ts';
import type { OverridePolicy } from '../api/override-policy.ts';
import type { OverridePolicyStatus } from '../api/override-policy-status.ts';
import { compileAffinity } from '../placement/cluster-affinity.ts';
import type { Cluster } from '../api/cluster.ts';
import { type CustomKind, customKindKey } from '../api/custom-kinds.ts';
import { OF_DATA } from './owners.ts';

/** What in a policy that is in use has no effect, because the members or kinds that it is for are not there, each with the field's path. */
export function overrideWarnings({ spec }: OverridePolicy, members: readonly Cluster[]): string[] {
  const known = new Set(members.map(({ name }) => name));
  const never = spec.resourceSelectors.flatMap((selector, index) => {
    const why = whyNeverChosen(selector, OF_DATA);
    return why === undefined ? [] : [`spec.resourceSelectors[${String(index)}].kind: ${why}`];
  });
  const targets = spec.overrideRules.flatMap(({ targetCluster }, index) => {
    if (targetCluster === undefined) return [];
    const path = `spec.overrideRules[${String(index)}].targetCluster`;
    const { clusterNames = [], exclude = [] } = targetCluster;
    const unknown = [...new Set([...clusterNames, ...exclude])].filter((name) => !known.has(name));
    const missing = unknown.filter((name) => name !== LOCAL);
    const warnings = missing.length === 0 ? [] : [`${path}: there is no member ${missing.join(', ')}`];
    if (clusterNames.includes(LOCAL)) warnings.push(`${path}: pods that stay on the host are never changed`);
    const whyNot = compileAffinity(targetCluster);
    const none = members.length > 0 && members.every((member) => whyNot(member) !== undefined);
    return none && warnings.length === 0 ? [`${path}: chooses none of the members there are`] : warnings;
  });
  return [...never, ...targets];
}

/** A kind that a policy chooses by, and the path of the selector. */
export interface ChosenKind extends CustomKind {
  readonly path: string;
  readonly byLabels: boolean;
}

/** Kinds that are not Kubernetes' own. */
export function customKindsOf({ spec }: OverridePolicy): ChosenKind[] {
  return spec.resourceSelectors.flatMap(({ apiVersion, kind, name, labelSelector }, index) => {
    if (customKindKey({ apiVersion, kind }) === undefined) return [];
    const byLabels = labelSelector !== undefined && name === undefined;
    return [{ path: `spec.resourceSelectors[${String(index)}]`, apiVersion, kind, byLabels }];
  });
}

/** The warning for a selector of a kind that the host does not have. */
export function absentWarning(chosen: ChosenKind): string {
  return `${chosen.path}.kind: ${absentKind(chosen)}`;
}

/** The warning for a selector by labels of a kind of which no labels can be read. */
export function unreadWarning({ path, apiVersion, kind }: ChosenKind, why: string): string {
  return (
    `${path}.labelSelector: labels of ${kind} (${apiVersion}) cannot be read, so no pod of such an object is sent to a member: ${why}. Or choose ` +
    'the objects by name, all of the kind, or the pods by labels of their own'
  );
}

/** What is between two contradictions in the condition. */
const BETWEEN = '; ';

/** The contradictions that a status names, and what else is between these signs. */
export function contradictionsIn(status: OverridePolicyStatus | undefined): string[] {
  const condition = status?.conditions?.find(({ type }) => type === 'Consistent');
  return condition?.status === 'False' ? condition.message.split(BETWEEN) : [];
}

/** The status of a policy for what was found out about it; times of conditions that stay as they are do not change. */
export function overridePolicyStatus(found: {
  generation: number;
  problems: readonly string[];
  warnings: readonly string[];
  before: OverridePolicyStatus | undefined;
  now: number;
}): OverridePolicyStatus {
  const { generation, problems, warnings, before, now } = found;
  const condition = (type: string, good: boolean, reason: string, message: string): Condition => {
    const status = good ? 'True' : 'False';
    return conditionNow(before, { type, status, observedGeneration: generation, reason, message }, now);
  };
  const invalid = `the policy is not followed as it is now until this is put right: ${problems.join('; ')}`;
  const contradictions = [...problems, ...warnings].join(BETWEEN);
  return {
    observedGeneration: generation,
    conditions: [
      problems.length === 0
        ? condition('Accepted', true, 'Accepted', 'the policy is in use')
        : condition('Accepted', false, 'Invalid', invalid),
      contradictions === ''
        ? condition('Consistent', true, 'Consistent', 'no contradictions were found')
        : condition('Consistent', false, 'Contradictory', contradictions),
    ],
  };
}
