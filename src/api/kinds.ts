import { clusterTaintPolicyKind } from './cluster-taint-policy.ts';
import type { KindDefinition } from './crd.ts';
import { MEMBER_CLUSTERS, memberClusterSchema } from './member-cluster.ts';
import { OVERRIDE_POLICY_KINDS } from './override-policy.ts';
import { placementScoreKind } from './placement-score.ts';
import { clusterPlacementPolicyKind, placementPolicyKind } from './placement-policy.ts';
import { AGE, column, conditionColumn, ofCondition, wide } from './printer-column.ts';
import { workloadMigrationKind } from './workload-migration.ts';
import { workloadPlacementKind } from './workload-placement.ts';
import { workloadRebalancerKind } from './workload-rebalancer.ts';

/** Every kind of the API group, as it is installed. */
export const KINDS: readonly KindDefinition[] = [
  {
    resource: MEMBER_CLUSTERS,
    shortNames: ['mc', 'mcl'],
    schema: memberClusterSchema,
    columns: [
      conditionColumn('Ready', 'Pods can be sent to the member.'),
      conditionColumn('Reachable', 'The API server of the member answers.'),
      column(
        'Credentials',
        'string',
        ofCondition('CredentialsValid', 'status'),
        'The kubeconfig is usable, and the member accepts it.',
      ),
      column('Version', 'string', '.status.version', 'Kubernetes version of the member.'),
      column('CPU', 'string', '.status.allocatable.cpu', 'CPU that the member offers.'),
      column('Memory', 'string', '.status.allocatable.memory', 'Memory that the member offers.'),
      column('Pods', 'integer', '.status.pods.running', 'Pods of the host that run there.'),
      AGE,
      wide(column('Region', 'string', '.spec.region')),
      wide(column('Provider', 'string', '.spec.provider')),
      column('Leaving', 'string', ofCondition('Leaving', 'reason'), 'What keeps it after it was deleted.'),
      wide(column('Copies', 'integer', '.status.leaving.copies')),
      wide(column('Pending', 'integer', '.status.pods.pending')),
      wide(column('Reason', 'string', ofCondition('Ready', 'reason'), 'Why the member is or is not ready.')),
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
