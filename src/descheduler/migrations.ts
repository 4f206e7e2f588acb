import { type MigratedWorkload, type WorkloadMigration, WORKLOAD_MIGRATIONS } from '../api/workload-migration.ts';
import { LOCAL } from '../api/cluster-tiers.ts';
import { isFinished } from '../api/pod-phase.ts';
import { conditionOf } from '../kube/conditions.ts';
import type { Pod } from '../kube/core-v1.ts';
import { keyOf } from '../kube/object.ts';
import type { HandlerResult } from '../kube/workqueue.ts';
import { clusterInWords } from '../api/cluster.ts';
import { isUnderWay, wayOf } from '../placement/migrating.ts';
import type { PlacedPods } from '../placement/placed-pods.ts';
import { MigratedPods, type NamedWorkload } from './migrated-pods.ts';
import { type Judging, MigrationJudge, NOT_KNOWN_MS } from './migration-judge.ts';
import type { MovingOptions } from './moving-options.ts';
import { deletedInMs, isOver, isSameOrder, OrderMemory, whyNotFollowed } from './order.ts';
import { OrderFailures } from './order-failures.ts';
import { isOrdered, removeFinished, writeOrderStatus } from './order-requests.ts';
import { type MigrationStep, migrationMove, migrationStep } from './migration.ts';
import { type Course, givenUp, progressInWords, seen, sumOf, unseen, whyStuck } from './migration-course.ts';
import { isJudged, listInText, type MigrationFound, migrationStatus } from './migration-status.ts';
import { MigrationTurns, type Turn } from './migration-turns.ts';
import type { Mover, MoveOutcome } from './mover.ts';
import type { Recheck } from './wanted-move.ts';

/** Between two looks at a migration, in ms. */
const LOOK_MS = 1_000;
/** By then every replica that schedulers may ask knows which way the pods go, in ms. */
const HEARD_MS = 2_000;
/** A migration of which no pod could be moved for so long is given up, in ms. */
const PATIENCE_MS = 600_000;
/** The same while pods take their time to end, or to be Ready. */
const LONG_PATIENCE_MS = 3_600_000;
/** Without a word from a cluster for so long its pods are not kept waiting for it any more, in ms. */
const LOST_MS = 60_000;
const UNREAD = 'its pods cannot be read now';

export interface MigrationsOptions extends Pick<MovingOptions, 'host' | 'stop' | 'dryRun' | 'clock' | 'monotonic'> {
  placed: Pick<
    PlacedPods,
    | 'member'
    | 'inMember'
    | 'ofWorkload'
    | 'workloadNamed'
    | 'workloadByKey'
    | 'rulesOf'
    | 'hasRules'
    | 'whyRulesUnknown'
    | 'clusterOf'
    | 'surgingSetOf'
    | 'migration'
    | 'wayOf'
    | 'migrationKeys'
    | 'migrationsProblem'
    | 'whyNotTogether'
    | 'problem'
  >;
  mover: Pick<Mover, 'read' | 'wasSent' | 'isGoing' | 'restMs' | 'turnOf' | 'keeps' | 'move' | 'whyHeld' | 'fuse'>;
}

/** Of a migration; forgotten in a restart, which only makes it take longer. Times in monotonic ms. */
interface Sight {
  readonly judging: Judging;
  /** When it was first seen to be under way. */
  begun?: number;
  /** Fewest pods that were left, and since when they are. */
  left: number;
  leftSince: number;
  moving: number;
  /** When last something changed, or was still coming. */
  stirred: number;
  /** Since when a cluster of the way cannot be reckoned with. */
  lostSince: number | undefined;
  /** What was found last of each workload: what is known of one that cannot be looked at. */
  readonly steps: Map<string, MigrationStep>;
  readonly turns: MigrationTurns;
}

/** A workload of a migration in one look. `unread`: why nothing was found of it; undefined: it is none of those that are moved. */
type Looked =
  | { readonly entry: MigratedWorkload; readonly unread: string | undefined }
  | (Turn & {
      readonly entry: MigratedWorkload;
      readonly one: NamedWorkload;
      readonly step: MigrationStep;
      readonly notNow: string | undefined;
    });

