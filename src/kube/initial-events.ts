import type { Where } from './answer.ts';
import { keyOf, type KubeObject } from './object.ts';
import type { Resource } from './resource.ts';
import type { WatchEvent } from './watch-decoder.ts';
import { checkIdentified, hasInitialEventsEnd, watchError } from './watch-event.ts';

/** Collects the initial state of a streamed list (KEP-3157) in `listed`, transformed; true at its end. */
export function gather<T extends KubeObject>(
  event: WatchEvent,
  listed: Map<string, T | undefined>,
  where: Where,
  resource: Resource,
  by: { transform(raw: KubeObject): T | undefined },
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
    listed.set(keyOf(raw), by.transform(raw));
  }
  return false;
}
