import { z } from 'zod';
import { duration, groups, singleGroup } from './cluster-tiers.ts';
import { replicaScheduling } from './replica-scheduling.ts';
import { cel, labelKey, labelValue } from './schema-parts.ts';
import { hysteresis, scoreWeights } from './scoring.ts';

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
    'Taints of clusters (spec.clusterTaints of a MemberCluster) that pods may go to nevertheless. Taints of virtual nodes (spec.taints) only the pods themselves tolerate.',
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

/** Where pods may go and how they are divided; the middle of a PlacementPolicy. */
export const placement = z
  .object({
    clusterAffinity: singleGroup.exactOptional(),
    clusterAffinities: groups,
    clusterTolerations: tolerations,
    spreadConstraints,
    replicaScheduling: replicaScheduling.exactOptional(),
    scoreWeights,
    hysteresis,
    avoidFor: duration()
      .default('5m')
      .describe(
        'How long a member is avoided for a workload after it refused one of its pods (quota, admission) or left it Pending.',
      ),
    onRefusal: z
      .enum(['Stay', 'TryNext'])
      .default('Stay')
      .describe(
        'What becomes of the pod that was refused. Stay: it stays bound to the member, and starts there once it is taken. ' +
          'TryNext: 10 s later it is evicted, so that its controller makes another, which goes to the next cluster; only pods ' +
          'that never started, of a ReplicaSet, StatefulSet or ReplicationController, and only while another cluster takes ' +
          'them. Needs manifests/scheduler/descheduler.yaml.',
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
        rule: "!has(self.onRefusal) || self.onRefusal != 'TryNext' || !has(self.avoidFor) || duration(self.avoidFor) >= duration('30s')",
        message:
          'must be 30s or more with onRefusal TryNext: else the pod that comes instead could go to the same member again',
        fieldPath: '.avoidFor',
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
export type SpreadConstraint = NonNullable<Placement['spreadConstraints']>[number];
