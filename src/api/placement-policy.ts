import { z } from 'zod';
import type { KubeObject } from '../kube/object.ts';
import { resourceOf } from '../kube/resource.ts';
import { conditions, observedGeneration } from './conditions.ts';
import type { KindDefinition } from './crd.ts';
import { failover } from './failover.ts';
import { OWN_VERSION } from './marks.ts';
import { parseObject } from './parse-object.ts';
import { placement } from './placement.ts';
import { AGE, column, conditionColumn, wide, type PrinterColumn } from './printer-column.ts';
import { resourceSelector } from './selectors.ts';

export const PLACEMENT_POLICIES = resourceOf(OWN_VERSION, 'PlacementPolicy', 'placementpolicies');
export const CLUSTER_PLACEMENT_POLICIES = resourceOf(
  OWN_VERSION,
  'ClusterPlacementPolicy',
  'clusterplacementpolicies',
  false,
);

const spec = z
  .object({
    resourceSelectors: z
      .array(resourceSelector)
      .min(1)
      .max(64)
      .describe(
        'Objects whose pods are meant; one selector that matches is enough. A selector may name the pod itself or any of its ' +
          'owners, such as the Deployment behind a ReplicaSet. In a PlacementPolicy, namespace can only be its own.',
      ),
    priority: z
      .int()
      .min(-(2 ** 31))
      .max(2 ** 31 - 1)
      .default(0)
      .describe(
        'Of several policies that match, the one with the highest priority counts; then the one that matches by name before by label before ' +
          'by kind; then the first in the alphabet. Policies of the namespace come before cluster-wide ones.',
      ),
    placement,
    failover: failover.exactOptional(),
  })
  .describe(
    'Which pods are meant and where they go. A change of placement counts for the pods that come; what runs is moved only where failover says so.',
  );

const status = z
  .object({
    observedGeneration: observedGeneration(),
    conditions: conditions(
      'Accepted: the policy is in use. Consistent: no part of it contradicts another part or the clusters there are. Effective: a kube-scheduler asks Spillway, so that the policy acts; Unknown until one schedules a pod.',
    ),
  })
  .describe('What Spillway found. Written by Spillway only.');

export type PlacementPolicySpec = z.output<typeof spec>;
export type PlacementPolicyStatus = z.output<typeof status>;
/** A PlacementPolicy or, without a namespace, a ClusterPlacementPolicy. */
export interface PlacementPolicy extends KubeObject {
  spec: PlacementPolicySpec;
  status?: PlacementPolicyStatus;
}

const schema = (description: string) => z.object({ spec, status: status.exactOptional() }).meta({ description });

const columns: PrinterColumn[] = [
  column('Priority', 'integer', '.spec.priority'),
  conditionColumn('Accepted', 'The policy is in use.'),
  conditionColumn('Consistent', 'No part of the policy contradicts another part or the clusters there are.'),
  conditionColumn('Effective', 'A kube-scheduler asks Spillway, so that the policy acts.'),
  AGE,
  wide(
    column(
      'Clusters',
      'string',
      '.spec.placement.clusterAffinity.clusterNames',
      'Clusters of the first tier, where they are named.',
    ),
  ),
  wide(column('Division', 'string', '.spec.placement.replicaScheduling.replicaDivisionPreference')),
];

export const placementPolicyKind: KindDefinition = {
  resource: PLACEMENT_POLICIES,
  shortNames: ['pp'],
  schema: schema(
    'PlacementPolicy says where the pods of objects in its namespace go: which clusters, in which order, and how many.',
  ),
  columns,
};
export const clusterPlacementPolicyKind: KindDefinition = {
  resource: CLUSTER_PLACEMENT_POLICIES,
  shortNames: ['cpp'],
  schema: schema(
    'ClusterPlacementPolicy says where pods go that no PlacementPolicy of their namespace speaks about: which clusters, in which order, and how many.',
  ),
  columns,
};

/**
 * A policy of either kind as the API server sent it, with every default filled in; see {@link parseObject}. What the types
 * cannot say is checked by `policyProblems`.
 */
export function parsePlacementPolicy(raw: KubeObject): { policy: PlacementPolicy } | { problems: string[] } {
  const parsed = parseObject(raw, { spec, status });
  return 'object' in parsed ? { policy: parsed.object } : parsed;
}
