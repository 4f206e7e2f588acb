import type { ObservedWorkload } from '../api/workload-rebalancer.ts';
import { clusterInWords } from '../api/cluster.ts';
import { cleanText } from '../kube/clean-text.ts';
import { counted } from '../kube/counted.ts';

/** Of one line, in bytes: what stands in it may come from members. */
const LONGEST_LINE = 2000;

/** What became of a workload; of a dry run which pods would be moved, a line each. */
export function observedLines(one: ObservedWorkload): string[] {
  const { result = '', reason, message, moves } = one;
  const more = message === undefined ? '' : `: ${message}`;
  if (moves === undefined) return [cleanText(`${inText(one)} ${result}: ${reason}${more}`, LONGEST_LINE)];
  const first = `${inText(one)}: ${counted(moves.length, 'pod')} would be moved${more}`;
  const each = moves.map(
    ({ pod, from, to, why }) => `${pod}: ${clusterInWords(from)} to ${clusterInWords(to)} (${why})`,
  );
  return [cleanText(first, LONGEST_LINE), ...each.map((line) => `  ${cleanText(line, LONGEST_LINE)}`)];
}

/** With why they are not moved now, as while all moves are stopped: it is the same for many of them. */
export function waitingFor(left: readonly ObservedWorkload[], isDry: boolean): string {
  const why = [...new Set(left.flatMap(({ message }) => message ?? []))].map((one) => `: ${one}`).join('');
  const names = left.map(inText).join(', ');
  const what = isDry ? `the manager to look at ${names}` : `pods of ${names} to be where they would go`;
  return cleanText(`${what}${why}`, LONGEST_LINE);
}

function inText({ workload: { kind, name } }: ObservedWorkload): string {
  return `${kind.toLowerCase()}/${name}`;
}
