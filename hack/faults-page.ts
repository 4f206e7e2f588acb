import type { Fault } from './fault-matrix.ts';

/** One line of the table: a fault by number, what became of it, and the figures of the run. */
export interface FaultRow {
  id: string;
  what: string;
  result: string;
  figures: string;
  /** The day of the run and the commit of the code, like `2026-11-21, 7e42537`. */
  day?: string;
}

export const NOT_RUN = '**NOT RUN**';

/**
 * The lines that tests which passed put into vitest's JSON report, scenarios that failed or were skipped as such, in order
 * of number.
 */
export function faultRows(report: unknown): FaultRow[] {
  const { testResults = [] } = report as {
    testResults?: { assertionResults?: { status: string; title: string; meta?: { faults?: FaultRow[] } }[] }[];
  };
  const rows = testResults
    .flatMap(({ assertionResults = [] }) => assertionResults)
    .flatMap(({ status, title, meta }): FaultRow[] => {
      if (status === 'passed') return meta?.faults ?? [];
      const result = status === 'failed' ? '**FAILED**' : NOT_RUN;
      const ids = /^((?:[FI]\d+ ?)+):/.exec(title)?.[1]?.trim().split(' ') ?? [];
      return ids.map((id) => ({ id, what: title.replace(/^[^:]*: /, ''), result, figures: '' }));
    });
  return rows.toSorted((a, b) => (a.id < b.id ? -1 : 1));
}

/** All faults, in order: those of the run, else of an earlier one; those that nothing shows, with the reason. */
export function wholeMatrix(
  run: readonly FaultRow[],
  matrix: Readonly<Record<string, Fault>>,
  earlier: readonly FaultRow[] = [],
): FaultRow[] {
  return Object.entries(matrix).map(([id, { what, elsewhere, not }]) => {
    if (not !== undefined) return { id, what, result: 'not run', figures: not };
    const tests = elsewhere?.tests.map((test) => test.replace(/^(\S+):/, '`$1`:')).join('; ') ?? '';
    const row = joined(run.filter((row) => row.id === id));
    if (row !== undefined) return { ...row, what, figures: [tests, row.figures].filter(Boolean).join(MEASURED) };
    const before = earlier.find((row) => row.id === id);
    // What tests have shown that the fault does not name any more says nothing of those that it names.
    const isOfThese = elsewhere === undefined || before?.figures.split(MEASURED)[0] === tests;
    return before !== undefined && isOfThese ? { ...before, what } : { id, what, result: NOT_RUN, figures: tests };
  });
}

/** Stands between the tests that show a fault and what they have measured. */
const MEASURED = '. Measured: ';

/** Several tests may show parts of one fault: all figures, and the worst result. */
function joined(rows: readonly FaultRow[]): FaultRow | undefined {
  const worst = rows.find(({ result }) => result.startsWith('**')) ?? rows[0];
  if (worst === undefined) return undefined;
  const figures = rows.map((row) => row.figures).filter((text) => text !== '');
  return { ...worst, figures: figures.join('; ') };
}

/** For the terminal. */
export function faultTable(rows: readonly FaultRow[]): string {
  return rows.map(({ id, what, result, figures }) => `${id.padEnd(4)} ${what}\n     ${result}: ${figures}`).join('\n');
}

/** The page, with the lines of the scenarios that have run. */
export function faultsPage(rows: readonly FaultRow[], about: { machine: string; version: string }): string {
  const lines = [
    '<!-- Written by `make faults`. Do not edit. -->',
    '# Faults',
    '',
    'What happens to pods when things break, shown on real API servers with fake nodes (kwok), by killing and stopping',
    'processes and by proxies that lie, stall and fail. Every scenario also requires that no guard had to step in',
    '([what must never happen](invariants.md)), and "0 writes" is read from the audit logs of both API servers. Where tests of',
    '`make test` or `make test-long` show a fault, `make faults` runs these, too: their files and titles stand before what they',
    'measured. A scenario or a test that was not run, or was skipped, makes its fault **NOT RUN**, and the command fails. A run of some',
    '(`node dist/hack/test.js faults -- test/faults/lies.test.ts test/cluster/leaving.test.ts`) replaces the lines of faults with a scenario or a test',
    'in these files; each line says when it was run, and with the code of which commit. What no scenario thinks of is [what histories are for](histories.md).',
    '',
    `The last run: version ${about.version}; ${about.machine}.`,
    '',
    '| | fault | result | figures | run |',
    '|---|---|---|---|---|',
    ...rows.map(
      ({ id, what, result, figures, day = '' }) => `| ${[id, what, result, figures, day].map(cell).join(' | ')} |`,
    ),
  ];
  return `${lines.join('\n')}\n`;
}

/** The lines of a page that runs wrote. */
export function rowsOfPage(page: string): FaultRow[] {
  return page.split('\n').flatMap((line) => {
    if (!/^\| [FI]\d/.test(line)) return [];
    const cells = line.slice(2, -2).split(/ \| /);
    const [id = '', what = '', result = '', figures = '', day = ''] = cells.map((one) =>
      one.replaceAll('\\|', '|').trim(),
    );
    return day === '' ? [] : [{ id, what, result, figures, day }];
  });
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|');
}
