import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { STRATEGIES } from '../../src/descheduler/strategies.ts';

/** The table at the top of the page: when pods are moved, and what can be done about it. */
const [, HEAD = '', TABLE = ''] =
  /^(\| what happens \|.*\|)\n\|[-|]+\|\n((?:\|.*\n)+)/m.exec(readFileSync('docs/concepts/failover.md', 'utf8')) ?? [];
const cellsOf = (line: string): string[] =>
  line
    .slice(1, -1)
    .split('|')
    .map((cell) => cell.trim());
const COLUMNS = cellsOf(HEAD);
const ROWS = TABLE.trimEnd().split('\n').map(cellsOf);

it('the table has a row of every strategy, and none of any other', () => {
  expect(COLUMNS.at(-1)).toBe('strategy');
  const strategies = ROWS.map((cells) => /^`(\w+)`$/.exec(cells.at(-1) ?? '')?.[1]).filter((name) => name !== undefined);
  expect(strategies.toSorted()).toEqual(Object.keys(STRATEGIES).toSorted());
});

it.each(ROWS.map((cells) => [cells[0] ?? '', cells] as const))('the table leaves no cell empty: %s', (_what, cells) => {
  expect(cells).toHaveLength(COLUMNS.length);
  expect(cells.filter((cell) => cell === '')).toEqual([]);
});

it('what ends a move that has begun is no strategy: one row says so', () => {
  expect(ROWS.filter((cells) => !(cells.at(-1) ?? '').startsWith('`')).map((cells) => cells.at(-1))).toEqual([
    'that of the move',
  ]);
});
