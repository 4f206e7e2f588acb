import { useEffect, useState } from 'preact/hooks';

/** What is open above the page; it stands behind the #/ of the address, so that going back closes it. */
export type Route = { is: 'page' } | { is: 'workload'; key: string } | { is: 'why'; pod: string };

export const toWorkload = (key: string): string => `#/workload/${encodeURIComponent(key)}`;
export const toPod = (pod: string): string => `#/why/${encodeURIComponent(pod)}`;
export const TO_PAGE = '#';

export function useRoute(): Route {
  const [route, setRoute] = useState(() => routeOf(location.hash));
  useEffect(() => {
    const changed = (): void => setRoute(routeOf(location.hash));
    addEventListener('hashchange', changed);
    return () => removeEventListener('hashchange', changed);
  }, []);
  return route;
}

function routeOf(hash: string): Route {
  const [is, ...rest] = hash.slice(2).split('/');
  const what = decoded(rest.join('/'));
  if (is === 'workload' && what !== '') return { is, key: what };
  if (is === 'why' && what !== '') return { is, pod: what };
  return { is: 'page' };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return '';
  }
}
