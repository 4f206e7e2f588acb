import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { INVARIANTS } from '../../src/api/invariants.ts';

const ROWS = readFileSync('docs/invariants.md', 'utf8').split('\n');

it.each(Object.entries(INVARIANTS))('%s: the page says where it is guarded and tested', (id, rule) => {
  const row = ROWS.find((line) => line.startsWith(`| ${id} |`)) ?? '';
  const [, , text, guards = '', tests = ''] = row.split('|').map((cell) => cell.trim().replaceAll('`', ''));
  expect(text).toBe(rule);
  for (const guard of guards.split(', ')) expect(readFileSync(guard, 'utf8')).toContain(`'${id}'`);
  for (const test of tests.split(', ')) {
    expect(readFileSync(test, 'utf8')).toMatch(new RegExp(`it(\\.each\\([^]*?\\))?\\('${id}:`));
  }
});
