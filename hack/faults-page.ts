/** One line of the table: a fault by number, what became of it, and the figures of the run. */
export interface FaultRow {
  id: string;
  what: string;
  result: string;
  figures: string;
}

/** The lines that scenarios of passed tests put into vitest's JSON report, failed tests as such, in order of number. */
export function faultRows(report: unknown): FaultRow[] {
  const { testResults = [] } = report as {
    testResults?: { assertionResults?: { status: string; title: string; meta?: { faults?: FaultRow[] } }[] }[];
  };
  const rows = testResults
    .flatMap(({ assertionResults = [] }) => assertionResults)
    .flatMap(({ status, title, meta }): FaultRow[] => {
      if (status === 'passed') return meta?.faults ?? [];
      const ids = /^((?:[FI]\d+ ?)+):/.exec(title)?.[1]?.trim().split(' ') ?? ['?'];
      return ids.map((id) => ({
        id,
        what: title.replace(/^[^:]*: /, ''),
        result: `**${status.toUpperCase()}**`,
        figures: '',
      }));
    });
  return rows.toSorted((a, b) => (a.id < b.id ? -1 : 1));
}

/** For the terminal. */
export function faultTable(rows: readonly FaultRow[]): string {
  return rows.map(({ id, what, result, figures }) => `${id.padEnd(4)} ${what}\n     ${result}: ${figures}`).join('\n');
}

/** The page that a complete run writes. */
export function faultsPage(rows: readonly FaultRow[], about: { machine: string; version: string }): string {
  const lines = [
    '<!-- Written by `make faults`. Do not edit. -->',
    '# Faults',
    '',
    'What happens to pods when things break, shown on real API servers with fake nodes (kwok), by killing and stopping',
    'processes and by proxies that lie, stall and fail. Every scenario also requires that no guard had to step in',
    '([what must never happen](invariants.md)), and "0 writes" is read from the audit logs of both API servers.',
    '',
    `Version ${about.version}; ${about.machine}.`,
    '',
    '| | fault | result | figures |',
    '|---|---|---|---|',
    ...rows.map(({ id, what, result, figures }) => `| ${[id, what, result, figures].map(cell).join(' | ')} |`),
  ];
  return `${lines.join('\n')}\n`;
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|');
}
