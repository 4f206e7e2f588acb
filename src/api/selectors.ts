import { z } from 'zod';
import { isQualifiedName } from '../kube/label-selector.ts';
import { cel, dnsLabel, labelKey, labelMap, labelValue } from './schema-parts.ts';

/**
 * What policies select: member clusters and objects of the host. Field names and meaning are Karmada's, so that its
 * policies can be used as they are.
 */

const VALUES_RULE = 'values are required with In and NotIn, and not allowed with Exists and DoesNotExist';

const requirement = z
  .object({
    key: labelKey().describe('Label key.'),
    operator: z.enum(['In', 'NotIn', 'Exists', 'DoesNotExist']).describe('How the label is compared with values.'),
    values: z
      .array(labelValue())
      .max(32)
      .exactOptional()
      .describe('At least one with In and NotIn, none with Exists and DoesNotExist.'),
  })
  .refine(({ operator, values = [] }) => (operator === 'In' || operator === 'NotIn') === values.length > 0, {
    path: ['values'],
    message: VALUES_RULE,
  })
  .meta(
    cel({
      rule: "(self.operator in ['In', 'NotIn']) == (has(self.values) && self.values.size() > 0)",
      message: VALUES_RULE,
      fieldPath: '.values',
    }),
  );

const labelSelector = (what: string) =>
  z
    .object({
      matchLabels: labelMap().exactOptional().describe('Labels with exactly these values.'),
      matchExpressions: z.array(requirement).max(8).exactOptional().describe('All of them must hold.'),
    })
    // What is parsed here can be made a selector of without further checks.
    .refine(
      ({ matchLabels = {}, matchExpressions = [] }) =>
        [...Object.keys(matchLabels), ...matchExpressions.map(({ key }) => key)].every(isQualifiedName),
      'keys must be label keys',
    )
    .describe(what);

const fieldRequirement = z.object({
  key: z.enum(['provider', 'region', 'zone']).describe('Field of the spec of the MemberCluster.'),
  operator: z
    .enum(['In', 'NotIn'])
    .describe(
      'In: the field has one of the values; of several zones one is enough. NotIn: it has none of them, or is not set.',
    ),
  values: z.array(labelValue().min(1)).min(1).max(32).describe('Values to compare with.'),
});

/** Which members: AND of what is given; nothing given means all. */
export const clusterAffinity = (what: string) =>
  z
    .object({
      clusterNames: z
        .array(dnsLabel())
        .max(128)
        .exactOptional()
        .describe('Names of MemberClusters. Not given or empty: any.'),
      exclude: z.array(dnsLabel()).max(128).exactOptional().describe('Names of MemberClusters that are left out.'),
      labelSelector: labelSelector(
        'Labels of the MemberCluster: its metadata.labels and its spec.labels.',
      ).exactOptional(),
      fieldSelector: z
        .object({ matchExpressions: z.array(fieldRequirement).max(8).describe('All of them must hold.') })
        .exactOptional()
        .describe('Provider, region and zones of the MemberCluster.'),
    })
    .describe(what);

export const resourceSelector = z.object({
  apiVersion: z.string().min(1).max(128).describe('API version of the kind, such as v1 or apps/v1.'),
  kind: z.string().min(1).max(63).describe('Kind, such as Deployment. A pod is also found by the kinds of its owners.'),
  namespace: dnsLabel()
    .exactOptional()
    .describe('Namespace of the object. Not given: any that the policy may select from.'),
  name: z.string().min(1).max(253).exactOptional().describe('Name of the object. If given, labelSelector is ignored.'),
  labelSelector: labelSelector('Labels of the object itself. Not given: any.').exactOptional(),
});

export type ClusterAffinity = z.output<ReturnType<typeof clusterAffinity>>;
export type ResourceSelector = z.output<typeof resourceSelector>;
