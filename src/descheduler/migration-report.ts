import { MOST_WORKLOADS, type MigratedWorkload, type WorkloadMigration } from '../api/workload-migration.ts';
import { LOCAL } from '../api/cluster-tiers.ts';
import { counted } from '../kube/counted.ts';
import { keyOf } from '../kube/object.ts';
import type { Pod } from '../kube/core-v1.ts';
import { clusterInWords, NOT_CONTACTED } from '../api/cluster.ts';
import type { TypedObject } from '../placement/owner-chain.ts';
import type { NoPlaceTogether, PlacedPods } from '../placement/placed-pods.ts';
import { type MigratedPods, type NamedWorkload, perController } from './migrated-pods.ts';
import type { MovedTooOften, MovesFuse } from './moves-fuse.ts';
import { NO_SUCH_WORKLOAD } from './order.ts';

/** Pods that are asked about together. */
const MOST_PODS = 2_000;
const MINUTE_MS = 60_000;

export interface MigrationReportOptions {
  placed: Pick<PlacedPods, 'problem' | 'member' | 'hasRules' | 'whyRulesUnknown' | 'wayOf'>;
  pods: Pick<MigratedPods, 'workloadsOf' | 'wholePods' | 'whyStays'>;
  fuse: Pick<MovesFuse, 'tooOften'>;
  /** Nothing is to be moved: a report alone. */
  isDry: boolean;
  /** Wall clock in ms. */
  clock: () => number;
}

/**
 * What can be said of a migration without asking for room. `why`: it can never be judged, or is too much. `notKnown`: what would have
 * to be known to judge it is not known yet.
 */
export interface MigrationReport {
  readonly why?: string;
  readonly notKnown?: string;
  readonly judged: readonly JudgedWorkload[];
}

/** One workload of the set, and its pods as they are in the host; without them it does not move. */
export interface JudgedWorkload {
  readonly entry: MigratedWorkload;
  readonly workload: TypedObject | undefined;
  readonly pods: readonly Pod[];
}

/** The first part of the fit report of a migration, which costs little: what can be moved at all. Changes nothing. */
export async function migrationReport(
  migration: WorkloadMigration,
  options: MigrationReportOptions,
  signal: AbortSignal,
): Promise<MigrationReport> {
  const { placed, pods } = options;
  const notKnown = whatIsNotKnown(migration, placed);
  if (notKnown !== undefined) return { notKnown, judged: [] };
  const why = whyNotAtAll(migration, placed);
  if (why !== undefined) return { why, judged: [] };
  const named = pods.workloadsOf(migration);
  if (named.length > MOST_WORKLOADS) {
    return {
      why: `it is about ${String(named.length)} workloads; name ${String(MOST_WORKLOADS)} at most`,
      judged: [],
    };
  }
  const count = named.reduce((sum, { there }) => sum + there.length, 0);
  if (count > MOST_PODS) {
    return { why: `it is about ${String(count)} pods; name workloads of ${String(MOST_PODS)} at most`, judged: [] };
  }
  const judged: JudgedWorkload[] = [];
  for (const one of named) {
    const whole = await pods.wholePods(one.there, signal);
    judged.push(judge(one, whole === undefined ? undefined : [...whole.values()], migration, options));
  }
  return { judged };
}

/** What the host says may be otherwise by now, or a member was never asked. */
function whatIsNotKnown(
  { spec: { from, to } }: WorkloadMigration,
  placed: MigrationReportOptions['placed'],
): string | undefined {
  if (placed.problem !== undefined) return `the host cannot be followed now (${placed.problem})`;
  const untold = [from, to].find((name) => name !== undefined && placed.member(name)?.isContacted === false);
  return untold === undefined ? undefined : `${clusterInWords(untold)}: ${NOT_CONTACTED}`;
}

