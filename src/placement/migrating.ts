import { type WorkloadMigration, WORKLOAD_MIGRATIONS } from '../api/workload-migration.ts';
import { conditionOf } from '../kube/conditions.ts';
import { keyOf } from '../kube/object.ts';
import { clusterInWords } from '../api/cluster.ts';

/** The way that pods of a workload go while it is migrated: nowhere but to `to`, or, without it, anywhere but `from`. */
export interface Migrating {
  readonly from: string;
  readonly to: string | undefined;
  /** Namespace and name of the WorkloadMigration. */
  readonly by: string;
}

/** Why the cluster takes no pods of a workload that goes this way; undefined when it may. */
export function whyNotOnTheWay(cluster: string, { from, to, by }: Migrating): string | undefined {
  if (to === undefined ? cluster !== from : cluster === to) return undefined;
  const where = to === undefined ? `out of ${clusterInWords(from)}` : `to ${clusterInWords(to)}`;
  return `pods of the workload are being moved ${where} (${WORKLOAD_MIGRATIONS.kind} ${by})`;
}

export function wayOf({ metadata, spec: { from, to } }: WorkloadMigration): Migrating {
  return { from, to, by: keyOf({ metadata }) };
}

/** Whether what it moves goes its way now: it was found to fit, as it is asked for now, and is neither over nor stopped. */
export function isUnderWay({ metadata, spec, status }: WorkloadMigration): boolean {
  const { generation = 0, deletionTimestamp } = metadata;
  if (deletionTimestamp !== undefined || spec.suspend || spec.dryRun) return false;
  if (status?.observedGeneration !== generation || status.finishTime !== undefined) return false;
  const fits = conditionOf({ status }, 'Fits');
  return fits?.status === 'True' && fits.observedGeneration === generation;
}

/** Tells a workload of a namespace from others. */
export function migratedKey(
  namespace: string,
  { apiVersion, kind, name }: { apiVersion: string; kind: string; name: string },
): string {
  return `${namespace}/${apiVersion}/${kind}/${name}`;
}
