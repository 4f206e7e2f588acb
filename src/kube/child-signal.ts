import { setMaxListeners } from 'node:events';

/**
 * A signal that aborts with its parent, or earlier by `abort`. `release` cuts the tie when it has served, so that a
 * long-lived parent does not collect listeners.
 */
export interface ChildSignal {
  readonly signal: AbortSignal;
  abort(): void;
  release(): void;
}

export function childSignal(parent: AbortSignal): ChildSignal {
  const controller = new AbortController();
  // Many loops of one scope listen to the same signal; that is no leak.
  setMaxListeners(0, controller.signal);
  const follow = (): void => {
    controller.abort(parent.reason);
  };
  if (parent.aborted) follow();
  parent.addEventListener('abort', follow, { once: true });
  return {
    signal: controller.signal,
    abort() {
      controller.abort();
    },
    release() {
      parent.removeEventListener('abort', follow);
    },
  };
}
