import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { describeMachine } from '../../bench/machine.ts';
import { asReference, measured, withSpread } from '../../bench/measurement.ts';
import { renderResults, writeResults } from '../../bench/results.ts';
import { parseRun } from '../../bench/stored-results.ts';

it('writes all figures for programs and a table for people', () => {
  const dir = mkdtempSync(join(tmpdir(), 'results-'));
  try {
    const reports = [
      {
        suite: 'one',
        measurements: [withSpread(measured('fast enough', 0.9, 'ratio', 'higher', 0.7), [1, 0.8])],
        notes: ['a note'],
        failures: [],
      },
      {
        suite: 'two',
        measurements: [measured('too big', 300, 'MB', 'lower', 220), asReference(measured('size', 3, 'x', 'lower'))],
        notes: [],
        failures: ['this\nand that'],
      },
      { suite: 'three', measurements: [], notes: ['Not measured: no root'], failures: [] },
    ];
    const machine = describeMachine();
    writeResults(dir, reports, machine, new Date('2026-01-02T03:04:05Z'));
    const stored = readFileSync(join(dir, 'results', 'latest.json'), 'utf8');
    expect(JSON.parse(stored)).toEqual({
      when: '2026-01-02T03:04:05.000Z',
      machine,
      measurements: [
        { name: 'fast enough', value: 0.9, unit: 'ratio', goal: 0.7, better: 'higher', ok: true, spread: 0.11 },
        { name: 'too big', value: 300, unit: 'MB', goal: 220, better: 'lower', ok: false },
        { name: 'size', value: 3, unit: 'x', goal: null, better: 'lower', ok: true, reference: true },
      ],
    });
    expect(parseRun(stored).measurements).toHaveLength(3);
    const page = readFileSync(join(dir, 'RESULTS.md'), 'utf8');
    expect(page).toContain('2026-01-02 03:04 UTC; 1 of 2 goals met');
    expect(page).toContain(`Node ${process.version}`);
    expect(page).toContain('| fast enough | 0.9 ratio ± 11 % | >= 0.7 | met |');
    expect(page).toContain('| too big | 300 MB | <= 220 | **missed** |');
    expect(page).toContain('- **Failed:** this and that');
    expect(page).toContain('- Not measured: no root');
  } finally {
    rmSync(dir, { recursive: true });
  }
});

it.each([
  { loadBefore: 8.51, said: ['**Not quiet:** load 8.51 before the run, on 2 cores; up to 1 counts as quiet.'] },
  { loadBefore: 1.01, said: ['**Not quiet:** load 1.01 before the run, on 2 cores; up to 1 counts as quiet.'] },
  { loadBefore: 1, said: [] },
  { loadBefore: 0.02, said: [] },
  { loadBefore: Number.NaN, said: [] },
])('says of a load of $loadBefore on two cores: $said', ({ loadBefore, said }) => {
  const page = renderResults([], { ...describeMachine(), cores: 2, loadBefore }, new Date());
  expect(page.split('\n').filter((line) => line.includes('quiet'))).toEqual(said);
});
