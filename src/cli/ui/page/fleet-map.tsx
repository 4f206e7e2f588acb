import type { Fill, PageState, PlaceView } from '../view.ts';
import { useColourOf } from './colours.ts';
import { bytes, counted, figure } from './words.ts';

/** Height of a card with the gap below it, in px: lines end in the middle of cards. As in style.css. */
const STEP = 140;
const GAP = 16;
/** Width of the space between this cluster and its members, in px. */
const SPAN = 150;

/** This cluster on the left, its members on the right, and a line for each with pods, as broad as these are many. */
export function FleetMap({ state: { places } }: { state: PageState }) {
  const [local, ...members] = places;
  if (local === undefined) return null;
  const height = Math.max(1, members.length) * STEP - GAP;
  return (
    <section id="fleet" aria-labelledby="fleet-title" tabIndex={-1}>
      <h2 id="fleet-title">Fleet</h2>
      <div class="map">
        <div class="here">
          <Card place={local} />
        </div>
        <svg class="flows" viewBox={`0 0 ${SPAN} ${height}`} width={SPAN} height={height} aria-hidden="true">
          {members.map((place, at) => (
            <Flow
              key={place.name}
              place={place}
              from={height / 2}
              to={at * STEP + (STEP - GAP) / 2}
              most={most(members)}
            />
          ))}
        </svg>
        {members.length === 0 ? (
          <p class="empty">
            No members are known. <code>kubectl spillway join</code> makes another cluster one.
          </p>
        ) : (
          <ul class="members">
            {members.map((place) => (
              <li key={place.name}>
                <Card place={place} />
              </li>
            ))}
          </ul>
        )}
      </div>
    </section>
  );
}

const inPlace = ({ pods }: PlaceView): number => (pods === null ? 0 : pods.running + pods.starting + pods.leaving);

const most = (members: readonly PlaceView[]): number => Math.max(1, ...members.map(inPlace));

function Flow({ place, from, to, most }: { place: PlaceView; from: number; to: number; most: number }) {
  const colourOf = useColourOf();
  const pods = inPlace(place);
  const width = pods === 0 ? 1.5 : 3 + 13 * Math.sqrt(pods / most);
  const path = `M 0 ${from} C ${SPAN / 2} ${from}, ${SPAN / 2} ${to}, ${SPAN} ${to}`;
  const { starting = 0, leaving = 0 } = place.pods ?? {};
  const { state } = place;
  return (
    <g class={`flow ${colourOf(place.name)} ${pods === 0 ? 'idle' : ''} ${state === 'ready' ? '' : 'interrupted'}`}>
      <path d={path} stroke-width={width} />
      {starting > 0 && <path class="moving out" d={path} stroke-width={Math.max(2, width / 3)} />}
      {leaving > 0 && <path class="moving back" d={path} stroke-width={Math.max(2, width / 3)} />}
    </g>
  );
}

const STATES: Readonly<Record<PlaceView['state'], string>> = {
  ready: 'ready',
  cordoned: 'takes no new pods',
  notReady: 'not ready',
  unknown: 'not known',
};

function Card({ place }: { place: PlaceView }) {
  const colourOf = useColourOf();
  const { name, isLocal, state, why, movesPaused, region, provider, version, nodes } = place;
  const facts = [provider, region, version, nodes === null ? null : `${nodes.ready}/${counted(nodes.wanted, 'node')}`];
  return (
    <article class={`card ${colourOf(name)}`} aria-label={isLocal ? 'this cluster' : `member ${name}`}>
      <header>
        <h3>{isLocal ? 'this cluster' : name}</h3>
        <span class={`state ${state}`} title={movesPaused}>
          {STATES[state]}
          {movesPaused !== '' && ', moves paused'}
        </span>
      </header>
      <p class="facts" title={why}>
        {why === '' ? facts.filter((one) => one !== null && one !== '').join(' · ') : why}
      </p>
      <Pods place={place} />
      <Meter of="CPU" fill={place.cpu} />
      <Meter of="memory" fill={place.memory} />
    </article>
  );
}

function Pods({ place: { pods } }: { place: PlaceView }) {
  if (pods === null) return <p class="pods">pods: not known to you</p>;
  const { running, starting, held, leaving } = pods;
  return (
    <p class="pods">
      <strong>{running}</strong> running
      {starting > 0 && (
        <>
          , <strong>{starting}</strong> starting{held > 0 && ` (${held} held back)`}
        </>
      )}
      {leaving > 0 && (
        <>
          , <strong>{leaving}</strong> leaving
        </>
      )}
    </p>
  );
}

function Meter({ of, fill }: { of: string; fill: Fill | null }) {
  if (fill === null) {
    return (
      <div class="meter-row">
        <span>{of}</span>
        <span class="unknown">not known to you</span>
      </div>
    );
  }
  const { texts, unit } =
    of === 'CPU' ? { texts: [figure(fill.asked), figure(fill.offered)], unit: '' } : bytes([fill.asked, fill.offered]);
  const share = fill.offered === 0 ? 0 : Math.min(1, fill.asked / fill.offered);
  const text = `${texts.join(' of ')}${unit === '' ? '' : ` ${unit}`}`;
  return (
    <div class="meter-row">
      <span>{of}</span>
      <div
        class={share >= 0.9 ? 'meter full' : 'meter'}
        role="meter"
        aria-label={`${of} asked for`}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.round(share * 100)}
        aria-valuetext={text}
      >
        <div style={{ width: `${share * 100}%` }} />
      </div>
      <span class="amount" aria-hidden="true">
        {text}
      </span>
    </div>
  );
}
