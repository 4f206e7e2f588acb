import { useState } from 'preact/hooks';
import type { PageState } from '../view.ts';
import { PlacesBar } from './places-bar.tsx';
import { toWorkload } from './route.ts';

export function Workloads({ state: { workloads, moreWorkloads } }: { state: PageState }) {
  const [wanted, setWanted] = useState('');
  const shown = (workloads ?? []).filter(({ key }) => key.toLowerCase().includes(wanted.trim().toLowerCase()));
  return (
    <section aria-labelledby="workloads-title">
      <div class="heading">
        <h2 id="workloads-title">Workloads</h2>
        {(workloads ?? []).length > 5 && (
          <>
            <label htmlFor="wanted">Only with</label>
            <input id="wanted" type="search" value={wanted} onInput={(event) => setWanted(event.currentTarget.value)} />
          </>
        )}
      </div>
      {workloads === null ? (
        <p class="panel quiet">Not known to you.</p>
      ) : shown.length === 0 ? (
        <p class="panel quiet">
          {workloads.length === 0 ? 'No workload has pods in a member, or a policy.' : 'None has that in its name.'}
        </p>
      ) : (
        <div class="panel table">
          <table>
            <thead>
              <tr>
                <th scope="col">Workload</th>
                <th scope="col">Where its pods are</th>
                <th scope="col">By</th>
              </tr>
            </thead>
            <tbody>
              {shown.map((one) => (
                <tr key={one.key}>
                  <th scope="row">
                    <a href={toWorkload(one.key)}>{one.name}</a>
                    <span class="quiet">
                      {one.kind} in {one.namespace}
                    </span>
                  </th>
                  <td>
                    <PlacesBar of={one} />
                  </td>
                  <td>{one.policy === '' ? <span class="quiet">no policy</span> : one.policy}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {moreWorkloads > 0 && <p class="quiet">and {moreWorkloads} more: name a namespace with -n to see fewer</p>}
    </section>
  );
}
