import { expect, test } from 'vitest';
import { failedFiles, failedTests, slowestFiles } from '../../hack/failed-tests.ts';

const report = {
  testResults: [
    {
      name: '/repo/test/a.test.ts',
      status: 'failed',
      message: '',
      startTime: 1_000,
      endTime: 3_500,
      assertionResults: [
        { status: 'passed', fullName: 'a works' },
        {
          status: 'failed',
          fullName: 'a fails',
          failureMessages: ['\u001b[31mError: expected 1\u001b[39m\n    at x.ts:1'],
        },
      ],
    },
    {
      name: '/repo/test/b.test.ts',
      status: 'failed',
      message: 'host is ready: not so after 1 ms\nmore',
      startTime: 0,
      endTime: 9_000,
      assertionResults: [{ status: 'skipped', fullName: 'b waits', failureMessages: null }],
    },
    { name: '/repo/test/c.test.ts', status: 'failed', assertionResults: [{ status: 'passed', fullName: 'c' }] },
    { name: '/repo/test/d.test.ts', status: 'passed', message: '', assertionResults: [] },
  ],
};

test('tests that failed, and files whose set-up or end failed, have a line each', () => {
  expect(failedTests(report, '/repo')).toEqual([
    'test/a.test.ts > a fails: Error: expected 1',
    'test/b.test.ts: host is ready: not so after 1 ms',
    'test/c.test.ts: its set-up or its end failed',
  ]);
  expect(failedTests({}, '/repo')).toEqual([]);
});

test('files with anything that failed are named once', () => {
  expect(failedFiles(report, '/repo')).toEqual(['test/a.test.ts', 'test/b.test.ts', 'test/c.test.ts']);
  expect(failedFiles({}, '/repo')).toEqual([]);
});

test('the slowest files come first', () => {
  expect(slowestFiles(report, '/repo', 2)).toEqual(['    9 s  test/b.test.ts', '    3 s  test/a.test.ts']);
});
