import type { Compared, Comparison } from './comparison.ts';
import { percent } from './percent.ts';

/** For people; figures that became worse come first. `every`: also those that stayed the same or are not judged. */
export function renderComparison({ figures, onlyBefore, onlyAfter }: Comparison, every: boolean): string {
  const of = (verdict: Compared['verdict']): Compared[] => figures.filter((one) => one.verdict === verdict);
  const [worse, better, same, rest] = [of('worse'), of('better'), of('same'), of('not judged')];
  const shown = [...worse, ...better, ...(every ? [...same, ...rest] : [])];
  const lines = [
    ...shown.map(line),
    `${figures.length} figures compared: ${worse.length} worse, ${better.length} better, ${same.length} the same, ${rest.length} not judged${reasons(rest)}.`,
  ];
  if (onlyBefore.length > 0) lines.push(`${onlyBefore.length} figures of the older run only.`);
  if (onlyAfter.length > 0) lines.push(`${onlyAfter.length} figures of the newer run only.`);
  return `${lines.join('\n')}\n`;
}

function reasons(figures: readonly Compared[]): string {
  const counts = new Map<string, number>();
  for (const { note } of figures) counts.set(note, (counts.get(note) ?? 0) + 1);
  return counts.size === 0 ? '' : ` (${[...counts].map(([note, count]) => `${count} ${note}`).join(', ')})`;
}

function line({ verdict, name, unit, before, after, worseBy, note }: Compared): string {
  const value = (one: number | null): string => (one === null ? 'none' : `${one} ${unit}`.trimEnd());
  const change = verdict === 'worse' || verdict === 'better' ? ` by ${percent(Math.abs(worseBy))}` : '';
  return `${verdict}${change}: ${name}: ${value(before)} -> ${value(after)}${note === '' ? '' : ` (${note})`}`;
}
