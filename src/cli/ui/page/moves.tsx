import type { MoveView, PageState } from '../view.ts';
import { toPod, toWorkload } from './route.ts';
import { ago, counted, placeName } from './words.ts';

export function Moves({ state: { underWay, lately, news, at } }: { state: PageState }) {
  return (
    <section aria-labelledby="moves-title">
      <h2 id="moves-title">Moves</h2>
      <div class="columns">
        <div class="panel">
          <h3>Under way</h3>
          <MoveList moves={underWay} now={at} empty="No pod is on its way out of a place." />
          <h3>Lately</h3>
          <MoveList moves={lately} now={at} empty="Nothing was moved lately." />
        </div>
        <div class="panel">
          <h3>News of members</h3>
          {news === null ? (
            <p class="quiet">Not known to you.</p>
          ) : news.length === 0 ? (
            <p class="quiet">Nothing in the last hour.</p>
          ) : (
            <ol class="lines">
              {news.map((one) => (
                <li
                  key={`${one.cluster} ${one.reason} ${one.at ?? ''} ${one.says}`}
                  class={one.isWarning ? 'warning' : ''}
                >
                  <strong>{one.cluster}</strong> {one.reason}: {one.says} <Since time={one.at} now={at} />
                </li>
              ))}
            </ol>
          )}
        </div>
      </div>
    </section>
  );
}

const STATES: Readonly<Record<MoveView['state'], string>> = {
  leaving: 'leaves',
  replacing: 'is being replaced in',
  rebalancing: 'is looked at',
  migrating: 'is moved out of',
  moved: 'left',
};

export function MoveList({ moves, now, empty }: { moves: readonly MoveView[]; now: string; empty: string }) {
  if (moves.length === 0) return <p class="quiet">{empty}</p>;
  return (
    <ul class="lines">
      {moves.map((one) => (
        <li key={`${one.state} ${one.what} ${one.from} ${one.since ?? ''}`}>
          <a href={one.isPod ? toPod(one.what) : toWorkload(one.what)}>{one.what}</a>
          {one.state === 'moved' && `: ${counted(one.pods, 'pod')}`} {STATES[one.state]}{' '}
          {one.from !== '' && <strong>{placeName(one.from)}</strong>} <Since time={one.since} now={now} />
          <span class="says">{one.says}</span>
        </li>
      ))}
    </ul>
  );
}

function Since({ time, now }: { time: string | null; now: string }) {
  if (time === null) return null;
  return (
    <time class="quiet" dateTime={time} title={time}>
      {ago(time, now)}
    </time>
  );
}
