import { setTimeout as delay } from 'node:timers/promises';

/** Waits for `work`, but no longer than `ms`. */
export async function waitAtMost(ms: number, work: Promise<unknown>): Promise<void> {
  const patience = new AbortController();
  const over = delay(ms, undefined, { signal: patience.signal }).catch(() => undefined);
  await Promise.race([work, over]);
  patience.abort();
}
