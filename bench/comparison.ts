import { percent } from './percent.ts';
import type { StoredMeasurement, StoredRun } from './stored-results.ts';

/** From so much worse on a figure has become worse. */
const TOLERATED = 0.05;

/** Units that say the same on any machine. All others are of the machine: seconds, CPU, memory and what is done in a second. */
const OF_ANY_MACHINE: ReadonlySet<string> = new Set(['', 'ratio', 'calls', 'members', 'bytes']);

/** Differences below these are nothing, however large they are as a share: of a figure near 0 anything is many per cent. */
const GRAIN: Readonly<Record<string, number>> = { calls: 0.01, s: 0.01, ms: 0.05, 'CPU-s': 0.05, MB: 1 };

export type Verdict = 'worse' | 'better' | 'same' | 'not judged';

export interface Compared {
  name: string;
  unit: string;
  before: number | null;
  after: number | null;
  /** Above 0: worse by that share of what it was. */
  worseBy: number;
  /** Up to this share it counts as the same. */
  tolerated: number;
  verdict: Verdict;
  /** Why it is not judged, or how far it spreads. */
  note: string;
}

export interface Comparison {
  figures: Compared[];
  /** Names of figures that only one of the two runs has: other suites were asked for, or the bench has changed. */
  onlyBefore: string[];
  onlyAfter: string[];
}

/** What became of each figure that both runs have, from the older to the newer one. */
export function compareRuns(before: StoredRun, after: StoredRun): Comparison {
  const older = new Map(before.measurements.map((one) => [one.name, one]));
  const newer = new Map(after.measurements.map((one) => [one.name, one]));
  const same = sameMachine(before, after);
  return {
    figures: after.measurements.flatMap((one) => {
      const other = older.get(one.name);
      return other === undefined ? [] : [compare(other, one, same)];
    }),
    onlyBefore: [...older.keys()].filter((name) => !newer.has(name)),
    onlyAfter: [...newer.keys()].filter((name) => !older.has(name)),
  };
}

function sameMachine({ machine: one }: StoredRun, { machine: other }: StoredRun): boolean {
  return (
    one !== undefined &&
    other !== undefined &&
    one.cores === other.cores &&
    one.processor === other.processor &&
    one.memoryGiB === other.memoryGiB &&
    one.node === other.node
  );
}

function compare(before: StoredMeasurement, after: StoredMeasurement, sameMachine: boolean): Compared {
  const { name, unit, better } = after;
  const spread = (before.spread ?? 0) + (after.spread ?? 0);
  const tolerated = Math.max(TOLERATED, spread);
  const worseBy = worsening(before.value, after.value, better);
  const figure = { name, unit, before: before.value, after: after.value, worseBy, tolerated };
  const reason = notJudged(before, after, sameMachine);
  if (reason !== undefined) return { ...figure, verdict: 'not judged', note: reason };
  const note = spread > TOLERATED ? `spreads by ${percent(spread)}` : '';
  const tiny =
    before.value !== null && after.value !== null && Math.abs(after.value - before.value) < (GRAIN[unit] ?? 0);
  const verdict = tiny ? 'same' : worseBy > tolerated ? 'worse' : worseBy < -tolerated ? 'better' : 'same';
  return { ...figure, verdict, note };
}

function notJudged(before: StoredMeasurement, after: StoredMeasurement, sameMachine: boolean): string | undefined {
  if (after.reference === true) return 'of what others do';
  if (before.unit !== after.unit || before.better !== after.better) return 'means something else now';
  if (before.value === null) return 'was not measured before';
  if (!sameMachine && !OF_ANY_MACHINE.has(after.unit)) return 'of another machine';
  return undefined;
}

/** By which share of what it was; infinite from 0 on, and where nothing could be measured any more. */
function worsening(before: number | null, after: number | null, better: 'lower' | 'higher'): number {
  if (before === null) return 0;
  if (after === null) return Number.POSITIVE_INFINITY;
  const more = better === 'lower' ? after - before : before - after;
  return more === 0 ? 0 : more / Math.abs(before);
}
