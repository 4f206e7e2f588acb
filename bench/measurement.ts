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
  /** How far it was from one part of the run to another: half of that range, as a share of the value. Only of what was measured several times. */
  spread?: number;
  /** Of what others do, to compare with: worse is the machine then, not this program. */
  reference?: true;
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

/** The same, with how far it was apart in the parts of the run: of each turn, or of each third of many samples ({@link thirds}). */
export function withSpread(measurement: Measurement, parts: readonly number[]): Measurement {
  const range = Math.max(...parts) - Math.min(...parts);
  const spread = range / 2 / Math.abs(measurement.value);
  return parts.length < 2 || !Number.isFinite(spread) ? measurement : { ...measurement, spread: roundTo(spread, 2) };
}

export function asReference(measurement: Measurement): Measurement {
  return { ...measurement, reference: true };
}

/** The figure of each third of the samples, in the order in which they were taken. */
export function thirds(samples: readonly number[], figure: (samples: readonly number[]) => number): number[] {
  const cut = (part: number): number => Math.round((samples.length * part) / 3);
  return samples.length < 6 ? [] : [0, 1, 2].map((part) => figure(samples.slice(cut(part), cut(part + 1))));
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
