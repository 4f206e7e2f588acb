import { z } from 'zod';
import type { KubeObject } from '../kube/object.ts';
import { resourceOf } from '../kube/resource.ts';
import { clusterTaint } from './cluster-taint.ts';
import { conditions, observedGeneration } from './conditions.ts';
import type { KindDefinition } from './crd.ts';
import { OWN_VERSION } from './marks.ts';
import { parseObject } from './parse-object.ts';
import { AGE, column, conditionColumn } from './printer-column.ts';
import { cel, dnsLabel, listMap } from './schema-parts.ts';
import { clusterAffinity } from './selectors.ts';

export const CLUSTER_TAINT_POLICIES = resourceOf(OWN_VERSION, 'ClusterTaintPolicy', 'clustertaintpolicies', false);

const matchCondition = z.object({
  conditionType: z.string().min(1).max(316).describe('Type of a condition of the MemberCluster, such as Ready.'),
  operator: z
    .enum(['In', 'NotIn'])
    .describe(
      'In: its status is one of the values. NotIn: it is none of them. Neither holds of a condition that is not there.',
    ),
  statusValues: z
    .array(z.enum(['True', 'False', 'Unknown']))
    .min(1)
    .max(3)
    .describe('Values of status to compare with.'),
});
const matchConditions = (description: string) => z.array(matchCondition).max(16).default([]).describe(description);
const afterSeconds = (description: string) =>
  z.int().min(0).max(86_400).default(0).meta({ description, unit: 'seconds' });

const spec = z
  .object({
    targetClusters: clusterAffinity('Members that the policy is for. Not given: all.').exactOptional(),
    addOnConditions: matchConditions('When all of them hold the taints are added. Empty: never.'),
    addAfterSeconds: afterSeconds('For how long they have to hold before.'),
    removeOnConditions: matchConditions(
      'When all of them hold the taints are removed, whatever addOnConditions say. Empty: never, as long as the policy is there.',
    ),
    removeAfterSeconds: afterSeconds('For how long they have to hold before.'),
    taints: z
      .array(clusterTaint)
      .min(1)
      .max(16)
      .meta({
        description:
          'The taints. Where two policies, or a policy and spec.clusterTaints, name the same key and effect, one of them counts: spec.clusterTaints, or the older policy.',
        ...listMap('key', 'effect'),
      }),
  })
  .meta({
    description: 'Which members get which taints, and when.',
    ...cel({
      rule: '(has(self.addOnConditions) && self.addOnConditions.size() > 0) || (has(self.removeOnConditions) && self.removeOnConditions.size() > 0)',
      message: 'must say when taints are added or removed: without conditions the policy never acts',
      fieldPath: '.addOnConditions',
      reason: 'FieldValueRequired',
    }),
  });

const status = z
  .object({
    observedGeneration: observedGeneration(),
    conditions: conditions(
      'Accepted: the policy is in use. Consistent: the members that it is for are there, and have the conditions that it names.',
    ),
    taintedClusters: z
      .array(dnsLabel())
      .max(1_000)
      .exactOptional()
      .meta({ description: 'Members that have taints of this policy.', 'x-kubernetes-list-type': 'atomic' }),
  })
  .describe('What Spillway found. Written by Spillway only.');

export const clusterTaintPolicyKind: KindDefinition = {
  resource: CLUSTER_TAINT_POLICIES,
  shortNames: ['ctp'],
  columns: [
    conditionColumn('Accepted', 'The policy is in use.'),
    conditionColumn('Consistent', 'The members that it is for are there, and have the conditions that it names.'),
    column('Tainted', 'string', '.status.taintedClusters', 'Members that have taints of this policy.'),
    AGE,
  ],
  schema: z
    .object({ spec, status: status.exactOptional() })
    .describe(
      'ClusterTaintPolicy adds taints to members, and removes them, as conditions of their MemberClusters say.',
    ),
};

export type ClusterTaintPolicySpec = z.output<typeof spec>;
export type ClusterTaintPolicyStatus = z.output<typeof status>;
export interface ClusterTaintPolicy extends KubeObject {
  spec: ClusterTaintPolicySpec;
  status?: ClusterTaintPolicyStatus;
}

/** See {@link parseObject}. */
export function parseClusterTaintPolicy(raw: KubeObject): { policy: ClusterTaintPolicy } | { problems: string[] } {
  const found = parseObject(raw, { spec, status });
  return 'object' in found ? { policy: found.object } : found;
}

/** As it stands on an object that cannot be read otherwise; undefined when that is no such status. */
export function readClusterTaintPolicyStatus(raw: object): ClusterTaintPolicyStatus | undefined {
  const read = status.safeParse((raw as { status?: unknown }).status);
  return read.success ? read.data : undefined;
}
