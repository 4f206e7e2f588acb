import { cleanText } from '../kube/clean-text.ts';

/** Between two columns, as kubectl has it. */
const GAP = '   ';
/** Of one cell, in bytes, so that no member fills the screen. */
const LONGEST_CELL = 400;
const NONE = '<none>';

/** One column of a table; those that are `wide` are shown with `-o wide` only. */
export interface Column<T> {
  readonly name: string;
  /** `undefined` or '': nothing to show. */
  readonly text: (item: T) => string | number | undefined;
  readonly wide?: boolean;
}

/** A table as kubectl prints it, each line ended. Whatever is in a cell is made fit for terminals. */
export function table<T>(
  items: readonly T[],
  columns: readonly Column<T>[],
  { wide = false, headers = true }: { wide?: boolean; headers?: boolean } = {},
): string {
  const shown = columns.filter((column) => wide || column.wide !== true);
  const rows = items.map((item) => shown.map(({ text }) => cell(text(item))));
  if (headers) rows.unshift(shown.map(({ name }) => name));
  const widths = shown.map((_, index) => Math.max(0, ...rows.map((row) => row[index]?.length ?? 0)));
  const line = (row: readonly string[]): string =>
    row
      .map((text, index) => text.padEnd(widths[index] ?? 0))
      .join(GAP)
      .trimEnd();
  return rows.map((row) => `${line(row)}\n`).join('');
}

function cell(value: string | number | undefined): string {
  if (value === undefined || value === '') return NONE;
  return typeof value === 'number' ? String(value) : cleanText(value, LONGEST_CELL);
}
