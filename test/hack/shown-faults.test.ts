import { expect, it } from 'vitest';
import { argumentsByProject, shownElsewhere, shownRows } from '../../hack/shown-faults.ts';

const tests = ['test/kube/a.test.ts: a (title)', 'test/cluster/b.test.ts: exit code %d', 'test/long/c.test.ts: last'];
const matrix = {
  F01: { what: 'a scenario' },
  F02: { what: 'lies', elsewhere: { result: 'refused', tests } },
  F03: { what: 'more lies', elsewhere: { result: 'told', tests: ['test/kube/a.test.ts: another'] } },
};

/** What vitest reports of these tests. */
function report(results: Record<string, [title: string, status: string][]>): unknown {
  const testResults = Object.entries(results).map(([file, all]) => ({
    name: `/repo/${file}`,
    assertionResults: all.map(([title, status]) => ({ title, status })),
  }));
  return { testResults };
}

it('chooses faults by the files of their tests, and runs all tests of each and nothing else', () => {
  expect(Object.keys(shownElsewhere(matrix))).toEqual(['F02', 'F03']);
  expect(Object.keys(shownElsewhere(matrix, ['kube/a']))).toEqual(['F02', 'F03']);
  expect(shownElsewhere(matrix, ['test/faults/lies.test.ts'])).toEqual({});
  const args = argumentsByProject(shownElsewhere(matrix, ['test/long/c.test.ts']));
  expect([...args]).toEqual([
    ['unit', ['test/kube/a.test.ts', '-t', String.raw`(^| )(a \(title\))$`]],
    ['cluster', ['test/cluster/b.test.ts', '-t', '(^| )(exit code .*)$']],
    ['long', ['test/long/c.test.ts', '-t', '(^| )(last)$']],
  ]);
});

it('takes the result from the run: every test has to be in it, and to have passed', () => {
  const faults = shownElsewhere({ F02: matrix.F02 });
  const resultOf = (...reports: unknown[]): string | undefined => shownRows(faults, reports, '/repo')[0]?.result;
  const a = report({ 'test/kube/a.test.ts': [['a (title)', 'passed']] });
  const b = (...codes: string[]): unknown =>
    report({ 'test/cluster/b.test.ts': codes.map((status, code) => [`exit code ${String(code)}`, status]) });
  const c = (title: string, status = 'passed', file = 'test/long/c.test.ts'): unknown =>
    report({ [file]: [[title, status]] });
  expect(resultOf(a, b('passed', 'passed'), c('last'))).toBe('refused');
  expect(resultOf(a, b('passed', 'failed'), c('last', 'skipped'))).toBe('**FAILED**');
  const wrong = [
    [c('last', 'skipped')],
    [c('lasting')],
    [c('at last')],
    [c('last', 'passed', 'test/long/d.test.ts')],
    [{}],
    [],
  ];
  for (const reports of wrong) expect(resultOf(a, b('passed'), ...reports)).toBe('**NOT RUN**');
  expect(resultOf(a, b('passed', 'skipped'), c('last'))).toBe('**NOT RUN**');
});
