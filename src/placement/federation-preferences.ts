import { z } from 'zod';
import { placement } from '../api/placement.ts';
import { clusterPreferences } from '../api/replica-scheduling.ts';
import { labelRequirement, matchesLabels } from '../kube/label-selector.ts';
import type { LabelRequirement } from '../kube/label-selector.ts';
import { compilePlacement } from './compiled-placement.ts';
import type { CompiledPlacement } from './compiled-placement.ts';
import type { OwnerChain, TypedObject } from './owner-chain.ts';

/** By kind, the annotation in which Federation v1 kept how replicas are divided. */
const PREFERENCES = new Map([
  ['Deployment', 'federation.kubernetes.io/deployment-preferences'],
  ['ReplicaSet', 'federation.kubernetes.io/replica-set-preferences'],
  ['Job', 'federation.kubernetes.io/job-preferences'],
]);
/** The annotation in which Federation v1 kept which clusters are meant: a list of conditions on their labels. */
const CLUSTER_SELECTOR = 'federation.alpha.kubernetes.io/cluster-selector';

/** Absent and null are the same in these annotations. */
const withoutNulls = z.preprocess(dropNulls, clusterPreferences.prefault({}));
const conditions = z.array(
  z.object({ key: z.string(), operator: z.string(), values: z.array(z.string()).nullish() }).strict(),
);

/** Words for operators in these annotations, in lower case. */
const OPERATORS = new Map([
  ['in', 'In'],
  ['=', 'In'],
  ['==', 'In'],
  ['notin', 'NotIn'],
  ['!=', 'NotIn'],
  ['exists', 'Exists'],
  ['doesnotexist', 'DoesNotExist'],
  ['!', 'DoesNotExist'],
  ['gt', 'Gt'],
  ['lt', 'Lt'],
]);

export type FederationPreferences =
  | { readonly key: string; readonly placement: CompiledPlacement }
  | { readonly key: string; readonly problem: string };

/**
 * What the Federation v1 annotations of a pod's owners ask for: the nearest owner that has any counts. They mean the same
 * as `clusterPreferences` and a label selector for clusters in a policy. An annotation that cannot be read is a problem, for
 * an Event on that object, and otherwise as if it were not there. Undefined without any annotation.
 */
export function federationPreferences(chain: OwnerChain): FederationPreferences | undefined {
  for (const object of chain) {
    const annotations = object.metadata.annotations ?? {};
    const key = PREFERENCES.get(object.kind);
    const preferences = key === undefined ? undefined : annotations[key];
    const selector = PREFERENCES.has(object.kind) ? annotations[CLUSTER_SELECTOR] : undefined;
    const used = preferences === undefined ? CLUSTER_SELECTOR : (key ?? '');
    if (preferences === undefined && selector === undefined) continue;
    try {
      return { key: used, placement: compile(preferences, selector) };
    } catch (error) {
      return { key: used, problem: problemInWords(object, error) };
    }
  }
  return undefined;
}

function compile(preferences: string | undefined, selector: string | undefined): CompiledPlacement {
  const wanted = within(PREFERENCES_WORDS, () => withoutNulls.parse(JSON.parse(preferences ?? '{}')));
  checkLimits(wanted.clusters);
  const compiled = compilePlacement(placement.parse({ replicaScheduling: { clusterPreferences: wanted } }));
  if (selector === undefined) return compiled;
  const requirements = within(SELECTOR_WORDS, () => conditions.parse(JSON.parse(selector)).map(requirementOf));
  const whyNot = ({ labels }: { labels: Readonly<Record<string, string>> }): string | undefined =>
    matchesLabels(requirements, labels) ? undefined : `annotation ${CLUSTER_SELECTOR} asks for other labels`;
  const [group] = compiled.groups;
  const tiers = group.tiers.map((tier) => ({ ...tier, whyNot }));
  return { ...compiled, groups: [{ ...group, tiers }] };
}

/** What a policy's rules of the API server would say. */
function checkLimits(clusters: z.output<typeof clusterPreferences>['clusters']): void {
  for (const [name, { minReplicas, maxReplicas = minReplicas }] of Object.entries(clusters)) {
    if (maxReplicas < minReplicas) {
      throw new Error(
        `${PREFERENCES_WORDS} cannot be used: clusters.${name}.maxReplicas: must not be less than minReplicas`,
      );
    }
  }
}

const PREFERENCES_WORDS = 'the preferences';
const SELECTOR_WORDS = `annotation ${CLUSTER_SELECTOR}`;

function within<T>(what: string, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    if (error instanceof z.ZodError) {
      const issues = error.issues.map(({ path, message }) => `${path.join('.') || 'value'}: ${message}`);
      throw new Error(`${what} cannot be used: ${issues.join('; ')}`, { cause: error });
    }
    throw new Error(`${what} cannot be read: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
}

function requirementOf({ key, operator, values }: z.output<typeof conditions>[number]): LabelRequirement {
  return labelRequirement(key, OPERATORS.get(operator.toLowerCase()) ?? operator, values ?? []);
}

function problemInWords({ kind, metadata }: TypedObject, error: unknown): string {
  const why = error instanceof Error ? error.message : String(error);
  return `the federation annotations of ${kind} ${metadata.name} are ignored: ${why}`;
}

function dropNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(dropNulls);
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.entries(value).filter(([, field]) => field !== null);
  return Object.fromEntries(fields.map(([name, field]) => [name, dropNulls(field)]));
}