function whyNotAtAll(
  { spec: { from, to } }: WorkloadMigration,
  placed: MigrationReportOptions['placed'],
): string | undefined {
  const missing = [from, to].find((name) => name !== undefined && name !== LOCAL && placed.member(name) === undefined);
  if (missing !== undefined) return `there is no ${clusterInWords(missing)}`;
  const silent = placed.member(from)?.silent;
  return silent === undefined
    ? undefined
    : `${clusterInWords(from)}: ${silent}; what runs there is not known, and failover is what moves pods out of it`;
}

function judge(
  { reference, workload, there }: NamedWorkload,
  whole: readonly Pod[] | undefined,
  migration: WorkloadMigration,
  { placed, pods, fuse, isDry, clock }: MigrationReportOptions,
): JudgedWorkload {
  const { length } = there;
  const stays = (reason: MigratedWorkload['reason'], message: string): JudgedWorkload => ({
    entry: { workload: reference, pods: length, waiting: length, moving: 0, moved: 0, reason, message },
    workload,
    pods: [],
  });
  if (workload === undefined) {
    return stays('NotFound', NO_SUCH_WORKLOAD);
  }
  if (whole === undefined)
    return stays('NotRead', 'its pods cannot be read now (manifests/scheduler/descheduler.yaml grants it)');
  const whys = whole.map(perController((pod) => pods.whyStays(pod))).filter((one) => one !== undefined);
  const [unmovable] = whys;
  if (unmovable !== undefined) {
    const reason = migration.spec.unmovable === 'Leave' ? 'LeftBehind' : 'Unmovable';
    return stays(reason, `${counted(length, 'pod')} in ${clusterInWords(migration.spec.from)}: ${unmovable}`);
  }
  const [first] = whole;
  const unknown = first === undefined ? undefined : placed.whyRulesUnknown(first);
  if (unknown !== undefined) return stays('NotKnown', unknown);
  if (first !== undefined && !placed.hasRules(first)) {
    return stays(
      'NoPolicy',
      'no policy and no label of its namespace speaks about it, so nothing says where its pods may go',
    );
  }
  const other = placed.wayOf(workload)?.by;
  if (other !== undefined && other !== keyOf(migration)) {
    return stays('AlreadyMoving', `WorkloadMigration ${other} moves it now`);
  }
  const often = first === undefined ? undefined : fuse.tooOften(first, length);
  const message =
    often !== undefined
      ? untilWhen(often, clock())
      : length === 0
        ? `none of its pods is in ${clusterInWords(migration.spec.from)}`
        : undefined;
  const entry: MigratedWorkload = {
    workload: reference,
    pods: length,
    waiting: length,
    moving: 0,
    moved: 0,
    reason: often === undefined || isDry ? 'Fits' : 'MovedTooOften',
    ...(message === undefined ? {} : { message }),
  };
  return { entry, workload, pods: whole };
}

/** By the minute, so that it stays the same from look to look, whenever in a second these are. `now` in ms. */
function untilWhen({ count, most, limit, forMs }: MovedTooOften, now: number): string {
  const until = new Date(Math.ceil(Math.round((now + forMs) / 1_000) / 60) * MINUTE_MS).toISOString().slice(11, 16);
  return `its pods were moved ${counted(count, 'time')} within the last hour, of at most ${String(most)} (${limit}); again at ${until} UTC`;
}

/** The second part: which of its pods have no place, by UID. */
export function withPlaces(
  { entry, pods }: Pick<JudgedWorkload, 'entry' | 'pods'>,
  whys: ReadonlyMap<string, NoPlaceTogether>,
): MigratedWorkload {
  const missing = pods.map(({ metadata: { uid = '' } }) => whys.get(uid)).filter((one) => one !== undefined);
  // What is known to have no place has none, whatever is not known of others.
  const first = missing.find(({ isKnown }) => isKnown) ?? missing[0];
  if (first === undefined) return entry;
  const fitting = pods.length - missing.length;
  const message = `a place for ${String(fitting)} of ${counted(pods.length, 'pod')} (${first.why})`;
  return { ...entry, reason: first.isKnown ? 'DoesNotFit' : 'NotKnown', message };
}
