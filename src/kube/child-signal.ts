import { setMaxListeners } from 'node:events';

/**
 * A signal that aborts with any of its parents, or earlier by `abort`. `release` cuts the ties when it has served, so that a
 * long-lived parent does not collect listeners, as it would of signals that AbortSignal.any makes of it.
 */
export interface ChildSignal {
  readonly signal: AbortSignal;
  abort(reason?: unknown): void;
  release(): void;
}

export function childSignal(...parents: readonly AbortSignal[]): ChildSignal {
  const controller = new AbortController();
  // Many loops of one scope listen to the same signal; that is no leak.
  setMaxListeners(0, controller.signal);
  const ties = parents.map((parent) => ({ parent, follow: () => controller.abort(parent.reason) }));
  for (const { parent, follow } of ties) {
    if (parent.aborted) follow();
    parent.addEventListener('abort', follow, { once: true });
  }
  return {
    signal: controller.signal,
    abort(reason?: unknown) {
      controller.abort(reason);
    },
    release() {
      for (const { parent, follow } of ties) parent.removeEventListener('abort', follow);
    },
  };
}
