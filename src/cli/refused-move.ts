import type { MigratedWorkload, WorkloadMigration } from '../api/workload-migration.ts';

/** What helps against each reason for which a whole migration is refused, in the order in which it is told. */
const FIXES: readonly (readonly [reason: MigratedWorkload['reason'], fix: (namespace: string) => string])[] = [
  ['NotFound', () => 'name the Deployment, StatefulSet or other workload that the pods belong to, not a DaemonSet'],
  [
    'AlreadyMoving',
    (namespace) =>
      `wait until the other one is over, or delete it: kubectl get workloadmigrations -n ${namespace} shows how far it is`,
  ],
  [
    'NoPolicy',
    (namespace) =>
      `write a PlacementPolicy that chooses it, or label namespace ${namespace}; kubectl spillway explain-policy shows what a policy chooses`,
  ],
  [
    'Unmovable',
    () =>
      'with --leave-unmovable these pods stay where they are, and the others are moved (where purgeMode: Never keeps them, edit the policy)',
  ],
  [
    'DoesNotFit',
    () =>
      'by what the reason says make room, or edit the policy, or what the pods ask for (nodeSelector, tolerations, resources); kubectl spillway clusters shows what is free, and which clusters answer',
  ],
];

/** What helps against a refusal, by the reasons of its workloads. */
export function fixOfRefusal({ metadata, spec, status = {} }: WorkloadMigration): string {
  const { namespace = '' } = metadata;
  const { workloads = [] } = status;
  const found = FIXES.filter(([reason]) => workloads.some((one) => one.reason === reason));
  if (found.length > 0) return found.map(([, fix]) => fix(namespace)).join('; ');
  // Nothing was judged: the member is gone or does not answer, or it is too much at once.
  return `see kubectl spillway clusters: is ${spec.from} there, and does it answer? Of too many workloads or pods name fewer`;
}
