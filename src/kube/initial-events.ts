import type { Where } from './response-body.ts';
import { keyOf, type KubeObject } from './object.ts';
import type { Resource } from './resource.ts';
import type { WatchEvent } from './watch-decoder.ts';
import { checkIdentified, hasInitialEventsEnd, watchError } from './watch-event.ts';

/** Collects the initial state of a streamed list (KEP-3157) in `listed`, by `list`; true at its end. */
export function gather<T extends KubeObject>(
  event: WatchEvent,
  listed: Map<string, T | undefined>,
  where: Where,
  resource: Resource,
  list: (raw: KubeObject) => void,
): boolean {
  if (event.type === 'ERROR') {
    throw watchError(where, event.object);
  }
  if (event.type === 'BOOKMARK') {
    return hasInitialEventsEnd(event.object);
  }
  const raw = checkIdentified(where, resource, event.object);
  if (event.type === 'DELETED') {
    listed.delete(keyOf(raw));
  } else {
    list(raw);
  }
  return false;
}
