import { z } from 'zod';
import { cel, listMap } from './schema-parts.ts';
import { clusterAffinity } from './selectors.ts';

/** The pseudo member that stands for the host's own nodes; no MemberCluster may have this name. */
export const LOCAL = 'local';

const { clusterNames, ...otherFields } = clusterAffinity('').shape;
/** As everywhere, and here the host itself can be meant too. */
export const affinityFields = {
  ...otherFields,
  clusterNames: clusterNames.describe(
    `Names of MemberClusters; ${LOCAL} stands for the nodes of the host itself. Not given or empty: any.`,
  ),
};

const DURATION = /^([0-9]+(h|m|s))+$/;
export const duration = () =>
  z
    .string()
    .min(2)
    .max(16)
    .regex(DURATION)
    .meta(cel({ rule: "duration(self) <= duration('24h')", message: 'must not be longer than 24h' }));

const COUNT_OR_PERCENT = '^(100|[1-9]?[0-9])%$';
const countOrPercent = z
  .union([z.string().max(4).regex(new RegExp(COUNT_OR_PERCENT)), z.int().min(0)])
  .meta({ 'x-kubernetes-int-or-string': true, pattern: COUNT_OR_PERCENT, maxLength: 4 });

/** What a group of clusters may take in all, and how long pods wait for it. */
const tierFields = {
  ...affinityFields,
  max: countOrPercent
    .exactOptional()
    .describe(
      'The most pods of one revision of a workload in these clusters together: a number, or a percentage of its replicas, ' +
        'rounded down. Not given: as many as fit.',
    ),
  tryNextAfter: duration()
    .exactOptional()
    .describe(
      'How long a pod waits for room in these clusters before the next tier is tried, such as 90s or 5m. Not given: no time. ' +
        'A pod that was bound to a member here and stays Pending there for this long counts as refused by it.',
    ),
};

const NO_NEGATIVE_MAX = {
  rule: '!has(self.max) || type(self.max) != int || self.max >= 0',
  message: 'must not be negative',
  fieldPath: '.max',
};

const tier = z
  .object({
    affinityName: z.string().min(1).max(32).exactOptional().describe('Name of the tier, for messages.'),
    ...tierFields,
  })
  .meta(
    cel(NO_NEGATIVE_MAX, {
      rule: 'has(self.labelSelector) || has(self.fieldSelector) || has(self.clusterNames)',
      message: 'must choose clusters by labelSelector, fieldSelector or clusterNames',
    }),
  );

const groupFields = {
  ...tierFields,
  overflowAffinities: z
    .array(tier)
    .max(8)
    .exactOptional()
    .describe(
      'Further tiers, in order, for pods that the clusters above have no room for or may not take. A cluster belongs to the ' +
        'first tier that matches it. Scale-in empties the last tier first.',
    ),
};

const OVERFLOW_NEEDS_A_CHOICE = {
  rule:
    '!has(self.overflowAffinities) || self.overflowAffinities.size() == 0 || ' +
    'has(self.labelSelector) || has(self.fieldSelector) || has(self.clusterNames)',
  message: 'needs labelSelector, fieldSelector or clusterNames beside it: nothing is left over by all clusters',
  fieldPath: '.overflowAffinities',
};

export const singleGroup = z.object(groupFields).meta({
  description: 'Clusters that pods may go to. Not given, and no clusterAffinities: every cluster.',
  ...cel(NO_NEGATIVE_MAX, OVERFLOW_NEEDS_A_CHOICE),
});

export const groups = z
  .array(
    z
      .object({
        affinityName: z.string().min(1).max(32).describe('Name of the group.'),
        ...groupFields,
      })
      .meta(cel(NO_NEGATIVE_MAX, OVERFLOW_NEEDS_A_CHOICE)),
  )
  .min(1)
  .max(16)
  .exactOptional()
  .meta({
    description:
      'Groups of clusters, in order. A whole workload lives in one of them: the first one that has room for all its pods. ' +
      'While it has pods there it stays, unless no cluster of the group can be used; then it goes on to a later one.',
    ...listMap('affinityName'),
  });

export type PlacementTier = z.output<typeof tier>;
