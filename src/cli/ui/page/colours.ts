import { createContext } from 'preact';
import { useContext } from 'preact/hooks';

/** Colours in style.css: `local` has its own, and members take turns. */
const COLOURS = 8;

/** Names of places in the order of the page. */
export const PlacesInOrder = createContext<readonly string[]>([]);

/** The class that gives a place its colour, wherever it is shown. */
export function useColourOf(): (cluster: string) => string {
  const names = useContext(PlacesInOrder);
  return (cluster) => {
    if (cluster === 'local') return 'colour-local';
    const at = names.filter((name) => name !== 'local').indexOf(cluster);
    return at < 0 ? 'colour-none' : `colour-${at % COLOURS}`;
  };
}
