/** One-shot timers; tests put their own in place to decide what time it is. */
export interface Timers {
  /** Calls back once after `ms` milliseconds; the returned function cancels that. */
  start(callback: () => void, ms: number): () => void;
}

/** The process's timers. Delays beyond what a Node timer holds (24.8 days) fire at that limit. */
export const systemTimers: Timers = {
  start(callback, ms) {
    const timer = setTimeout(callback, Math.min(Math.max(ms, 0), 2 ** 31 - 1));
    return () => clearTimeout(timer);
  },
};

/** Resolves after `ms` milliseconds or as soon as the signal aborts, whichever is first; never rejects. */
export function pause(ms: number, signal: AbortSignal, timers: Timers = systemTimers): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve();
      return;
    }
    const end = (): void => {
      cancel();
      signal.removeEventListener('abort', end);
      resolve();
    };
    const cancel = timers.start(end, ms);
    signal.addEventListener('abort', end, { once: true });
  });
}
