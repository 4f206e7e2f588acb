import { relative } from 'node:path';
import { stripVTControlCharacters } from 'node:util';

interface Report {
  testResults?: {
    name: string;
    status: string;
    message?: string;
    startTime?: number;
    endTime?: number;
    assertionResults?: { status: string; fullName: string; failureMessages?: string[] | null }[];
  }[];
}

/**
 * What failed, from vitest's JSON report: a line for the file, its test and the first line of why. Printed last, so that
 * it is also in what is kept of a long log. A file whose tests did not begin (its set-up failed) has a line of its own.
 */
export function failedTests(report: unknown, root: string): string[] {
  const { testResults = [] } = report as Report;
  return testResults.flatMap(({ name, status, message = '', assertionResults = [] }) => {
    const file = relative(root, name);
    const failed = assertionResults.filter((test) => test.status === 'failed');
    const lines = failed.map((test) => `${file} > ${test.fullName}: ${firstLine(test.failureMessages?.[0] ?? '')}`);
    return status === 'failed' && (failed.length === 0 || message !== '')
      ? [`${file}: ${firstLine(message === '' ? 'its set-up or its end failed' : message)}`, ...lines]
      : lines;
  });
}

/** The files in which something failed, or whose set-up or end did. */
export function failedFiles(report: unknown, root: string): string[] {
  const { testResults = [] } = report as Report;
  return testResults.filter(({ status }) => status === 'failed').map(({ name }) => relative(root, name));
}

/** The files that took longest, in seconds, longest first. */
export function slowestFiles(report: unknown, root: string, count: number): string[] {
  const { testResults = [] } = report as Report;
  return testResults
    .map(({ name, startTime = 0, endTime = 0 }) => ({ file: relative(root, name), ms: endTime - startTime }))
    .toSorted((a, b) => b.ms - a.ms)
    .slice(0, count)
    .map(({ file, ms }) => `${(ms / 1000).toFixed(0).padStart(5)} s  ${file}`);
}

function firstLine(text: string): string {
  return stripVTControlCharacters(text).split('\n', 1)[0]?.slice(0, 1_000) ?? '';
}
