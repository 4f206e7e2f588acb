import type { Pod } from '../../kube/core-v1.ts';
import { counted } from '../../kube/counted.ts';
import { table } from '../table.ts';
import type { SimulatedPlace, Simulation } from './simulation.ts';

/** The simulations for people; the pods themselves are in the other formats. */
export function simulationText(all: readonly Simulation[], headers = true): string {
  return all.map((one) => section(one, headers)).join('\n');
}

function section({ object, namespace, replicas, rules, waiting, places, notes }: Simulation, headers: boolean): string {
  const ruled = rules === null ? 'no rules speak about it' : `by ${rules}`;
  const rows = table(
    places,
    [
      { name: 'CLUSTER', text: ({ cluster }) => cluster },
      { name: 'PODS', text: ({ pods }) => pods },
      { name: 'WHY', text: ({ says }) => says },
      { name: 'BECOMES', text: becomes },
    ],
    { headers },
  );
  const waits =
    waiting === 0
      ? ''
      : `  ${counted(waiting, 'pod')} would wait: no cluster takes ${waiting === 1 ? 'it' : 'them'} now\n`;
  const said = notes.map((note) => `  note: ${note}\n`).join('');
  return `${object} in ${namespace}: ${counted(replicas, 'pod')}, ${ruled}\n${rows.replaceAll(/^(?=.)/gm, '  ')}${waits}${said}`;
}

function becomes({ becomes: nodes }: SimulatedPlace): string | undefined {
  return nodes
    .map(({ node, pod, refused }) =>
      pod === null
        ? `${node}: refused: ${refused ?? ''}`
        : `${node}: ${pod.metadata.namespace ?? ''}/${pod.metadata.name}${ranked(pod)}`,
    )
    .join('; ');
}

function ranked({ spec: { priorityClassName } }: Pod): string {
  return priorityClassName === undefined ? '' : ` with PriorityClass ${priorityClassName}`;
}
