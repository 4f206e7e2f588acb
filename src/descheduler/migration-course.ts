import type { MigratedWorkload } from '../api/workload-migration.ts';
import { clusterInWords } from '../api/cluster.ts';
import { counted } from '../kube/counted.ts';
import type { MigrationStep } from './migration.ts';
import { listInText } from './migration-status.ts';

/** Workloads whose reasons stand in a condition; the status has those of all. */
const MOST_NAMED = 3;

/** What is known of the workloads of a migration in a look. */
export interface Course {
  readonly workloads: MigratedWorkload[];
  /** Those of `workloads` of which no pod is on its way: what keeps the next one. */
  readonly held: Map<MigratedWorkload, string>;
  /** Pods without a place. */
  unplaced: number;
  missing: number;
  isComing: boolean;
  /** A wait that ends by itself: the limit of moves within an hour holds pods back, or a workload has not had its turn yet. */
  rests: boolean;
}

/** The workload as a look found it. `held`: why no pod of it that is to leave does so now. */
export function seen(
  { workload, pods }: MigratedWorkload,
  { waiting, moving, unplaced, stays, isOver }: MigrationStep,
  held: string | undefined,
): MigratedWorkload {
  const counts = { workload, pods, waiting, moving, moved: Math.max(0, pods - waiting - moving) };
  const [first] = stays;
  if (isOver) {
    return first === undefined
      ? { ...counts, reason: 'Moved' }
      : { ...counts, reason: 'LeftBehind', message: `${counted(stays.length, 'pod')}: ${first.why}` };
  }
  const parts = [
    ...(unplaced === 0 ? [] : [`${counted(unplaced, 'new pod')} without a place yet`]),
    ...(held === undefined ? [] : [`not moved now: ${held}`]),
  ];
  return { ...counts, reason: 'Moving', ...(parts.length === 0 ? {} : { message: parts.join('; ') }) };
}

/** Of a workload that was not looked at: it is none of those that are moved, or could not be read, as `why` says. What was found of it last counts. */
export function unseen(
  course: Course,
  entry: MigratedWorkload,
  last: MigrationStep | undefined,
  why: string | undefined,
): void {
  course.unplaced += last?.unplaced ?? 0;
  course.missing += last?.missing ?? 0;
  const isHeld = why !== undefined && entry.reason !== 'Moved';
  const found: MigratedWorkload = isHeld ? { ...entry, reason: 'Moving', message: `not moved now: ${why}` } : entry;
  if (isHeld) course.held.set(found, why);
  course.workloads.push(found);
}

/** How far it is: of the pods that are to go how many wait and how many move, and what it waits for. `lost`: which cluster cannot be reckoned with. */
export function progressInWords({ workloads, unplaced, held }: Course, from: string, lost: string | undefined): string {
  const [waiting, moving] = [sumOf(workloads, 'waiting'), sumOf(workloads, 'moving')];
  const there = `in ${clusterInWords(from)}: ${counted(waiting, 'pod')} still there, and ${String(moving)} on the way`;
  const counts = unplaced === 0 ? there : `${there}, ${counted(unplaced, 'new pod')} without a place yet`;
  return `${counts}${why(lost, held)}`;
}

function why(lost: string | undefined, held: Course['held']): string {
  if (lost !== undefined) return `; ${lost}`;
  if (held.size === 0) return '';
  const named = [...held].slice(0, MOST_NAMED).map(([one, message]) => ({ ...one, message }));
  const more = held.size - named.length;
  return `; not moved now: ${listInText(named)}${more === 0 ? '' : `; and pods of ${counted(more, 'other workload')}`}`;
}

/** What is said of each workload that is given up, with what held it last. `stays`: why it is given up. */
export function givenUp({ workloads, held }: Course, stays: string): MigratedWorkload[] {
  return workloads.map((one) => {
    if (one.reason !== 'Moving') return one;
    const last = held.get(one);
    return { ...one, reason: 'PodsStay', message: last === undefined ? stays : `${stays}; at last: ${last}` };
  });
}

export function whyStuck(there: number, unplaced: number, missing: number): string {
  if (there > 0) return 'no pod could be moved for too long: Events of the pods say why';
  return unplaced > 0
    ? `${counted(unplaced, 'new pod')} found no place for too long: Events of these say why`
    : `${counted(missing, 'pod')} that the workloads ask for did not come for too long: Events of their controllers say why`;
}

export function sumOf(workloads: readonly MigratedWorkload[], field: 'waiting' | 'moving'): number {
  return workloads.reduce((sum, one) => sum + (one.reason === 'LeftBehind' ? 0 : one[field]), 0);
}
