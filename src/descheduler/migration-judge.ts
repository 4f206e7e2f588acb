import type { WorkloadMigration } from '../api/workload-migration.ts';
import { counted } from '../kube/counted.ts';
import { keyOf } from '../kube/object.ts';
import { isUnderWay, wayOf } from '../placement/migrating.ts';
import type { GoingTogether, PlacedPods } from '../placement/placed-pods.ts';
import type { MigratedPods } from './migrated-pods.ts';
import { type JudgedWorkload, migrationReport, withPlaces } from './migration-report.ts';
import type { MovesFuse } from './moves-fuse.ts';
import { isSameOrder } from './order.ts';
import { isJudged, listInText, type MigrationFound, refused } from './migration-status.ts';
import type { MovingOptions } from './moving-options.ts';

/** Policies and workloads that were written just before may not be known yet: a report counts that every look finds for so long, in ms. */
const SETTLED_MS = 3_000;
/** After a start members are known by then; what is not known after so long lacks something, in ms. */
const LONG_NOT_KNOWN_MS = 60_000;
/** By then the caches show what was written, in ms. */
const SHOWN_MS = 10_000;
/** Between two looks at a migration of which it is not known yet whether it fits, in ms; each time twice as long where all of it was asked for. */
export const NOT_KNOWN_MS = 2_000;
const LONGEST_NOT_KNOWN_MS = 60_000;

export interface MigrationJudgeOptions extends Pick<MovingOptions, 'dryRun' | 'clock' | 'monotonic'> {
  placed: Pick<
    PlacedPods,
    'problem' | 'member' | 'hasRules' | 'whyRulesUnknown' | 'wayOf' | 'whyNotTogether' | 'migration' | 'migrationKeys'
  >;
  pods: MigratedPods;
  fuse: Pick<MovesFuse, 'tooOften'>;
}

/** What is remembered of a migration that is being judged, times in monotonic ms; may be lost. */
export interface Judging {
  /** What can be said without asking for room, and since when each look finds it. */
  report?: { readonly text: string; readonly since: number };
  /** Since when it is not known whether it fits. */
  notKnownSince?: number;
  /** As long as the report stays the same: when the whole is asked about again, as it was not known, and how long after the last time. */
  again?: { readonly at: number; readonly afterMs: number };
}

/**
 * Judges migrations as a whole, one at a time: the next one finds the room taken that those under way have yet to use. The question
 * costs seconds of a large one, so it is asked once, when all else has settled.
 */
export class MigrationJudge {
  readonly #o: MigrationJudgeOptions;
  /** By its key: the one that is asked about, until what was found is written. */
  #asking: string | undefined;
  /** Found to fit last: until the caches show that it is under way its room counts for nobody. */
  #fitted: { readonly migration: WorkloadMigration; readonly at: number } | undefined;

  constructor(options: MigrationJudgeOptions) {
    this.#o = options;
  }

