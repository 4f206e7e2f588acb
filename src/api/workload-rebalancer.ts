import { z } from 'zod';
import type { KubeObject } from '../kube/object.ts';
import { resourceOf } from '../kube/resource.ts';
import { observedGeneration } from './conditions.ts';
import type { KindDefinition } from './crd.ts';
import { OWN_VERSION } from './marks.ts';
import { parseObject } from './parse-object.ts';
import { AGE, column } from './printer-column.ts';
import { dnsLabel, dnsSubdomain } from './schema-parts.ts';

/** Moves that a dry run lists in all; of each workload at least {@link FEWEST_MOVES}. */
const MOST_MOVES = 512;
/** Of one workload. */
const MOST_OF_ONE = 20;
const FEWEST_MOVES = 2;
/** Of a message, and of why a pod would be moved, in characters. */
export const [LONGEST_MESSAGE, LONGEST_WHY] = [1_024, 256];

/** How many moves of each workload the dry run of so many lists. */
export function movesListed(workloads: number): number {
  return Math.max(FEWEST_MOVES, Math.min(MOST_OF_ONE, Math.floor(MOST_MOVES / workloads)));
}

export const WORKLOAD_REBALANCERS = resourceOf(OWN_VERSION, 'WorkloadRebalancer', 'workloadrebalancers', false);

const reference = z.object({
  apiVersion: z.string().min(1).max(317).describe('Such as apps/v1.'),
  kind: z.string().min(1).max(63).describe('Such as Deployment.'),
  namespace: dnsLabel().describe('Namespace of the workload.'),
  name: dnsSubdomain().describe('Name of the workload.'),
});

const spec = z
  .object({
    workloads: z
      .array(reference)
      .min(1)
      .max(256)
      .describe('Workloads whose pods are to be where they would go if they came now.'),
    dryRun: z.boolean().default(false).describe('Only say which pods would be moved, and why; move nothing.'),
    ttlSecondsAfterFinished: z
      .int()
      .min(0)
      .exactOptional()
      .describe('The object is deleted so long after all workloads have a result, in seconds. Not given: it stays.'),
  })
  .describe('What is to be rebalanced. A change begins anew.');

const move = z.object({
  pod: dnsSubdomain().describe('Name of the pod.'),
  from: dnsSubdomain().describe('The cluster that it is in.'),
  to: dnsSubdomain().describe('Where it would go first.'),
  why: z.string().max(LONGEST_WHY).describe('For people: the strategy that would move it by itself, and why.'),
});

const observed = z.object({
  workload: reference.describe('As the spec names it.'),
  result: z
    .enum(['Successful', 'Failed'])
    .exactOptional()
    .describe(
      'Not there while it is looked at and pods are being moved. Successful: all pods are where they would go, or it was only to be said which are not. Failed: see reason.',
    ),
  reason: z
    .enum(['Progressing', 'Rebalanced', 'DryRun', 'ReferencedWorkloadNotFound', 'NoPolicy', 'PodsStay'])
    .describe('One word for programs.'),
  message: z.string().max(LONGEST_MESSAGE).exactOptional().describe('For people.'),
  moves: z
    .array(move)
    .max(MOST_OF_ONE)
    .exactOptional()
    .describe('In a dry run: pods that would be moved, one after the other. When there are more, the message says so.'),
});

const status = z
  .object({
    observedGeneration: observedGeneration(),
    summary: z
      .string()
      .max(64)
      .exactOptional()
      .describe('How many workloads have which result, such as 1 of 4 Successful, 2 Failed.'),
    observedWorkloads: z.array(observed).exactOptional().describe('What became of each workload.'),
    finishTime: z.iso.datetime().exactOptional().meta({
      description: 'When the last workload got its result.',
      format: 'date-time',
    }),
  })
  .describe('What was done. Written by Spillway only.');

export type WorkloadReference = z.output<typeof reference>;
export type ObservedWorkload = z.output<typeof observed>;
export type RehearsedMove = z.output<typeof move>;
export type WorkloadRebalancerStatus = z.output<typeof status>;
export interface WorkloadRebalancer extends KubeObject {
  spec: z.output<typeof spec>;
  status?: WorkloadRebalancerStatus;
}

export const workloadRebalancerKind: KindDefinition = {
  resource: WORKLOAD_REBALANCERS,
  shortNames: ['wr'],
  schema: z.object({ spec, status: status.exactOptional() }).meta({
    description:
      'WorkloadRebalancer moves pods of workloads to where they would go if they came now, once: after weights, members or labels have changed, or ' +
      'when an earlier tier has room again. One pod of a workload at a time, each as its policy has moves. With dryRun it only says which.',
  }),
  columns: [column('Results', 'string', '.status.summary'), column('Finished', 'date', '.status.finishTime'), AGE],
};

/** The object as the API server sent it; see {@link parseObject}. */
export function parseWorkloadRebalancer(raw: KubeObject): { rebalancer: WorkloadRebalancer } | { problems: string[] } {
  const parsed = parseObject(raw, { spec, status });
  return 'object' in parsed ? { rebalancer: parsed.object } : parsed;
}
