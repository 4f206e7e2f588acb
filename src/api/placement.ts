import { z } from 'zod';
import { cel, labelKey, labelValue, listMap } from './schema-parts.ts';
import { clusterAffinity } from './selectors.ts';

/** The pseudo member that stands for the host's own nodes; no MemberCluster may have this name. */
export const LOCAL = 'local';

const { clusterNames, ...otherFields } = clusterAffinity('').shape;
/** As everywhere, and here the host itself can be meant too. */
const affinityFields = {
  ...otherFields,
  clusterNames: clusterNames.describe(
    `Names of MemberClusters; ${LOCAL} stands for the nodes of the host itself. Not given or empty: any.`,
  ),
};

const DURATION = /^([0-9]+(h|m|s))+$/;
const duration = () =>
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

const singleGroup = z.object(groupFields).meta({
  description: 'Clusters that pods may go to. Not given, and no clusterAffinities: every cluster.',
  ...cel(NO_NEGATIVE_MAX, OVERFLOW_NEEDS_A_CHOICE),
});

const groups = z
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

const tolerations = z
  .array(
    z
      .object({
        key: labelKey().exactOptional().describe('Taint key. Not given: every key, with operator Exists.'),
        operator: z
          .enum(['Exists', 'Equal'])
          .default('Equal')
          .describe('Exists: whatever the value. Equal: the value must be the same.'),
        value: labelValue().exactOptional().describe('Value of the taint, for operator Equal.'),
        effect: z
          .enum(['NoSchedule', 'PreferNoSchedule', 'NoExecute'])
          .exactOptional()
          .describe('Effect of the taint. Not given: every effect.'),
        tolerationSeconds: z
          .int()
          .min(0)
          .exactOptional()
          .meta({ description: 'How long a NoExecute taint is tolerated. Not given: for ever.', unit: 'seconds' }),
      })
      .meta(
        cel(
          {
            rule: "has(self.key) || (has(self.operator) && self.operator == 'Exists')",
            message: 'must be Exists when there is no key',
            fieldPath: '.operator',
          },
          {
            rule: "!has(self.value) || self.value == '' || !has(self.operator) || self.operator != 'Exists'",
            message: 'must be empty when operator is Exists',
            fieldPath: '.value',
          },
          {
            rule: "!has(self.tolerationSeconds) || (has(self.effect) && self.effect == 'NoExecute')",
            message: 'is only for effect NoExecute',
            fieldPath: '.tolerationSeconds',
          },
        ),
      ),
  )
  .max(16)
  .exactOptional()
  .describe(
    'Taints of clusters (spec.taints of a MemberCluster) that pods may go to nevertheless, besides what they tolerate themselves.',
  );

const spreadConstraints = z
  .array(
    z
      .object({
        spreadByField: z
          .enum(['cluster', 'region', 'zone', 'provider'])
          .exactOptional()
          .describe(
            'Field whose values make the groups. Neither field nor label: cluster. A cluster with several zones counts in each.',
          ),
        spreadByLabel: labelKey().exactOptional().describe('Label of clusters whose values make the groups.'),
        minGroups: z
          .int()
          .min(1)
          .max(100)
          .default(1)
          .describe('Pods are spread over at least this many groups, replicas allowing.'),
        maxGroups: z
          .int()
          .min(1)
          .max(100)
          .exactOptional()
          .describe('Pods are in at most this many groups. Not given: no limit.'),
        whenUnsatisfiable: z
          .enum(['DoNotSchedule', 'ScheduleAnyway'])
          .default('DoNotSchedule')
          .describe('DoNotSchedule: pods wait until it can be kept. ScheduleAnyway: it is kept as far as possible.'),
      })
      .meta(
        cel(
          {
            rule: '!has(self.spreadByField) || !has(self.spreadByLabel)',
            message: 'is not allowed beside spreadByField',
            reason: 'FieldValueForbidden',
            fieldPath: '.spreadByLabel',
          },
          {
            rule: '!has(self.maxGroups) || self.maxGroups >= self.minGroups',
            message: 'must not be less than minGroups',
            fieldPath: '.maxGroups',
          },
        ),
      ),
  )
  .max(8)
  .exactOptional()
  .describe('Over how many clusters, regions, zones, providers or label values the pods of a workload are spread.');

