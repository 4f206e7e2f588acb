import { cleanText } from '../../kube/clean-text.ts';
import { counted } from '../../kube/counted.ts';
import type { Colour } from '../terminal.ts';
import type { Finding, Verdict } from './finding.ts';

const MARKS: Readonly<Record<Verdict, { text: string; colour: Colour }>> = {
  ok: { text: 'ok', colour: 'green' },
  warning: { text: 'warn', colour: 'yellow' },
  failed: { text: 'FAIL', colour: 'red' },
  unknown: { text: '?', colour: 'dim' },
};
/** Of one line, in bytes. */
const LONGEST = 1200;

/** One line a finding, what helps below it, and the sum at the end. */
export function findingsText(
  findings: readonly Finding[],
  paint: (colour: Colour, text: string) => string = (_colour, text) => text,
): string {
  const width = Math.max(...findings.map(({ check }) => check.length));
  const indent = ' '.repeat(6 + width + 2);
  const lines = findings.flatMap(({ check, verdict, says, fix, page }) => {
    const { text, colour } = MARKS[verdict];
    return [
      `${paint(colour, text.padEnd(6))}${check.padEnd(width)}  ${cleanText(says, LONGEST)}`,
      ...(fix === undefined ? [] : [`${indent}fix: ${cleanText(fix, LONGEST)}`]),
      ...(page === undefined ? [] : [`${indent}see: docs/${page}`]),
    ];
  });
  const count = (verdict: Verdict): number => findings.filter((one) => one.verdict === verdict).length;
  const sum = `${counted(count('failed'), 'failure')}, ${counted(count('warning'), 'warning')}, ${count('unknown')} not looked at`;
  return `${lines.join('\n')}\n\n${sum}\n`;
}
