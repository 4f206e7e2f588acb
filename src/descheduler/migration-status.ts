import { type Condition, conditionNow } from '../api/conditions.ts';
import type { MigratedWorkload, WorkloadMigration, WorkloadMigrationStatus } from '../api/workload-migration.ts';
import { conditionOf } from '../kube/conditions.ts';
import { cut } from '../kube/cut-text.ts';
import { timestamp } from '../kube/timestamps.ts';

/** How far a migration has come: the reason of its condition Complete. */
export type MigrationState = 'Progressing' | 'Suspended' | 'Refused' | 'PodsStay' | 'DryRun' | 'Moved';

/** What was found of a migration. */
export interface MigrationFound {
  readonly state: MigrationState;
  readonly message: string;
  readonly workloads: readonly MigratedWorkload[];
  /** Undefined while the whole set has not been judged; Unknown when it cannot be yet, as `reason` says. */
  readonly fits:
    | { readonly status: 'True' | 'False' | 'Unknown'; readonly message: string; readonly reason?: 'MovedTooOften' }
    | undefined;
}

/** States from which nothing leads on but another spec. */
const OVER: ReadonlySet<MigrationState> = new Set(['Refused', 'PodsStay', 'DryRun', 'Moved']);
const LONGEST = 1_024;
const FITS = { True: 'AllFit', False: 'DoesNotFit', Unknown: 'NotKnown' } as const;

/** Reasons for which nothing of the set is moved; Unmovable where the spec does not say that such pods are left. */
const REFUSING: ReadonlySet<MigratedWorkload['reason']> = new Set([
  'DoesNotFit',
  'Unmovable',
  'NoPolicy',
  'NotFound',
  'AlreadyMoving',
]);

export function refused(workloads: readonly MigratedWorkload[]): readonly MigratedWorkload[] {
  return workloads.filter(({ reason }) => REFUSING.has(reason));
}

/** `deployment/web: message; ...`, for conditions. */
export function listInText(workloads: readonly MigratedWorkload[]): string {
  return workloads
    .map(({ workload: { kind, name }, message }) => `${kind.toLowerCase()}/${name}: ${message ?? ''}`)
    .join('; ');
}

/** The status that says so. `now` in ms. */
export function migrationStatus(
  { metadata, status: before }: WorkloadMigration,
  { state, message, workloads, fits }: MigrationFound,
  now: number,
): WorkloadMigrationStatus {
  const { generation: observedGeneration = 0 } = metadata;
  const known = before?.observedGeneration === observedGeneration ? before : undefined;
  const found: Omit<Condition, 'lastTransitionTime'>[] = [];
  if (fits !== undefined) {
    const { reason = FITS[fits.status] } = fits;
    found.push({ type: 'Fits', status: fits.status, observedGeneration, reason, message: cut(fits.message, LONGEST) });
  }
  const status = state === 'Moved' ? 'True' : 'False';
  found.push({ type: 'Complete', status, observedGeneration, reason: state, message: cut(message, LONGEST) });
  return {
    observedGeneration,
    conditions: found.map((condition) => conditionNow(before, condition, now)),
    workloads: workloads.map((one) => ({
      ...one,
      ...(one.message === undefined ? {} : { message: cut(one.message, LONGEST) }),
    })),
    ...(OVER.has(state) ? { finishTime: known?.finishTime ?? timestamp(now) } : {}),
  };
}

/** The whole set was judged as it is asked for now. */
export function isJudged({ metadata, status }: WorkloadMigration): boolean {
  const { generation = 0 } = metadata;
  const fits = conditionOf({ status }, 'Fits');
  return (
    status?.observedGeneration === generation && fits?.observedGeneration === generation && fits.status !== 'Unknown'
  );
}