const MAX_WEIGHT = 1_000_000;
const weight = () => z.int().min(1).max(MAX_WEIGHT);

const weightPreference = z
  .object({
    staticWeightList: z
      .array(
        z.object({
          targetCluster: z.object(affinityFields).describe('Clusters that get this weight.'),
          weight: weight().describe('Share of each of these clusters, in relation to the weights of the others.'),
        }),
      )
      .min(1)
      .max(32)
      .exactOptional()
      .describe(
        'Weights of clusters; of several that match the largest counts. Clusters that none matches get no pods, unless none ' +
          'matches any: then all weigh the same.',
      ),
    dynamicWeight: z
      .enum(['AvailableReplicas'])
      .exactOptional()
      .describe('AvailableReplicas: the weight is how many more such pods fit. staticWeightList is then ignored.'),
  })
  .describe('Weights of the clusters, for Weighted. Not given: all clusters weigh the same.');

export const clusterPreferences = z
  .object({
    rebalance: z
      .boolean()
      .default(false)
      .describe(
        'False: pods that run are left where they are, and only new ones even out the division. True: the division is worked ' +
          'out anew each time, and scale-in and rebalancing lead to it.',
      ),
    division: z
      .enum(['Total', 'Remainder'])
      .default('Total')
      .describe(
        'Total: all replicas are divided by weight, then held between the limits. Remainder: every cluster first gets its ' +
          'minReplicas and only the rest is divided, as KubeFed does.',
      ),
    clusters: z
      .record(
        z.string(),
        z
          .object({
            minReplicas: z
              .int()
              .min(0)
              .max(MAX_WEIGHT)
              .default(0)
              .describe('The fewest pods of a workload in this cluster, replicas allowing.'),
            maxReplicas: z
              .int()
              .min(0)
              .max(MAX_WEIGHT)
              .exactOptional()
              .describe('The most pods of a workload in this cluster. Not given: no limit.'),
            weight: z
              .int()
              .min(0)
              .max(MAX_WEIGHT)
              .default(0)
              .describe('Share in relation to the others. 0: minReplicas and no more.'),
          })
          .meta(
            cel({
              rule: '!has(self.maxReplicas) || self.maxReplicas >= self.minReplicas',
              message: 'must not be less than minReplicas',
              fieldPath: '.maxReplicas',
            }),
          ),
      )
      .meta({
        description: `Limits and weight by name of the cluster; ${LOCAL} for the nodes of the host, * for all that are not named. Clusters that are not listed get no pods.`,
        maxProperties: 64,
        ...cel({
          rule: "self.all(k, k == '*' || (k.size() <= 40 && k.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')))",
          message: 'keys must be names of clusters, or *',
        }),
      })
      .default({ '*': { minReplicas: 0, weight: 1 } }),
  })
  .describe("The fields of KubeFed's ReplicaSchedulingPreference, in place of weightPreference.");

const replicaScheduling = z
  .object({
    replicaSchedulingType: z
      .enum(['Divided', 'Duplicated'])
      .default('Divided')
      .describe('Divided: each replica has a seat in one of the clusters. Duplicated is refused.'),
    replicaDivisionPreference: z
      .enum(['Weighted', 'Aggregated'])
      .default('Weighted')
      .describe('Weighted: by the weights of the clusters. Aggregated: in as few clusters as have the room.'),
    weightPreference: weightPreference.exactOptional(),
    clusterPreferences: clusterPreferences.exactOptional(),
    whenFull: z
      .enum(['Wait', 'TryNext'])
      .exactOptional()
      .describe(
        'What happens to a seat in a cluster without room. Wait: the pod waits for it, so that the division stays exact. TryNext: another ' +
          'cluster takes it. Default: Wait with static weights, TryNext with clusterPreferences; dynamic weights and Aggregated always try the next.',
      ),
  })
  .meta({
    description:
      'How the replicas of a workload are divided. Not given: each pod goes to the best cluster that has room, local first.',
    ...cel(
      {
        rule: "!has(self.replicaSchedulingType) || self.replicaSchedulingType != 'Duplicated'",
        message:
          'Duplicated is not offered: a pod of the host exists once, so its workload cannot have all replicas in every cluster; ' +
          'make one workload for each cluster and choose it with clusterAffinity, or use Divided',
        fieldPath: '.replicaSchedulingType',
      },
      {
        rule: "!has(self.weightPreference) || !has(self.replicaDivisionPreference) || self.replicaDivisionPreference != 'Aggregated'",
        message: 'is not allowed with Aggregated, which divides by free room',
        reason: 'FieldValueForbidden',
        fieldPath: '.weightPreference',
      },
      {
        rule:
          '!has(self.clusterPreferences) || (!has(self.weightPreference) && ' +
          "(!has(self.replicaDivisionPreference) || self.replicaDivisionPreference != 'Aggregated'))",
        message: 'is not allowed with weightPreference or Aggregated',
        reason: 'FieldValueForbidden',
        fieldPath: '.clusterPreferences',
      },
    ),
  });

