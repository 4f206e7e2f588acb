/** One figure of a bench run, as it stands in results/latest.json. */
export interface Measurement {
  name: string;
  value: number;
  unit: string;
  /** What it should be; null for a figure that is only there to compare others with. */
  goal: number | null;
  better: 'lower' | 'higher';
  /** The goal is met, or there is none. */
  ok: boolean;
}

/** What one suite found. */
export interface SuiteReport {
  suite: string;
  measurements: Measurement[];
  /** What a reader has to know besides the table: settings, things that could not be measured and why. */
  notes: string[];
  /** What went wrong; the figures that are there are good all the same. */
  failures: string[];
}

export function measured(
  name: string,
  value: number,
  unit: string,
  better: 'lower' | 'higher',
  goal: number | null = null,
): Measurement {
  const rounded = roundTo(value, 4);
  const ok = goal === null || (Number.isFinite(value) && (better === 'lower' ? value <= goal : value >= goal));
  return { name, value: rounded, unit, goal, better, ok };
}

/** Rounded to so many significant digits: enough to compare runs, without a show of precision. */
function roundTo(value: number, digits: number): number {
  return Number.isFinite(value) ? Number(value.toPrecision(digits)) : value;
}

/** The value below which the share `q` (0 to 1) of the values lies; NaN of an empty list. */
export function quantile(values: readonly number[], q: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const at = Math.min(sorted.length - 1, Math.max(0, Math.ceil(q * sorted.length) - 1));
  return sorted[at] ?? Number.NaN;
}

/** The middle value; of an even count the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  const upper = sorted[half];
  if (upper === undefined) return Number.NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[half - 1] ?? upper)) / 2;
}
