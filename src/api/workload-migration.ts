import { z } from 'zod';
import type { KubeObject } from '../kube/object.ts';
import { resourceOf } from '../kube/resource.ts';
import { LOCAL } from './cluster-tiers.ts';
import { conditions, observedGeneration } from './conditions.ts';
import type { KindDefinition } from './crd.ts';
import { OWN_VERSION } from './marks.ts';
import { parseObject } from './parse-object.ts';
import { AGE, column, conditionColumn, ofCondition, wide } from './printer-column.ts';
import { cel, dnsSubdomain } from './schema-parts.ts';

export const WORKLOAD_MIGRATIONS = resourceOf(OWN_VERSION, 'WorkloadMigration', 'workloadmigrations');

/** Workloads that one migration may have. */
export const MOST_WORKLOADS = 256;

const reference = z.object({
  apiVersion: z.string().min(1).max(317).describe('Such as apps/v1.'),
  kind: z.string().min(1).max(63).describe('Such as Deployment.'),
  name: dnsSubdomain().describe('Name of the workload, in the namespace of the migration.'),
});

const spec = z
  .object({
    workloads: z
      .array(reference)
      .min(1)
      .max(MOST_WORKLOADS)
      .exactOptional()
      .describe('Workloads whose pods are to leave. Not given: with all, those of the namespace.'),
    all: z.boolean().default(false).describe('Every workload of the namespace that has pods there when it begins.'),
    from: dnsSubdomain().describe('The member that the pods are to leave.'),
    to: dnsSubdomain()
      .exactOptional()
      .describe(
        'Where they are to go: a member, or local for the nodes of the host. Not given: anywhere else that their policies let them go.',
      ),
    unmovable: z
      .enum(['Refuse', 'Leave'])
      .default('Refuse')
      .describe(
        'What becomes of it when there are pods that are never moved: with claims, of gangs, of Jobs, without a controller. Refuse: nothing is moved. Leave: they stay, and the others are moved.',
      ),
    dryRun: z.boolean().default(false).describe('Only say whether all of it fits; move nothing.'),
    suspend: z
      .boolean()
      .default(false)
      .describe(
        'No move begins while it is true; one that has begun is finished. Afterwards what is left is looked at anew.',
      ),
    ttlSecondsAfterFinished: z
      .int()
      .min(0)
      .exactOptional()
      .describe('The object is deleted so long after it is over, refused included, in seconds. Not given: it stays.'),
  })
  .meta({
    description: 'What is to be moved, and where to. A change begins anew with what is left.',
    ...cel(
      {
        rule: 'has(self.workloads) != (has(self.all) && self.all)',
        message: 'must name workloads, or say all: true, and not both',
      },
      { rule: `self.from != '${LOCAL}'`, message: `from must be a member, not ${LOCAL}`, fieldPath: '.from' },
      {
        rule: '!has(self.to) || self.to != self.from',
        message: 'to must be another cluster than from',
        fieldPath: '.to',
      },
    ),
  });

const moved = z.object({
  workload: reference.describe('The workload.'),
  pods: z.int().min(0).describe('Its pods that were in from when it was judged.'),
  waiting: z.int().min(0).describe('Its pods that are there still, those that stay included.'),
  moving: z.int().min(0).describe('Its pods there that go when their replacements are Ready, or are about to end.'),
  moved: z.int().min(0).describe('Its pods that have left.'),
  reason: z
    .enum([
      'Fits',
      'DoesNotFit',
      'NotKnown',
      'Unmovable',
      'NoPolicy',
      'NotFound',
      'AlreadyMoving',
      'NotRead',
      'MovedTooOften',
      'Moving',
      'Moved',
      'LeftBehind',
      'PodsStay',
    ])
    .describe('One word for programs.'),
  message: z.string().max(1_024).exactOptional().describe('For people.'),
});

const status = z
  .object({
    observedGeneration: observedGeneration(),
    conditions: conditions(
      'Fits: the whole set has a place where it is to go; Unknown while that cannot be told yet, or pods were moved too often to be moved now. Complete: True when it has been moved; False with reason Progressing, Suspended, Refused, PodsStay or DryRun.',
    ),
    workloads: z.array(moved).max(MOST_WORKLOADS).exactOptional().describe('What is known of each workload.'),
    finishTime: z.iso.datetime().exactOptional().meta({
      description: 'When it was over: moved, refused, or given up.',
      format: 'date-time',
    }),
  })
  .describe('What was found and done. Written by Spillway only.');

export type MigratedReference = z.output<typeof reference>;
export type MigratedWorkload = z.output<typeof moved>;
export type WorkloadMigrationSpec = z.output<typeof spec>;
export type WorkloadMigrationStatus = z.output<typeof status>;
export interface WorkloadMigration extends KubeObject {
  spec: WorkloadMigrationSpec;
  status?: WorkloadMigrationStatus;
}

export const workloadMigrationKind: KindDefinition = {
  resource: WORKLOAD_MIGRATIONS,
  shortNames: ['wm'],
  schema: z.object({ spec, status: status.exactOptional() }).meta({
    description:
      'WorkloadMigration moves the pods of workloads, or of a whole namespace, out of one member: to a cluster that it names, or anywhere that their ' +
      'policies allow. First it says whether all of them fit there; when they do not, nothing is moved.',
  }),
  columns: [
    column('From', 'string', '.spec.from'),
    column('To', 'string', '.spec.to'),
    conditionColumn('Fits', 'The whole set has a place where it is to go.'),
    column('State', 'string', ofCondition('Complete', 'reason'), 'How far it has come.'),
    column('Finished', 'date', '.status.finishTime'),
    AGE,
    wide(
      column(
        'Message',
        'string',
        ofCondition('Complete', 'message'),
        'How far it has come, or why it was refused, in words.',
      ),
    ),
  ],
};

/** The object as the API server sent it; see {@link parseObject}. */
export function parseWorkloadMigration(raw: KubeObject): { migration: WorkloadMigration } | { problems: string[] } {
  const parsed = parseObject(raw, { spec, status });
  return 'object' in parsed ? { migration: parsed.object } : parsed;
}
