import type { PodMemory } from './pod-memory.ts';

/** When to look at the key again by itself; undefined: when something changes. */
export type Next = { requeueAfterMs: number } | undefined;

const FIRST_RETRY_MS = 250;
export const LAST_RETRY_MS = 60_000;

/** When to try again what failed or was refused: with backoff and jitter, after `longest` ms at the latest. */
export function retryLater(memory: Pick<PodMemory, 'attempts'>, longest = LAST_RETRY_MS): { requeueAfterMs: number } {
  const delay = Math.min(longest, FIRST_RETRY_MS * 2 ** Math.min(memory.attempts, 10));
  memory.attempts += 1;
  return { requeueAfterMs: Math.round(delay * (0.8 + 0.4 * Math.random())) };
}

/** The first of these times. */
export function soonest(...nexts: readonly Next[]): Next {
  const waits = nexts.flatMap((next) => (next === undefined ? [] : [next.requeueAfterMs]));
  return waits.length === 0 ? undefined : { requeueAfterMs: Math.min(...waits) };
}