const scoreWeight = (value: number, description: string) =>
  z.int().min(0).max(100).default(value).describe(description);
const scoreWeights = z
  .object({
    locality: scoreWeight(40, 'Nearness: 100 for local, 50 for a cluster in the region of the host, 0 for others.'),
    freeRoom: scoreWeight(30, 'Room: 100 for the cluster with most room for such pods, others in proportion.'),
    price: scoreWeight(
      20,
      'Price (annotation spillway.dev/price of MemberClusters): 100 for the cheapest, 0 for the dearest or without a price.',
    ),
    images: scoreWeight(10, 'Images: the percentage of the images of the pod that nodes of the cluster have.'),
    signals: z
      .array(
        z.object({
          name: z.string().min(1).max(63).describe('Name of the score.'),
          weight: z.int().min(1).max(100).describe('Weight of the score.'),
        }),
      )
      .max(16)
      .exactOptional()
      .meta({
        description:
          'Scores from outside, from -100 to 100 for each cluster, which are stretched to 0 to 100. Without a value: 0 of 100.',
        ...listMap('name'),
      }),
  })
  .prefault({})
  .describe('Weights of what makes one cluster better than another, from 0 (does not count) to 100.');

/** Where pods may go and how they are divided; the middle of a PlacementPolicy. */
export const placement = z
  .object({
    clusterAffinity: singleGroup.exactOptional(),
    clusterAffinities: groups,
    clusterTolerations: tolerations,
    spreadConstraints,
    replicaScheduling: replicaScheduling.exactOptional(),
    scoreWeights,
    hysteresis: z
      .int()
      .min(0)
      .max(100)
      .default(10)
      .describe(
        'Points by which another cluster must be better before it takes the place of one that has pods of the workload.',
      ),
    avoidFor: duration()
      .default('5m')
      .describe(
        'How long a member is avoided for a workload after it refused one of its pods (quota, admission) or left it Pending.',
      ),
  })
  .prefault({})
  .meta({
    description: 'Which clusters the pods of these objects go to, and how they are divided.',
    ...cel(
      {
        rule: '!has(self.clusterAffinity) || !has(self.clusterAffinities)',
        message: 'is not allowed beside clusterAffinity',
        reason: 'FieldValueForbidden',
        fieldPath: '.clusterAffinities',
      },
      {
        rule:
          '!(has(self.clusterAffinity) && has(self.clusterAffinity.overflowAffinities) || ' +
          'has(self.clusterAffinities) && self.clusterAffinities.exists(g, has(g.overflowAffinities))) || ' +
          '!has(self.replicaScheduling) || ' +
          "(has(self.replicaScheduling.replicaDivisionPreference) && self.replicaScheduling.replicaDivisionPreference == 'Aggregated') || " +
          '(has(self.replicaScheduling.weightPreference) && has(self.replicaScheduling.weightPreference.dynamicWeight))',
        message:
          'must be Aggregated, or use dynamicWeight, or be left out when there are overflowAffinities: static weights do not ask ' +
          'for room, so nothing would ever overflow',
        fieldPath: '.replicaScheduling',
      },
    ),
  });

export type Placement = z.output<typeof placement>;
export type PlacementTier = z.output<typeof tier>;
export type SpreadConstraint = NonNullable<Placement['spreadConstraints']>[number];
export type ReplicaScheduling = z.output<typeof replicaScheduling>;
export type ClusterPreferences = z.output<typeof clusterPreferences>;
export type ScoreWeights = z.output<typeof scoreWeights>;
