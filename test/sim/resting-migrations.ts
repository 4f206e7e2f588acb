import type { Condition } from '../../src/api/conditions.ts';

export const MIGRATIONS = '/apis/spillway.dev/v1alpha1/workloadmigrations';

/** Paths of WorkloadMigrations that are over, or suspended and say so: nothing is to be written to them any more, unlike to others. */
export function restingMigrations(migrations: Iterable<Migration>): Set<string> {
  const resting = new Set<string>();
  for (const { metadata, ...rest } of migrations) {
    const { spec, status } = rest as { spec?: { suspend?: boolean }; status?: Status };
    const { name, namespace = '' } = metadata;
    const { generation = 1 } = metadata as { generation?: number };
    if (status?.observedGeneration !== generation) continue;
    const isSuspended =
      spec?.suspend === true &&
      status.conditions?.some(({ type, reason }) => type === 'Complete' && reason === 'Suspended') === true;
    if (isSuspended || status.finishTime !== undefined)
      resting.add(`/apis/spillway.dev/v1alpha1/namespaces/${namespace}/workloadmigrations/${name}`);
  }
  return resting;
}

interface Migration {
  readonly metadata: { readonly name: string; readonly namespace?: string | undefined };
}

interface Status {
  observedGeneration?: number;
  finishTime?: string;
  conditions?: readonly Condition[];
}
