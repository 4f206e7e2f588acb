import { createHash } from 'node:crypto';
import { z } from 'zod';
import { groupVersionOf } from '../kube/group-version.ts';
import type { KubeObject } from '../kube/object.ts';
import { resourceOf } from '../kube/resource.ts';
import { conditions } from './conditions.ts';
import type { KindDefinition } from './crd.ts';
import { OWN_VERSION } from './marks.ts';
import { parseObject } from './parse-object.ts';
import { column, wide } from './printer-column.ts';
import { cel, labelValue, listMap } from './schema-parts.ts';

export const WORKLOAD_PLACEMENTS = resourceOf(OWN_VERSION, 'WorkloadPlacement', 'workloadplacements');

/** The oldest moves are forgotten; those of an hour, by which moves are limited, are counted together instead (placement/folded-moves.ts). */
export const MOST_MOVES = 64;
/** Those of the pods that were moved first are forgotten: the pods that come in their places came long ago. */
export const MOST_PRESERVED = 128;

const time = (description: string) => z.iso.datetime().meta({ description, format: 'date-time' });
const count = (description: string) => z.int().min(0).describe(description);

const spec = z
  .object({
    workload: z
      .object({
        apiVersion: z.string().min(1).max(317).describe('API version of the workload.'),
        kind: z.string().min(1).max(63).describe('Kind of the workload.'),
        name: z.string().min(1).max(253).describe('Name of the workload, in the namespace of this object.'),
        uid: z.string().min(1).max(64).describe('UID of the workload.'),
      })
      .meta({
        description: 'The workload whose pods this is about.',
        ...cel({ rule: 'self == oldSelf', message: 'cannot be changed' }),
      }),
  })
  .describe('Written by Spillway only.');

const status = z
  .object({
    policy: z
      .object({
        kind: z
          .enum(['PlacementPolicy', 'ClusterPlacementPolicy', 'Annotation', 'Namespace'])
          .describe(
            'Where the rules come from: a policy, an annotation of the workload, or the label of the namespace.',
          ),
        name: z.string().max(317).describe('Name of the policy, key of the annotation, or name of the namespace.'),
        generation: z
          .int()
          .min(0)
          .exactOptional()
          .describe('metadata.generation of the policy that the plan was made by.'),
      })
      .exactOptional()
      .describe('What decides where the pods go.'),
    affinityName: z
      .string()
      .max(32)
      .exactOptional()
      .describe('The group of clusterAffinities that the workload lives in.'),
    revision: z.string().max(253).exactOptional().describe('The revision of the workload that actual counts.'),
    replicas: count('Pods the workload asks for.').exactOptional(),
    placed: count('Pods of the revision that have a place.').exactOptional(),
    waiting: count('Pods that wait for a place.').exactOptional(),
    where: z.string().max(1024).exactOptional().describe('Where the pods of the revision are, in short.'),
    clusters: z
      .array(
        z.object({
          name: z.string().max(63).describe('The cluster; local for the nodes of the host.'),
          tier: count('Its tier, counted from 0.'),
          target: count(
            'Pods it should have in the end. Not given where pods simply go to the best cluster.',
          ).exactOptional(),
          share: count(
            'Pods it was to have when the workload began to shrink, for as long as it does. With a division by room it shrinks in ' +
              'proportion to these.',
          ).exactOptional(),
          actual: count('Pods of the revision it has, on their way included.'),
        }),
      )
      .exactOptional()
      .meta({ description: 'The clusters, in the order of tiers.', ...listMap('name') }),
    avoided: z
      .array(
        z.object({
          cluster: z.string().max(63).describe('The member that is avoided.'),
          reason: z.string().max(1024).describe('One word for programs.'),
          message: z.string().max(1024).describe('What the member said, or what was seen there.'),
          since: time('When it began to be avoided, by the first of the refusals that count.'),
          until: time('When it is tried again.'),
        }),
      )
      .exactOptional()
      .meta({
        description:
          'Members that refused a pod of this workload, left it Pending, or where pods did not get well, and that are not tried again yet.',
        ...listMap('cluster'),
      }),
    lastDecision: z
      .object({
        time: time('When it was made.'),
        cluster: z.string().max(63).exactOptional().describe('Where the pod may go first. Not given: it waits.'),
        message: z.string().max(4096).describe('Why, cluster by cluster.'),
      })
      .exactOptional()
      .describe('What was last decided for a pod, and why.'),
    moves: z
      .array(
        z.object({
          strategy: z.string().max(63).describe('Why they were moved, as in spillway_descheduler_moves_total.'),
          from: z
            .string()
            .max(63)
            .describe("The cluster they were in, or 'several clusters' where there is no room to tell them apart."),
          count: z.int().min(1).describe('How many.'),
          since: time('When the first of them was moved.'),
          last: time('When the last of them was moved.'),
          pod: z.string().max(253).describe('The last of them.'),
          message: z.string().max(1024).describe('What the matter was with the last of them.'),
        }),
      )
      .max(MOST_MOVES)
      .exactOptional()
      .describe(
        'Pods of the workload that were moved lately, the newest first; those of ten minutes that were moved for the same reason together. ' +
          'Written by whoever moves pods.',
      ),
    preserved: z
      .array(
        z.object({
          pod: z.string().max(253).describe('The pod that was moved.'),
          uid: z.string().max(64).describe('Its UID.'),
          time: time('When it was about to be moved.'),
          labels: z
            .record(z.string(), labelValue())
            .meta({ maxProperties: 16 })
            .describe('What it showed in its status then, as labels for the pod that comes in its place.'),
        }),
      )
      .max(MOST_PRESERVED)
      .exactOptional()
      .meta({
        description:
          'What pods showed when they were moved last, as failover.application.statePreservation and failover.cluster.statePreservation say. Written by whoever moves pods, before they go.',
        ...listMap('pod'),
      }),
    plannedAt: time('When the targets were worked out.').exactOptional(),
    updatedAt: time('When this was written last.').exactOptional(),
    conditions: conditions('Placed: every pod has a place.'),
  })
  .describe(
    'What Spillway found and planned. Written by Spillway only, at most every 10 seconds; targets that only follow clusters after a minute.',
  );

