import { z } from 'zod';
import { affinityFields, LOCAL } from './cluster-tiers.ts';
import { cel } from './schema-parts.ts';

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

export const replicaScheduling = z
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

export type ReplicaScheduling = z.output<typeof replicaScheduling>;
export type ClusterPreferences = z.output<typeof clusterPreferences>;
