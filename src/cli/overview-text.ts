import { stopInWords } from '../api/moves-stopped.ts';
import { counted } from '../kube/counted.ts';
import { ageSince } from './age.ts';
import { clusterColumns } from './clusters.ts';
import { migrationInWords, rebalancerInWords } from './move-orders.ts';
import type { Overview } from './overview.ts';
import { table } from './table.ts';

/** More lines of one kind than these are counted only. */
const MOST_LINES = 20;

/** The screen of `status`. @param now wall clock in ms. @param bold how headings look. */
export function overviewText(o: Overview, now: number, { wide = false, bold = (text: string) => text } = {}): string {
  const sections: [heading: string, body: string][] = [
    ['Managers', managersText(o, now)],
    ['Clusters', o.clusters.length === 0 ? 'none yet\n' : table(o.clusters, clusterColumns(now), { wide })],
    ['Pods', podsText(o)],
    ['Deletions', deletionsText(o)],
    ['Moves', movesText(o, now)],
    ['Policies', policiesText(o)],
  ];
  return sections.map(([heading, body]) => `${bold(heading)}\n${indented(body)}`).join('\n');
}

const UNKNOWN = '? (you may not know)\n';

function managersText({ managers }: Overview, now: number): string {
  if (managers === null) return UNKNOWN;
  if (managers.length === 0)
    return 'none is running: pods in members go on, and nothing new is done (docs/concepts/virtual-nodes.md)\n';
  return table(managers, [
    { name: 'NAME', text: ({ name }) => name },
    { name: 'RENEWED', text: ({ renewed }) => `${ageSince(renewed, now) ?? '?'} ago` },
    { name: 'MEMBERS', text: ({ members }) => members.join(',') },
    { name: 'ALSO', text: ({ components }) => components.join(',') },
  ]);
}

function podsText({ pods, waiting }: Overview): string {
  const unbound =
    waiting === null
      ? 'waiting for a node: ?\n'
      : waiting.pods === 0
        ? 'none waits for a node\n'
        : `${counted(waiting.pods, 'pod')} of this cluster ${waiting.pods === 1 ? 'waits' : 'wait'} for a node` +
          `${waiting.gated === 0 ? '' : `, ${waiting.gated} of them behind scheduling gates`}: kubectl spillway why POD\n`;
  if (pods === null) return `in members: ${UNKNOWN}${unbound}`;
  const { running, pending, held } = pods;
  const count = held.reduce((sum, one) => sum + one.pods, 0);
  const line = `in members: ${running} running, ${pending} pending, ${count} of these held back\n`;
  const rows = table(held, [
    { name: 'HELD', text: (one) => one.pods },
    { name: 'REASON', text: ({ reason }) => reason },
    { name: 'FOR EXAMPLE', text: ({ example }) => example },
    { name: 'MESSAGE', text: ({ message }) => message },
  ]);
  return `${line}${held.length === 0 ? '' : rows}${unbound}`;
}

function deletionsText({ deletionsHeld }: Overview): string {
  if (deletionsHeld.length === 0) return 'none is held back\n';
  return deletionsHeld.map(({ cluster, message }) => `held back in ${cluster}: ${message}\n`).join('');
}

function movesText(o: Overview, now: number): string {
  const { pods, movesPaused, movesStopped } = o;
  const stopped =
    movesStopped === null ? '' : `${stopInWords(movesStopped)}; to let them go on: kubectl spillway resume-moves\n`;
  const paused = stopped + movesPaused.map(({ cluster, message }) => `paused for ${cluster}: ${message}\n`).join('');
  if (pods === null) return `${paused}${UNKNOWN}${ordersText(o)}`;
  const leaving = pods.leaving.map((one) => `${counted(one.pods, 'pod')} on the way out of ${one.cluster}\n`);
  const released = pods.released.map(
    ({ cluster, lost, pods: count }) =>
      `${counted(count, 'pod')} released in ${cluster}, until ${lost ? 'that answers again' : 'others are Ready in their place'}\n`,
  );
  const refused = firstOf('pods that stay', pods.refused, ({ pod, cluster, since, message }) => {
    return `pod ${pod} stays in ${cluster}, for ${ageSince(since, now) ?? '?'} now: ${message}`;
  });
  const lines = [...leaving, ...released, ...(refused === '' ? [] : [refused])];
  return paused + (lines.length === 0 ? 'no pod is on its way out of a member\n' : lines.join('')) + ordersText(o);
}

/** A line for each that is not over. */
function ordersText({ migrations, rebalancers }: Overview): string {
  return firstOf('migrations', migrations, migrationInWords) + firstOf('rebalancers', rebalancers, rebalancerInWords);
}

function firstOf<T>(what: string, all: readonly T[] | null, inWords: (one: T) => string): string {
  if (all === null) return `${what}: ${UNKNOWN}`;
  const more = all.length - MOST_LINES;
  const lines = all.slice(0, MOST_LINES).map((one) => `${inWords(one)}\n`);
  return `${lines.join('')}${more > 0 ? `and ${more} more ${what}\n` : ''}`;
}

function policiesText({ policies }: Overview): string {
  if (policies === null) return UNKNOWN;
  const { total, withoutEffect } = policies;
  if (total === 0) return 'none\n';
  if (withoutEffect.length === 0) return `${total}, all in use\n`;
  const line = `${total}, ${withoutEffect.length} of them not in effect as written\n`;
  const rows = table(withoutEffect.slice(0, MOST_LINES), [
    { name: 'POLICY', text: ({ policy }) => policy },
    { name: 'REASON', text: ({ reason }) => reason },
    { name: 'MESSAGE', text: ({ message }) => message },
  ]);
  const more = withoutEffect.length - MOST_LINES;
  return `${line}${rows}${more > 0 ? `and ${more} more\n` : ''}`;
}

function indented(text: string): string {
  return text.replaceAll(/^(?=.)/gm, '  ');
}
