import type { Where } from './response-body.ts';
import type { KubeObject } from './object.ts';
import type { Resource } from './resource.ts';
import type { WatchEvent } from './watch-decoder.ts';
import { checkIdentified, hasInitialEventsEnd, watchError } from './watch-event.ts';

/** The initial state of a collection, while it comes in. */
export interface Initial {
  list(raw: KubeObject): void;
  unlist(raw: KubeObject): void;
}

/** Collects the initial state of a streamed list (KEP-3157); true at its end. */
export function gather(event: WatchEvent, initial: Initial, where: Where, resource: Resource): boolean {
  if (event.type === 'ERROR') {
    throw watchError(where, event.object);
  }
  if (event.type === 'BOOKMARK') {
    return hasInitialEventsEnd(event.object);
  }
  const raw = checkIdentified(where, resource, event.object);
  if (event.type === 'DELETED') {
    initial.unlist(raw);
  } else {
    initial.list(raw);
  }
  return false;
}
