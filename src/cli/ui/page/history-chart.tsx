import type { Moment } from '../view.ts';
import { useColourOf } from './colours.ts';
import { clock, counted, placeName } from './words.ts';

/** In units of the drawing, which is stretched to the room that there is. */
const WIDTH = 600;
const HEIGHT = 140;
/** Changes that are told in words, the newest first. */
const TOLD = 12;

const WAITING = '';

/** Pods by place since the page was opened, as steps that stand on each other; and the same in words. */
export function HistoryChart({ history, now }: { history: readonly Moment[]; now: string }) {
  const colourOf = useColourOf();
  const [first] = history;
  if (first === undefined) return <p class="quiet">Nothing was seen yet.</p>;
  const names = [...new Set(history.flatMap(({ places }) => places.map(({ cluster }) => cluster)))].toSorted((a, b) =>
    a === 'local' || (b !== 'local' && a < b) ? -1 : 1,
  );
  const layers = [...names, ...(history.some(({ waiting }) => waiting > 0) ? [WAITING] : [])];
  const begin = Date.parse(first.at);
  const end = Math.max(Date.parse(now), begin + 60_000);
  const most = Math.max(1, ...history.map(total));
  const x = (at: number): number => ((at - begin) / (end - begin)) * WIDTH;
  const y = (pods: number): number => HEIGHT - (pods / most) * HEIGHT;
  return (
    <figure class="history">
      <div class="plot">
        <span class="axis most">{most}</span>
        <span class="axis least">0</span>
        <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
          {layers.map((layer, at) => (
            <path
              key={layer}
              class={layer === WAITING ? 'colour-none' : colourOf(layer)}
              d={area(layers.slice(0, at), layer)}
            />
          ))}
        </svg>
      </div>
      <div class="span">
        <time dateTime={first.at}>{clock(first.at)}</time>
        <span>now</span>
      </div>
      <figcaption>
        <ul class="legend">
          {layers.map((layer) => (
            <li key={layer} class={layer === WAITING ? 'colour-none' : colourOf(layer)}>
              {layer === WAITING ? 'without a place' : placeName(layer)}
            </li>
          ))}
        </ul>
        <details>
          <summary>
            {history.length === 1 ? 'No change' : counted(history.length - 1, 'change')} since {clock(first.at)}
          </summary>
          <ol class="lines">
            {history
              .slice(-TOLD)
              .toReversed()
              .map((moment) => (
                <li key={`${moment.at} ${inWords(moment)}`}>
                  <time class="quiet" dateTime={moment.at}>
                    {clock(moment.at)}
                  </time>{' '}
                  {inWords(moment)}
                </li>
              ))}
          </ol>
        </details>
      </figcaption>
    </figure>
  );

  /** From the top of the layers below to the top of this one, step by step. */
  function area(below: readonly string[], layer: string): string {
    const steps = history.map((moment, index) => {
      const until = Date.parse(history[index + 1]?.at ?? new Date(end).toISOString());
      const foot = below.reduce((sum, one) => sum + podsOf(moment, one), 0);
      return { from: x(Date.parse(moment.at)), to: x(until), foot: y(foot), top: y(foot + podsOf(moment, layer)) };
    });
    const forth = steps.map(({ from, to, top }) => `${from} ${top} L ${to} ${top}`);
    const back = steps.toReversed().map(({ from, to, foot }) => `${to} ${foot} L ${from} ${foot}`);
    return `M ${[...forth, ...back].join(' L ')} Z`;
  }
}

function podsOf({ places, waiting }: Moment, layer: string): number {
  return layer === WAITING ? waiting : (places.find(({ cluster }) => cluster === layer)?.pods ?? 0);
}

function total({ places, waiting }: Moment): number {
  return places.reduce((sum, { pods }) => sum + pods, waiting);
}

function inWords({ places, waiting }: Moment): string {
  const parts = places.map(({ cluster, pods }) => `${placeName(cluster)} ${pods}`);
  if (waiting > 0) parts.push(`without a place ${waiting}`);
  return parts.length === 0 ? 'no pods' : parts.join(', ');
}
