import { z } from 'zod';
import type { KubeObject } from '../kube/object.ts';
import { apiVersionOf, resourceOf } from '../kube/resource.ts';
import type { KindDefinition } from './crd.ts';
import { OWN_VERSION } from './marks.ts';
import { overridersSchema } from './overriders.ts';
import { overridePolicyStatus } from './override-policy-status.ts';
import { parsed, problemsOf } from './parse-object.ts';
import { AGE, column, conditionColumn, type PrinterColumn } from './printer-column.ts';
import { cel } from './schema-parts.ts';
import { clusterAffinity, resourceSelector } from './selectors.ts';

export const OVERRIDE_POLICIES = resourceOf(OWN_VERSION, 'OverridePolicy', 'overridepolicies');
export const CLUSTER_OVERRIDE_POLICIES = resourceOf(
  OWN_VERSION,
  'ClusterOverridePolicy',
  'clusteroverridepolicies',
  false,
);

const overriders = overridersSchema.describe(
  'What is changed. Applied in the order in which the fields are listed here, and each list in its own order.',
);
/** Whoever may write policies in a namespace need not be allowed to choose identities in members. */
const namespacedOverriders = overriders.meta(
  cel({
    rule: '!has(self.serviceAccountOverrider)',
    message: 'is only allowed in a ClusterOverridePolicy',
    reason: 'FieldValueForbidden',
    fieldPath: '.serviceAccountOverrider',
  }),
);

const spec = (own: typeof overriders, namespaced: boolean) =>
  z
    .object({
      resourceSelectors: z
        .array(resourceSelector)
        .max(32)
        .default([])
        .describe(
          namespaced
            ? 'Objects of this namespace that the policy applies to. Empty: all.'
            : 'Objects that the policy applies to. Empty: all.',
        ),
      overrideRules: z
        .array(
          z.object({
            targetCluster: clusterAffinity('Members that the rule is for. Not given: all.').exactOptional(),
            overriders: own,
          }),
        )
        .max(16)
        .default([])
        .describe('All rules whose members match are applied, in this order.'),
      applyTo: z
        .enum(['NewPods', 'RunningPods'])
        .default('NewPods')
        .describe(
          'Which pods follow when the policy is edited, created or deleted. NewPods: those created in a member from then on. ' +
            'RunningPods: also running ones, in labels, annotations, images, resources and tolerations; a new image restarts ' +
            'its container. Copies of ConfigMaps and Secrets always follow at once.',
        ),
    })
    .describe('What is changed, where, and in which objects.');

const namespacedSpec = spec(namespacedOverriders, true);
const clusterSpec = spec(overriders, false);

const columns: PrinterColumn[] = [
  conditionColumn('Accepted', 'The policy is in use.'),
  conditionColumn('Consistent', 'The members that its rules are for are there.'),
  column('ApplyTo', 'string', '.spec.applyTo', 'Which pods follow an edit.'),
  AGE,
];

export const OVERRIDE_POLICY_KINDS: readonly KindDefinition[] = [
  {
    resource: OVERRIDE_POLICIES,
    shortNames: ['op'],
    columns,
    schema: z
      .object({ spec: namespacedSpec, status: overridePolicyStatus.exactOptional() })
      .describe(
        'OverridePolicy changes objects of its namespace when they are rendered for a member cluster. ' +
          'It is applied after every ClusterOverridePolicy.',
      ),
  },
  {
    resource: CLUSTER_OVERRIDE_POLICIES,
    shortNames: ['cop'],
    columns,
    schema: z
      .object({ spec: clusterSpec, status: overridePolicyStatus.exactOptional() })
      .describe('ClusterOverridePolicy changes objects of any namespace when they are rendered for a member cluster.'),
  },
];

export type OverridePolicySpec = z.output<typeof clusterSpec>;
export type OverridePolicyKind = 'OverridePolicy' | 'ClusterOverridePolicy';
export interface OverridePolicy extends KubeObject {
  kind: OverridePolicyKind;
  spec: OverridePolicySpec;
}

/**
 * A policy as the API server sent it, with every default filled in. The API server checks the same schema, but an object
 * may be older than its CRD. `problems` name the field and what is wrong with it.
 */
export function parseOverridePolicy(
  kind: OverridePolicyKind,
  raw: KubeObject,
): { policy: OverridePolicy } | { problems: string[] } {
  const { spec } = raw as { spec?: unknown };
  const checked = parsed(kind === 'OverridePolicy' ? namespacedSpec : clusterSpec, spec);
  if (!checked.success) return { problems: problemsOf(checked.error) };
  const resource = kind === 'OverridePolicy' ? OVERRIDE_POLICIES : CLUSTER_OVERRIDE_POLICIES;
  return { policy: { apiVersion: apiVersionOf(resource), kind, metadata: raw.metadata, spec: checked.data } };
}
