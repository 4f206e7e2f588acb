import type { MigratedReference, WorkloadMigration, WorkloadMigrationSpec } from '../api/workload-migration.ts';
import { parseWorkloadMigration, WORKLOAD_MIGRATIONS } from '../api/workload-migration.ts';
import { isOver } from '../descheduler/order.ts';
import type { KubeObject } from '../kube/object.ts';
import { CliError } from './cli-error.ts';
import { EXIT } from './exit-code.ts';
import { migrationInWords, migrationsUnderWay } from './move-orders.ts';
import { MOVES_PAGE } from './move-text.ts';
import type { Terminal } from './terminal.ts';
import { MissingRight, type Viewer } from './viewer.ts';

/**
 * What is known before another WorkloadMigration is made: one of the same workloads that goes on by itself would have the new one refused, and
 * of one that is suspended somebody may not think any more. A dry run is told of both. Who may not list them learns the first from the manager.
 * Throws CliError.
 */
export async function lookForOthers(
  terminal: Pick<Terminal, 'note'>,
  host: Viewer,
  namespace: string,
  { spec, isDry }: { spec: WorkloadMigrationSpec; isDry: boolean },
): Promise<void> {
  const there = await host.tryList<KubeObject>(WORKLOAD_MIGRATIONS, { namespace });
  if (there instanceof MissingRight) return;
  const others = othersOfTheSame(there, spec);
  const goesOn = others.find((one) => !one.spec.suspend);
  if (goesOn !== undefined && !isDry) throw alreadyThere(goesOn);
  for (const other of others) {
    const next = other.spec.suspend
      ? 'It goes on with what is left when its spec.suspend is false'
      : 'It goes on by itself';
    terminal.note(
      `note: another one of the same is there, and not over: ${inWords(other)}. ${next}. To take it back: kubectl delete ${named(other)}`,
    );
  }
}

/** Those that are not over, and move pods of a workload that `spec` is about. */
function othersOfTheSame(objects: readonly KubeObject[], spec: WorkloadMigrationSpec): WorkloadMigration[] {
  return objects.flatMap((raw) => {
    const parsed = parseWorkloadMigration(raw);
    if ('problems' in parsed) return [];
    const { metadata, spec: other } = parsed.migration;
    if (metadata.deletionTimestamp !== undefined || other.dryRun || isOver(parsed.migration)) return [];
    return sharesWorkloads(other, spec) ? [parsed.migration] : [];
  });
}

/** Which workloads `all` of another member are nobody knows before it begins. */
function sharesWorkloads(a: WorkloadMigrationSpec, b: WorkloadMigrationSpec): boolean {
  if (a.all || b.all) return a.from === b.from;
  return (a.workloads ?? []).some((one) => (b.workloads ?? []).some((other) => isSame(one, other)));
}

function isSame(a: MigratedReference, b: MigratedReference): boolean {
  return a.apiVersion === b.apiVersion && a.kind === b.kind && a.name === b.name;
}

function alreadyThere(other: WorkloadMigration): CliError {
  const object = named(other);
  return new CliError(`no other WorkloadMigration was made, as ${other.metadata.name} moves the same already`, {
    exitCode: EXIT.findings,
    reason: inWords(other),
    fix: `kubectl get ${object} -w shows how far it is, and nothing is to be done for it to go on; to move otherwise, take it back first: kubectl delete ${object}`,
    page: MOVES_PAGE,
  });
}

function named({ metadata: { name, namespace = '' } }: WorkloadMigration): string {
  return `workloadmigration ${name} -n ${namespace}`;
}

function inWords(migration: WorkloadMigration): string {
  return migrationsUnderWay([migration]).map(migrationInWords).join('');
}