export type WorkloadPlacementSpec = z.output<typeof spec>;
export type WorkloadPlacementStatus = z.output<typeof status>;
export interface WorkloadPlacement extends KubeObject {
  spec: WorkloadPlacementSpec;
  status?: WorkloadPlacementStatus;
}

export const workloadPlacementKind: KindDefinition = {
  resource: WORKLOAD_PLACEMENTS,
  shortNames: ['wp'],
  schema: z.object({ spec, status: status.exactOptional() }).meta({
    description:
      'WorkloadPlacement shows where the pods of one workload are, where they should be, and why. Nobody needs to write it.',
  }),
  columns: [
    column('Kind', 'string', '.spec.workload.kind'),
    column('Workload', 'string', '.spec.workload.name'),
    column('Policy', 'string', '.status.policy.name', 'What decides where the pods go.'),
    column('Replicas', 'integer', '.status.replicas', 'Pods asked for.'),
    column('Waiting', 'integer', '.status.waiting', 'Pods without a place.'),
    column('Where', 'string', '.status.where', 'Pods by cluster.'),
    column('Planned', 'date', '.status.plannedAt', 'Age of the targets.'),
    wide(column('Group', 'string', '.status.affinityName')),
    wide(column('Last', 'string', '.status.lastDecision.message')),
  ],
};

/** The object as the API server sent it; a status that cannot be read counts as none. Undefined when the spec cannot. */
export function parseWorkloadPlacement(raw: KubeObject): WorkloadPlacement | undefined {
  const parsed = parseObject(raw, { spec, status });
  return 'object' in parsed ? parsed.object : undefined;
}

const MAX_NAME = 253;
const HASH_LENGTH = 16;

/**
 * The name of the WorkloadPlacement of a workload: `deployment-web`, and with the group for kinds that are not Kubernetes'
 * own, `rollout.argoproj.io-web`. Names that would be too long are cut and end in a hash of the whole.
 */
export function workloadPlacementName(workload: { apiVersion: string; kind: string; name: string }): string {
  const { group } = groupVersionOf(workload.apiVersion);
  const own = group === '' || !group.includes('.') || group.endsWith('.k8s.io');
  const whole = `${workload.kind.toLowerCase()}${own ? '' : `.${group}`}-${workload.name}`;
  if (whole.length <= MAX_NAME) return whole;
  const hash = createHash('sha256').update(whole).digest('hex').slice(0, HASH_LENGTH);
  return `${whole.slice(0, MAX_NAME - HASH_LENGTH - 1)}-${hash}`;
}
