import type { WorkloadDetail } from '../view.ts';
import { useColourOf } from './colours.ts';
import { HistoryChart } from './history-chart.tsx';
import { MoveList } from './moves.tsx';
import { PlacesBar } from './places-bar.tsx';
import { toPod } from './route.ts';
import { Sheet } from './sheet.tsx';
import { usePolled } from './use-polled.ts';
import { Refused } from './why.tsx';
import { clock, placeName } from './words.ts';

export function WorkloadCloseUp({ of }: { of: string }) {
  const { found, refusal } = usePolled<WorkloadDetail>('/api/workload', of);
  return (
    <Sheet title={of}>
      {refusal !== undefined && <Refused refusal={refusal} />}
      {found === undefined ? refusal === undefined && <p>Looking …</p> : <Detail {...found} />}
    </Sheet>
  );
}

function Detail({ at: now, workload, targets, history, pods, morePods, decision, avoided, moves }: WorkloadDetail) {
  return (
    <>
      <PlacesBar of={workload} />
      {targets.length > 0 && (
        <p class="quiet">
          To have in the end: {targets.map(({ cluster, pods }) => `${placeName(cluster)} ${pods}`).join(', ')}
          {workload.policy !== '' && ` (${workload.policy})`}
        </p>
      )}
      <h3>Places over time</h3>
      <HistoryChart history={history} now={now} />
      {decision !== null && (
        <>
          <h3>Last decision</h3>
          <p>
            <time class="quiet" dateTime={decision.at}>
              {clock(decision.at)}
            </time>{' '}
            {decision.says}
          </p>
        </>
      )}
      {avoided.length > 0 && (
        <>
          <h3>Avoided for now</h3>
          <ul class="lines">
            {avoided.map(({ cluster, says, until }) => (
              <li key={cluster}>
                <strong>{cluster}</strong> {says} <span class="quiet">until {clock(until)}</span>
              </li>
            ))}
          </ul>
        </>
      )}
      {moves.length > 0 && (
        <>
          <h3>Moves</h3>
          <MoveList moves={moves} now={now} empty="" />
        </>
      )}
      <h3>Pods</h3>
      <Pods pods={pods} />
      {morePods > 0 && <p class="quiet">and {morePods} more</p>}
    </>
  );
}

function Pods({ pods }: Pick<WorkloadDetail, 'pods'>) {
  const colourOf = useColourOf();
  if (pods.length === 0) return <p class="quiet">It has none, or you may not list them.</p>;
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">Pod</th>
          <th scope="col">Place</th>
          <th scope="col">Phase</th>
        </tr>
      </thead>
      <tbody>
        {pods.map(({ pod, place, node, phase }) => (
          <tr key={pod}>
            <th scope="row">
              <a href={toPod(pod)} aria-label={`why ${pod}`}>
                {pod.slice(pod.indexOf('/') + 1)}
              </a>
            </th>
            <td>
              {place === '' ? (
                'none yet'
              ) : (
                <span class={`dot-name ${colourOf(place)}`}>
                  {placeName(place)}
                  {node !== place && <span class="quiet"> {node}</span>}
                </span>
              )}
            </td>
            <td>{phase}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
