import type { PageState } from '../view.ts';
import { PlacesInOrder } from './colours.ts';
import { FleetMap } from './fleet-map.tsx';
import { Header, Notices } from './header.tsx';
import { Moves } from './moves.tsx';
import { useRoute } from './route.ts';
import { Safety } from './safety.tsx';
import { usePolled } from './use-polled.ts';
import { Why } from './why.tsx';
import { WorkloadCloseUp } from './workload-close-up.tsx';
import { Workloads } from './workloads.tsx';

export function Page() {
  const { found, refusal } = usePolled<PageState>('/api/state');
  const route = useRoute();
  if (found === undefined) {
    return (
      <main class="starting">
        <h1>Spillway</h1>
        {refusal === undefined ? <p>Looking at the cluster …</p> : <p role="alert">{refusal.error}</p>}
      </main>
    );
  }
  return (
    <PlacesInOrder.Provider value={found.places.map(({ name }) => name)}>
      <a class="skip" href="#fleet">
        Skip to the fleet
      </a>
      <Header state={found} isLive={refusal === undefined && found.trouble === ''} />
      <main>
        <Notices state={found} refusal={refusal} />
        <FleetMap state={found} />
        <Safety state={found} />
        <Workloads state={found} />
        <Moves state={found} />
      </main>
      {route.is === 'workload' && <WorkloadCloseUp key={route.key} of={route.key} />}
      {route.is === 'why' && <Why key={route.pod} pod={route.pod} />}
    </PlacesInOrder.Provider>
  );
}
