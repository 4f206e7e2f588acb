import type { MigratedWorkload, WorkloadMigration } from '../api/workload-migration.ts';
import { clusterInWords } from '../api/cluster.ts';
import { STOP_NOT_KNOWN } from '../descheduler/moves-stop.ts';
import { cleanText } from '../kube/clean-text.ts';
import { conditionOf } from '../kube/conditions.ts';
import { counted } from '../kube/counted.ts';
import type { Look } from './wait-for.ts';

export const MOVES_PAGE = 'guides/drain-and-migrate.md';
/** Of one line, in bytes: what stands in it may come from members. */
const LONGEST_LINE = 2000;

/** What was found before anything moved, a workload a line: `deployment/web: 3 pods: Fits`. */
export function reportLines({ spec, status = {} }: WorkloadMigration): string[] {
  return (status.workloads ?? []).map((one) => {
    const { pods, reason, message } = one;
    // It may have begun by the time that it is looked at.
    const hasBegun = reason === 'Moving' || reason === 'Moved';
    if (pods === 0 && (hasBegun || reason === 'Fits')) return `${inText(one)}: no pods in ${clusterInWords(spec.from)}`;
    const found = hasBegun ? 'Fits' : message === undefined ? reason : `${reason}: ${message}`;
    return cleanText(`${inText(one)}: ${counted(pods, 'pod')}: ${found}`, LONGEST_LINE);
  });
}

/** What became of each workload, a line each: `deployment/web: 3 of 3 pods moved`. */
export function resultLines({ status = {} }: WorkloadMigration): string[] {
  return (status.workloads ?? []).map((one) => {
    const { pods, moved, reason, message } = one;
    const why = reason === 'Moved' ? '' : ` (${reason}${message === undefined ? '' : `: ${message}`})`;
    return cleanText(`${inText(one)}: ${String(moved)} of ${counted(pods, 'pod')} moved${why}`, LONGEST_LINE);
  });
}

/** What is still waited for, and what helps where no move may begin. */
export function waitingFor({ metadata, status = {} }: WorkloadMigration): Exclude<Look<never>, { value: never }> {
  const { message = 'the manager to judge whether all of it fits', reason } = conditionOf({ status }, 'Complete') ?? {};
  const words = cleanText(message, LONGEST_LINE);
  const isUnderWay = reason === 'Progressing' && conditionOf({ status }, 'Fits')?.status === 'True';
  if (isUnderWay) return { waitingFor: words, page: MOVES_PAGE };
  const { begins, page } = whenItBegins(status, reason);
  if (begins === undefined) return { waitingFor: words };
  // That nobody can read the Lease says of no stop that there is one.
  const rests = !message.startsWith(STOP_NOT_KNOWN);
  const { name, namespace = '' } = metadata;
  const fix = `WorkloadMigration ${name} stays, and begins ${begins}. To take it back: kubectl delete workloadmigration ${name} -n ${namespace}`;
  return { waitingFor: words, page, fix, rests };
}

/** Where it may not begin now and will by itself. */
function whenItBegins(
  status: WorkloadMigration['status'],
  reason: string | undefined,
): { begins: string; page: string } | { begins: undefined; page?: never } {
  if (reason === 'Suspended') {
    const begins = 'when moves may; where all are stopped, that is after kubectl spillway resume-moves';
    return { begins, page: 'concepts/failover.md#stop-all-moves' };
  }
  return conditionOf({ status }, 'Fits')?.reason === 'MovedTooOften'
    ? { begins: 'by itself at that time, if all of it fits then', page: 'concepts/failover.md#rules-of-every-move' }
    : { begins: undefined };
}

function inText({ workload: { kind, name } }: MigratedWorkload): string {
  return `${kind.toLowerCase()}/${name}`;
}
