import { clusterTaintPolicyKind } from './cluster-taint-policy.ts';
import type { KindDefinition } from './crd.ts';
import { MEMBER_CLUSTERS, memberClusterSchema } from './member-cluster.ts';
import { OVERRIDE_POLICY_KINDS } from './override-policy.ts';
import { placementScoreKind } from './placement-score.ts';
import { clusterPlacementPolicyKind, placementPolicyKind } from './placement-policy.ts';
import { workloadMigrationKind } from './workload-migration.ts';
import { workloadPlacementKind } from './workload-placement.ts';
import { workloadRebalancerKind } from './workload-rebalancer.ts';

const conditionColumn = (type: string) => ({
  name: type,
  type: 'string' as const,
  jsonPath: `.status.conditions[?(@.type=="${type}")].status`,
});

/** Every kind of the API group, as it is installed. */
export const KINDS: readonly KindDefinition[] = [
  {
    resource: MEMBER_CLUSTERS,
    singular: 'membercluster',
    shortNames: ['mc', 'mcl'],
    categories: ['spillway'],
    schema: memberClusterSchema,
    columns: [
      { ...conditionColumn('Ready'), description: 'Pods can be sent to the member.' },
      { ...conditionColumn('Reachable'), description: 'The API server of the member answers.' },
      {
        ...conditionColumn('CredentialsValid'),
        name: 'Credentials',
        description: 'The kubeconfig is usable, and the member accepts it.',
      },
      {
        name: 'Version',
        type: 'string',
        jsonPath: '.status.version',
        description: 'Kubernetes version of the member.',
      },
      { name: 'CPU', type: 'string', jsonPath: '.status.allocatable.cpu', description: 'CPU that the member offers.' },
      {
        name: 'Memory',
        type: 'string',
        jsonPath: '.status.allocatable.memory',
        description: 'Memory that the member offers.',
      },
      {
        name: 'Pods',
        type: 'integer',
        jsonPath: '.status.pods.running',
        description: 'Pods of the host that run there.',
      },
      { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
      { name: 'Region', type: 'string', jsonPath: '.spec.region', priority: 1 },
      { name: 'Provider', type: 'string', jsonPath: '.spec.provider', priority: 1 },
      {
        name: 'Leaving',
        type: 'string',
        jsonPath: '.status.conditions[?(@.type=="Leaving")].reason',
        description: 'What keeps it after it was deleted.',
      },
      { name: 'Copies', type: 'integer', jsonPath: '.status.leaving.copies', priority: 1 },
      { name: 'Pending', type: 'integer', jsonPath: '.status.pods.pending', priority: 1 },
      {
        name: 'Reason',
        type: 'string',
        jsonPath: '.status.conditions[?(@.type=="Ready")].reason',
        description: 'Why the member is or is not ready.',
        priority: 1,
      },
    ],
  },
  ...OVERRIDE_POLICY_KINDS,
  placementPolicyKind,
  clusterPlacementPolicyKind,
  clusterTaintPolicyKind,
  workloadPlacementKind,
  placementScoreKind,
  workloadRebalancerKind,
  workloadMigrationKind,
];
