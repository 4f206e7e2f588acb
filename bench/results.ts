import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Machine, notQuiet } from './machine.ts';
import type { Measurement, SuiteReport } from './measurement.ts';
import { percent } from './percent.ts';

/** Writes results/latest.json, which `make bench-compare` reads, and RESULTS.md below `dir`. */
export function writeResults(dir: string, reports: readonly SuiteReport[], machine: Machine, when: Date): void {
  mkdirSync(join(dir, 'results'), { recursive: true });
  const measurements = reports.flatMap((report) => report.measurements);
  const all = { when: when.toISOString(), machine, measurements };
  writeFileSync(join(dir, 'results', 'latest.json'), `${JSON.stringify(all, null, 2)}\n`);
  writeFileSync(join(dir, 'RESULTS.md'), renderResults(reports, machine, when));
}

export function renderResults(reports: readonly SuiteReport[], machine: Machine, when: Date): string {
  const judged = reports.flatMap(({ measurements }) => measurements).filter(({ goal }) => goal !== null);
  const met = judged.filter(({ ok }) => ok).length;
  const disturbed = notQuiet(machine);
  const lines = [
    '# Bench results',
    '',
    `Written by \`make bench\` on ${when.toISOString().slice(0, 16).replace('T', ' ')} UTC; ${met} of ${judged.length} goals met.`,
    '',
    `Machine: ${machine.cores} cores (${machine.processor}), ${machine.memoryGiB} GiB memory, ${machine.kernel}, Node ${machine.node}. ` +
      `Load average before the run: ${machine.loadBefore.toFixed(2)}. ` +
      'Clusters, load and the program under test share these cores, so figures of one run are to be compared with each other, not with other machines.',
    ...(disturbed === undefined ? [] : ['', disturbed]),
  ];
  for (const { suite, measurements, notes, failures } of reports) {
    lines.push('', `## ${suite}`, '');
    if (measurements.length > 0) lines.push(...table(measurements), '');
    lines.push(...failures.map((failure) => `- **Failed:** ${failure.replaceAll('\n', ' ')}`));
    lines.push(...notes.map((note) => `- ${note}`));
  }
  return `${lines.join('\n').trimEnd()}\n`;
}

function table(measurements: readonly Measurement[]): string[] {
  const rows = measurements.map(({ name, value, unit, goal, better, ok, spread }) => {
    const wanted = goal === null ? '' : `${better === 'lower' ? '<=' : '>='} ${goal}`;
    const figure = spread === undefined ? `${value} ${unit}` : `${value} ${unit} ± ${percent(spread)}`;
    return `| ${name} | ${figure} | ${wanted} | ${goal === null ? '' : ok ? 'met' : '**missed**'} |`;
  });
  return ['| figure | value | goal | |', '|---|---:|---:|---|', ...rows];
}