/**
 * Carries WorkloadMigrations out. First the whole set is judged; when it does not fit nothing is done. Then its status says that it is under way,
 * by which all replicas let new pods of these workloads go one way only (`placement/migrating.ts`), and pods leave the member as
 * the strategy (`migration.ts`) and the mover let them. All that has to outlive a restart stands in the status and on pods.
 */
export class Migrations {
  readonly #o: MigrationsOptions;
  readonly #pods: MigratedPods;
  readonly #judge: MigrationJudge;
  readonly #sights = new OrderMemory<Sight>();

  constructor(options: MigrationsOptions) {
    this.#o = options;
    this.#pods = new MigratedPods(options);
    this.#judge = new MigrationJudge({ ...options, pods: this.#pods, fuse: options.mover.fuse });
  }

  /** Throws what the host answers. */
  async bringUpToDate(key: string, signal: AbortSignal): Promise<HandlerResult> {
    const { placed, clock, host } = this.#o;
    const migration = placed.migration(key);
    if (migration === undefined || migration.metadata.deletionTimestamp !== undefined) return this.#sights.forget(key);
    const deletedIn = deletedInMs(migration, clock());
    if (deletedIn === 0) {
      await removeFinished(host, WORKLOAD_MIGRATIONS, migration, signal);
      return this.#sights.forget(key);
    }
    if (isOver(migration)) {
      this.#sights.forget(key);
      return deletedIn === undefined ? undefined : { requeueAfterMs: deletedIn };
    }
    try {
      return await this.#lookAt(key, migration, signal);
    } finally {
      this.#judge.written(key);
    }
  }

