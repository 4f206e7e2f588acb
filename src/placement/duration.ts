const UNITS = new Map([
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
]);

/** Milliseconds of a duration such as `90s` or `1h30m`; the schema of the policies lets nothing else through. */
export function parseDuration(text: string): number {
  // Looking behind keeps it linear: a long row of digits is tried once, not from each of its digits.
  let total = 0;
  for (const [, count, unit] of text.matchAll(/(?<!\d)(\d+)([hms])/g))
    total += Number(count) * (UNITS.get(unit ?? '') ?? 0);
  return total;
}

/** `1h 30m`, `90s`: a duration for people. */
export function durationInWords(milliseconds: number): string {
  const seconds = Math.ceil(milliseconds / 1_000);
  if (seconds < 120) return `${String(seconds)}s`;
  const minutes = Math.ceil(seconds / 60);
  if (minutes < 120) return `${String(minutes)}m`;
  const hours = Math.floor(minutes / 60);
  return minutes % 60 === 0 ? `${String(hours)}h` : `${String(hours)}h ${String(minutes % 60)}m`;
}