  /** Undefined: nothing is to be said yet. To be followed by {@link written}. */
  async judge(
    migration: WorkloadMigration,
    judging: Judging,
    signal: AbortSignal,
  ): Promise<MigrationFound | undefined> {
    const { placed, dryRun, monotonic } = this.#o;
    const key = keyOf(migration);
    const isDry = dryRun || migration.spec.dryRun;
    const report = await migrationReport(migration, { ...this.#o, isDry }, signal);
    const { why, notKnown, judged } = report;
    const entries = judged.map(({ entry }) => entry);
    const text = JSON.stringify([why, notKnown, entries.map(({ workload, reason }) => [workload, reason])]);
    const now = monotonic();
    if (judging.report?.text !== text) {
      judging.report = { text, since: now };
      delete judging.again;
    }
    if (now - judging.report.since < SETTLED_MS) return undefined;
    if (notKnown !== undefined) return this.#notKnown({ missing: notKnown, workloads: entries }, judging);
    if (why !== undefined) return refusal(why, entries);
    // What is known not to fit is told with all the rest, and at once.
    const waits = refused(entries).length > 0 ? undefined : this.#waits(entries, judging);
    if (waits !== undefined) return waits;
    if (this.restMs(judging) > 0 || this.#isTaken(key)) return undefined;
    this.#asking = key;
    const others = await this.#underWay(key, signal);
    // What was found to fit a moment ago the report may not have seen.
    if (judged.some((one) => this.#goesOtherwise(one, key))) return undefined;
    const own: GoingTogether = { pods: judged.flatMap((one) => one.pods), way: wayOf(migration) };
    const whys = await placed.whyNotTogether([...others, own], signal);
    return this.#verdict(
      migration,
      judged.map((one) => withPlaces(one, whys)),
      judging,
    );
  }

  /** What was found of the migration is written, or never will be. */
  written(key: string): void {
    if (this.#asking === key) this.#asking = undefined;
  }

  /** Until the whole is to be asked about again, as it was not known, in ms; 0: there is nothing to wait for. */
  restMs({ again }: Judging): number {
    return Math.max(0, (again?.at ?? 0) - this.#o.monotonic());
  }

  #goesOtherwise({ workload, entry: { reason } }: JudgedWorkload, key: string): boolean {
    const by = workload === undefined ? undefined : this.#o.placed.wayOf(workload)?.by;
    return reason === 'Fits' && by !== undefined && by !== key;
  }

  #verdict(migration: WorkloadMigration, workloads: MigrationFound['workloads'], judging: Judging): MigrationFound {
    const { dryRun: isDry, monotonic } = this.#o;
    const against = refused(workloads);
    if (against.length > 0) {
      const words = `${counted(against.length, 'workload')} of ${String(workloads.length)}: ${listInText(against)}`;
      return refusal(words, workloads);
    }
    const missing = listInText(workloads.filter(({ reason }) => reason === 'NotKnown'));
    if (missing !== '') {
      const afterMs = Math.min(LONGEST_NOT_KNOWN_MS, 2 * (judging.again?.afterMs ?? NOT_KNOWN_MS / 2));
      judging.again = { at: monotonic() + afterMs, afterMs };
      return this.#notKnown({ missing, workloads }, judging);
    }
    delete judging.again;
    delete judging.notKnownSince;
    const count = workloads.filter(({ reason }) => reason === 'Fits').reduce((sum, { pods }) => sum + pods, 0);
    const message = `there is a place for ${counted(count, 'pod')} where the migration leads`;
    const fits = { status: 'True', message } as const;
    const { dryRun } = migration.spec;
    if (dryRun || isDry) {
      const because = dryRun ? 'spec.dryRun is true' : 'descheduler.dryRun is set';
      return { state: 'DryRun', message: `it fits; nothing is moved, as ${because}`, workloads, fits };
    }
    this.#fitted = { migration, at: monotonic() };
    return { state: 'Progressing', message: 'pods are about to be moved', workloads, fits };
  }

  /** What has to be read, or over, before the whole is worth a question; undefined: nothing has. */
  #waits(workloads: MigrationFound['workloads'], judging: Judging): MigrationFound | undefined {
    const unread = listInText(workloads.filter(({ reason }) => reason === 'NotRead'));
    if (unread !== '') return this.#notKnown({ missing: unread, workloads }, judging);
    const often = listInText(workloads.filter(({ reason }) => reason === 'MovedTooOften'));
    if (often === '') return undefined;
    delete judging.notKnownSince;
    const message = `it waits: ${often}. Nothing is moved until then, when it is asked whether all of it fits`;
    const fits = { status: 'Unknown', message: often, reason: 'MovedTooOften' } as const;
    return { state: 'Progressing', message, workloads, fits };
  }

  /** No verdict, and none that it does not fit, from what is not known yet: as after a start of this process. */
  #notKnown(
    { missing, workloads }: { missing: string; workloads: MigrationFound['workloads'] },
    judging: Judging,
  ): MigrationFound {
    const now = this.#o.monotonic();
    judging.notKnownSince ??= now;
    const isLong = now - judging.notKnownSince >= LONG_NOT_KNOWN_MS;
    const message = isLong
      ? `for more than a minute it has not been known whether all of it fits: ${missing}. Nothing is moved, and it is asked again; kubectl spillway status shows what the manager knows of each member`
      : `it is not known yet whether all of it fits: ${missing}. Nothing is moved, and it is asked again`;
    return { state: 'Progressing', message, workloads, fits: { status: 'Unknown', message: missing } };
  }

  /** Another one is being judged, or was found to fit, and its room is not seen to be taken yet. */
  #isTaken(key: string): boolean {
    const { placed, monotonic } = this.#o;
    if (this.#asking !== undefined) return true;
    if (this.#fitted === undefined || keyOf(this.#fitted.migration) === key) return false;
    const { migration, at } = this.#fitted;
    const shown = placed.migration(keyOf(migration));
    if (isSameOrder(migration, shown) && !isJudged(shown) && monotonic() - at < SHOWN_MS) return true;
    this.#fitted = undefined;
    return false;
  }

  /** What others that are under way have yet to find a place for. */
  async #underWay(key: string, signal: AbortSignal): Promise<GoingTogether[]> {
    const { placed, pods } = this.#o;
    const found: GoingTogether[] = [];
    for (const other of placed.migrationKeys()) {
      const migration = other === key ? undefined : placed.migration(other);
      if (migration === undefined || !isUnderWay(migration)) continue;
      const going: GoingTogether['pods'][] = [];
      for (const one of pods.movedBy(migration)) going.push(await pods.yetToPlace(one, migration.spec.from, signal));
      found.push({ pods: going.flat(), way: wayOf(migration) });
    }
    return found;
  }
}

function refusal(message: string, workloads: MigrationFound['workloads']): MigrationFound {
  return {
    state: 'Refused',
    // Pods may have left before it was stopped, or edited.
    message: `${message}; as it stands nothing is moved by it; edit the migration, or make it anew, to have it judged again`,
    workloads,
    fits: { status: 'False', message },
  };
}