  async #lookAt(key: string, migration: WorkloadMigration, signal: AbortSignal): Promise<HandlerResult> {
    const { clock, host } = this.#o;
    const failures = new OrderFailures();
    const found = await this.#look(key, migration, failures, signal);
    const restMs = this.#judge.restMs(this.#sights.get(key)?.judging ?? {});
    if (found === undefined) return { requeueAfterMs: Math.max(LOOK_MS, restMs) };
    const status = migrationStatus(migration, found, clock());
    await failures.afterwards(() => writeOrderStatus(host, WORKLOAD_MIGRATIONS, migration, status, signal));
    if (migration.spec.suspend || status.finishTime !== undefined) return undefined;
    return { requeueAfterMs: found.fits?.status === 'Unknown' ? Math.max(NOT_KNOWN_MS, restMs) : LOOK_MS };
  }

  /** Undefined: nothing is to be said yet. */
  async #look(
    key: string,
    migration: WorkloadMigration,
    failures: OrderFailures,
    signal: AbortSignal,
  ): Promise<MigrationFound | undefined> {
    const known = migration.status?.workloads ?? [];
    const suspended = this.#whySuspended(migration);
    if (suspended !== undefined) {
      this.#sights.forget(key);
      const message = `${suspended}; afterwards what is left is judged anew`;
      return { state: 'Suspended', message, workloads: known, fits: undefined };
    }
    const now = this.#o.monotonic();
    const begin = (): Sight => ({
      judging: {},
      left: Infinity,
      leftSince: now,
      moving: 0,
      stirred: now,
      lostSince: undefined,
      steps: new Map(),
      turns: new MigrationTurns(),
    });
    const sight = this.#sights.of(key, migration, begin);
    if (!isJudged(migration)) return await this.#judge.judge(migration, sight.judging, signal);
    if (this.#o.dryRun) {
      // New pods are not to be led anywhere either.
      const message = 'it is not gone on with, as descheduler.dryRun is set. What has moved stays moved';
      return { state: 'DryRun', message, workloads: known, fits: { status: 'True', message: saidOfFit(migration) } };
    }
    return await this.#goOn(migration, sight, failures, signal);
  }

  #whySuspended({ spec }: WorkloadMigration): string | undefined {
    if (spec.suspend) return 'no move begins while spec.suspend is true';
    // A report moves nothing.
    return spec.dryRun || this.#o.dryRun ? undefined : this.#o.stop.why;
  }

  async #goOn(
    migration: WorkloadMigration,
    sight: Sight,
    failures: OrderFailures,
    signal: AbortSignal,
  ): Promise<MigrationFound> {
    const { placed, mover, monotonic } = this.#o;
    const { from } = migration.spec;
    sight.begun ??= monotonic();
    const named = new Map(this.#pods.movedBy(migration).map((one) => [inText(one.reference), one]));
    const course: Course = { workloads: [], held: new Map(), unplaced: 0, missing: 0, isComing: false, rests: false };
    const { workloads, held } = course;
    const isHeard = monotonic() - sight.begun >= HEARD_MS;
    const looked: Looked[] = [];
    for (const entry of migration.status?.workloads ?? []) {
      const name = inText(entry.workload);
      const one = named.get(name);
      const read = one && (await failures.at(async () => await this.#pods.of(one, from, signal)));
      const pods = read !== undefined && 'done' in read ? read.done : undefined;
      if (one === undefined || read === undefined || pods === undefined) {
        looked.push({ entry, unread: read && ('failed' in read ? read.failed : UNREAD) });
        continue;
      }
      const step = migrationStep(pods, from, this.#pods.wantedOf(one));
      sight.steps.set(name, step);
      const notNow = this.#whyNotNow(migration, one);
      looked.push({ entry, name, one, step, notNow, hasBegun: step.moving > 0, isUntried: false });
    }
    const mayGo = looked.filter((each) => 'step' in each).filter((each) => isHeard && each.notNow === undefined);
    await sight.turns.give(mayGo, async (each, pod) => {
      const isAsked = failures.ofHost === undefined;
      const tried = await failures.at(async () => await this.#move(migration, each.one, pod, signal));
      if ('done' in tried) return tried.done;
      each.failed = tried.failed;
      return isAsked ? 'held' : 'rests';
    });
    for (const each of looked) {
      if (!('step' in each)) {
        unseen(course, each.entry, sight.steps.get(inText(each.entry.workload)), each.unread);
        continue;
      }
      const { entry, step, notNow, failed, hasBegun, isUntried } = each;
      course.unplaced += step.unplaced;
      course.missing += step.missing;
      course.isComing ||= step.isComing && !step.isOver;
      const isHeld = isHeard && !hasBegun && step.waiting > step.stays.length;
      const why = isHeld ? (notNow ?? failed ?? this.#whyHeld(step)) : undefined;
      course.rests ||=
        isHeld &&
        (isUntried ||
          placed.problem !== undefined ||
          placed.migrationsProblem !== undefined ||
          step.moves.some((pod) => mover.fuse.tooOften(pod) !== undefined));
      const found = seen(entry, step, why);
      if (why !== undefined) held.set(found, why);
      workloads.push(found);
    }
    course.rests ||= failures.ofHost !== undefined;
    return this.#found(migration, course, sight);
  }

  #found(migration: WorkloadMigration, course: Course, sight: Sight): MigrationFound {
    const { spec } = migration;
    const { workloads, unplaced, missing } = course;
    const now = this.#o.monotonic();
    const fits = { status: 'True', message: saidOfFit(migration) } as const;
    const [waiting, moving] = [sumOf(workloads, 'waiting'), sumOf(workloads, 'moving')];
    if (workloads.every(({ reason }) => reason === 'Moved' || reason === 'LeftBehind')) {
      const left = workloads.filter(({ reason }) => reason === 'LeftBehind');
      const message =
        left.length === 0
          ? 'all pods have left'
          : `all pods have left but those that are never moved: ${listInText(left)}`;
      return { state: 'Moved', message, workloads, fits };
    }
    const left = waiting + moving + unplaced;
    if (left < sight.left) [sight.left, sight.leftSince, sight.stirred] = [left, now, now];
    if (moving !== sight.moving || course.isComing) [sight.moving, sight.stirred] = [moving, now];
    if (course.rests) [sight.leftSince, sight.stirred] = [now, now];
    const lost = this.#lost(spec);
    sight.lostSince = lost === undefined ? undefined : (sight.lostSince ?? now);
    const isLost = now - (sight.lostSince ?? now) >= LOST_MS;
    const isStuck = now - sight.stirred >= PATIENCE_MS || now - sight.leftSince >= LONG_PATIENCE_MS;
    if (!isLost && !isStuck) {
      return { state: 'Progressing', message: progressInWords(course, spec.from, lost), workloads, fits };
    }
    const stays = (isLost ? lost : undefined) ?? whyStuck(waiting + moving, unplaced, missing);
    return {
      state: 'PodsStay',
      message: `${stays}. What has moved stays moved`,
      workloads: givenUp(course, stays),
      fits,
    };
  }

  /** Which cluster of the way does not answer, or is none any more: pods that may go nowhere else would wait for it. */
  #lost({ from, to }: WorkloadMigration['spec']): string | undefined {
    for (const name of [to, from]) {
      if (name === undefined || name === LOCAL) continue;
      const member = this.#o.placed.member(name);
      // The one that pods leave need not take any.
      const why = name === from ? member?.silent : member?.unavailable;
      if (member === undefined) return `${clusterInWords(name)}: there is no such member`;
      if (why !== undefined) return `${clusterInWords(name)}: ${why}`;
    }
    return undefined;
  }

  async #move(
    migration: WorkloadMigration,
    one: NamedWorkload,
    pod: Pod,
    signal: AbortSignal,
  ): Promise<'rests' | MoveOutcome> {
    const { host, mover } = this.#o;
    const move = migrationMove(pod, wayOf(migration), {
      recheck: (live) => this.#recheck(live, migration, one),
      isOrdered: async (until) => await isOrdered(host, WORKLOAD_MIGRATIONS, migration, until),
    });
    if (mover.restMs(pod) > 0 || mover.keeps(move)) return 'rests';
    return await mover.move(move, signal);
  }

  /** Why none of the pods that are to leave next does so now. */
  #whyHeld({ moves }: MigrationStep): string | undefined {
    if (moves.length === 0) return 'they go one at a time, while all others of the workload are there and Ready';
    return moves.map((pod) => this.#o.mover.whyHeld(pod, 'Migrate')).find((why) => why !== undefined);
  }

  /** Asked while the move waits for its turn, so from caches alone. */
  #recheck(live: Pod, asked: WorkloadMigration, one: NamedWorkload): Recheck {
    const { placed } = this.#o;
    const migration = placed.migration(keyOf(asked));
    // Deleted, made anew, suspended or edited meanwhile.
    if (!isSameOrder(asked, migration) || !isUnderWay(migration)) return 'notWanted';
    const { from } = migration.spec;
    if (placed.clusterOf(live.spec.nodeName ?? '') !== from || isFinished(live)) return 'notWanted';
    const not = this.#whyNotNow(migration, one);
    if (not !== undefined) return { why: not, ofWorkload: true };
    const why = this.#pods.whyStays(live);
    if (why !== undefined) return { why };
    // One of the others does not run well by now: it will be looked at again.
    return this.#pods.mayGoNow(live, one) ? undefined : 'notWanted';
  }

  #whyNotNow(migration: WorkloadMigration, { workload }: NamedWorkload): string | undefined {
    const { placed } = this.#o;
    const { from } = migration.spec;
    const notFollowed = whyNotFollowed(WORKLOAD_MIGRATIONS, placed.migrationsProblem);
    if (notFollowed !== undefined) return notFollowed;
    const silent = placed.member(from)?.silent;
    if (silent !== undefined) return `${clusterInWords(from)}: ${silent}`;
    const by = workload === undefined ? undefined : placed.wayOf(workload)?.by;
    if (by === keyOf(migration)) return undefined;
    return by === undefined
      ? 'schedulers do not know yet where it goes'
      : `WorkloadMigration ${by} moves its workload now`;
  }
}

function saidOfFit(migration: WorkloadMigration): string {
  return conditionOf(migration, 'Fits')?.message ?? '';
}

function inText({ apiVersion, kind, name }: MigratedWorkload['workload']): string {
  return `${apiVersion}/${kind}/${name}`;
}
