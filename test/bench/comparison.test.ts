import { describe, expect, it, test } from 'vitest';
import { compareRuns } from '../../bench/comparison.ts';
import { renderComparison } from '../../bench/comparison-table.ts';
import { parseRun, type StoredMeasurement, type StoredRun } from '../../bench/stored-results.ts';

const MACHINE = { cores: 2, processor: 'A', memoryGiB: 8, node: 'v20.1.0' };
const figure = (value: number | null, more: Partial<StoredMeasurement> = {}): StoredMeasurement => ({
  name: 'a figure',
  value,
  unit: 'ratio',
  better: 'lower',
  ...more,
});
const run = (measurements: StoredMeasurement[], machine: StoredRun['machine'] = MACHINE): StoredRun => ({
  machine,
  measurements,
});
function verdictOf(before: StoredMeasurement, after: StoredMeasurement, machine: StoredRun['machine'] = MACHINE) {
  const [one] = compareRuns(run([before]), run([after], machine)).figures;
  return `${one?.verdict ?? 'not compared'}${one?.note === '' ? '' : `: ${one?.note ?? ''}`}`;
}

describe('a figure', () => {
  const higher = { better: 'higher' } as const;
  const seconds = { unit: 's' };
  const calls = { unit: 'calls' };
  test.each<[what: string, verdict: string, before: StoredMeasurement, after: StoredMeasurement]>([
    ['that is to be low and rose by more than 5 %', 'worse', figure(1), figure(1.06)],
    ['that rose by less', 'same', figure(1), figure(1.04)],
    ['that fell', 'better', figure(1), figure(0.9)],
    ['that is to be high and fell by more than 5 %', 'worse', figure(1, higher), figure(0.94, higher)],
    ['that fell by less', 'same', figure(1, higher), figure(0.96, higher)],
    ['that is to be high and rose', 'better', figure(1, higher), figure(1.1, higher)],
    ['below zero that rose', 'worse', figure(-1), figure(-0.9)],
    ['that was nothing', 'worse', figure(0, calls), figure(1, calls)],
    ['that was nothing and is next to nothing', 'same', figure(0, calls), figure(0.004, calls)],
    ['that is nothing still', 'same', figure(0), figure(0)],
    ['of a few hundredths of a millisecond', 'same', figure(0.02, { unit: 'ms' }), figure(0.06, { unit: 'ms' })],
    ['that could not be measured this time', 'worse', figure(1), figure(null)],
    ['that could not be measured before', 'not judged: was not measured before', figure(null), figure(1)],
    ['in another unit', 'not judged: means something else now', figure(1), figure(1000, seconds)],
    ['better the other way round', 'not judged: means something else now', figure(1), figure(2, higher)],
    ['of what others do', 'not judged: of what others do', figure(1), figure(9, { reference: true })],
    ['in seconds', 'worse', figure(1, seconds), figure(2, seconds)],
    [
      'that spreads by more than it changed',
      'same: spreads by 20 %',
      figure(1, { spread: 0.1 }),
      figure(1.18, { spread: 0.1 }),
    ],
    [
      'that changed by more than it spreads',
      'worse: spreads by 20 %',
      figure(1, { spread: 0.1 }),
      figure(1.21, { spread: 0.1 }),
    ],
    ['that spreads by less than 5 %', 'worse', figure(1, { spread: 0.01 }), figure(1.06, { spread: 0.02 })],
  ])('%s: %s', (_what, verdict, before, after) => {
    expect(verdictOf(before, after)).toBe(verdict);
  });

  test.each<[unit: string, verdict: string]>([
    ['ratio', 'worse'],
    ['calls', 'worse'],
    ['', 'worse'],
    ['bytes', 'worse'],
    ['s', 'not judged: of another machine'],
    ['CPU-s', 'not judged: of another machine'],
    ['MB', 'not judged: of another machine'],
    ['pods/s', 'not judged: of another machine'],
    ['a unit that is new', 'not judged: of another machine'],
  ])('in %s measured on another machine is %s', (unit, verdict) => {
    for (const other of [
      { ...MACHINE, processor: 'B' },
      { ...MACHINE, cores: 4 },
      { ...MACHINE, memoryGiB: 16 },
      { ...MACHINE, node: 'v22.1.0' },
      undefined,
    ])
      expect(
        compareRuns(run([figure(1, { unit })]), { machine: other, measurements: [figure(2, { unit })] }).figures,
      ).toMatchObject([{ verdict: verdict.split(':')[0] }]);
    expect(verdictOf(figure(1, { unit }), figure(2, { unit }), { ...MACHINE, cores: 4 })).toBe(verdict);
  });
});

it('names what only one of the runs has, and what became worse first', () => {
  const before = run([figure(1), figure(2, { name: 'old' }), figure(5, { name: 'good' }), figure(1, { name: 'kept' })]);
  const after = run([
    figure(4, { name: 'good' }),
    figure(1, { name: 'kept' }),
    figure(1.5),
    figure(2, { name: 'new', reference: true }),
  ]);
  const comparison = compareRuns(before, after);
  expect(comparison).toMatchObject({ onlyBefore: ['old'], onlyAfter: ['new'] });
  expect(renderComparison(comparison, false)).toBe(
    [
      'worse by 50 %: a figure: 1 ratio -> 1.5 ratio',
      'better by 20 %: good: 5 ratio -> 4 ratio',
      '3 figures compared: 1 worse, 1 better, 1 the same, 0 not judged.',
      '1 figures of the older run only.',
      '1 figures of the newer run only.',
      '',
    ].join('\n'),
  );
  expect(renderComparison(comparison, true)).toContain('same: kept: 1 ratio -> 1 ratio\n');
});

describe('what was stored', () => {
  const stored = { name: 'a', value: 1, unit: 's', better: 'lower', goal: null, ok: true };

  it('is read with and without the machine', () => {
    const measurements = [{ name: 'a', value: 1, unit: 's', better: 'lower' }];
    const machine = { ...MACHINE, kernel: 'Linux', loadBefore: null };
    expect(parseRun(JSON.stringify({ when: 'x', machine, measurements: [stored] }))).toEqual({
      machine: MACHINE,
      measurements,
    });
    expect(parseRun(JSON.stringify([stored]))).toEqual({ machine: undefined, measurements });
  });

  it.each([['{}'], ['[{"name":"a"}]'], ['not JSON']])('is refused where it is something else: %s', (text) => {
    expect(() => parseRun(text)).toThrow();
  });
});
