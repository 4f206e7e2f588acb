import type { Places } from '../view.ts';
import { useColourOf } from './colours.ts';
import { placeName } from './words.ts';

/** Where the pods of a workload are: a bar of shares, and the same in words. */
export function PlacesBar({ of: { places, waiting } }: { of: Places }) {
  const colourOf = useColourOf();
  const sum = places.reduce((all, { pods }) => all + pods, waiting);
  const parts = [
    ...places.map(({ cluster, pods }) => ({ name: placeName(cluster), pods, colour: colourOf(cluster) })),
    ...(waiting > 0 ? [{ name: 'without a place', pods: waiting, colour: 'colour-none' }] : []),
  ];
  if (sum === 0) return <span class="quiet">no pods</span>;
  return (
    <div class="where">
      <div class="bar" aria-hidden="true">
        {parts.map(({ name, pods, colour }) => (
          <div key={name} class={colour} style={{ flexGrow: pods }} />
        ))}
      </div>
      <ul class="legend">
        {parts.map(({ name, pods, colour }) => (
          <li key={name} class={colour}>
            {name} <strong>{pods}</strong>
          </li>
        ))}
      </ul>
    </div>
  );
}
