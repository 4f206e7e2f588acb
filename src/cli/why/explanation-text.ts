import { cleanText } from '../../kube/clean-text.ts';
import type { Colour } from '../terminal.ts';
import type { Explanation, StepState } from './explanation.ts';

const MARKS: Readonly<Record<StepState, { text: string; colour: Colour }>> = {
  ok: { text: 'ok', colour: 'green' },
  waits: { text: 'waits', colour: 'yellow' },
  failed: { text: 'stuck', colour: 'red' },
  next: { text: 'next', colour: 'dim' },
  unknown: { text: '?', colour: 'dim' },
};
/** Of one sentence, in bytes. */
const LONGEST = 1500;

/** The explanation for people: the answer, the way of the pod, clusters one by one, and what helps. */
export function explanationText(
  { pod, phase, answer, steps, places, help, pages }: Explanation,
  paint: (colour: Colour, text: string) => string = (_colour, text) => text,
): string {
  const line = (text: string): string => cleanText(text, LONGEST);
  const actor = Math.max(...steps.map(({ by }) => by.length));
  const way = steps.flatMap(({ by, state, says }) => {
    const { text, colour } = MARKS[state];
    const own = `  ${paint(colour, text.padEnd(6))} ${by.padEnd(actor)}  ${line(says)}`;
    return by === 'host scheduler'
      ? [own, ...places.map(({ cluster, says }) => `${' '.repeat(11 + actor)}${line(`${cluster}: ${says}`)}`)]
      : [own];
  });
  return [
    `${paint('bold', `${pod} (${phase})`)}: ${line(answer)}`,
    '',
    ...way,
    ...(help.length === 0 ? [] : ['', 'What helps:', ...help.map((one) => `  - ${line(one)}`)]),
    ...(pages.length === 0 ? [] : ['', `See: ${pages.map((page) => `docs/${page}`).join(', ')}`]),
    '',
  ].join('\n');
}
