import { setTimeout as sleep } from 'node:timers/promises';

export interface UntilOptions {
  /** Milliseconds until {@link until} gives up. Default 60,000: a busy machine takes its time. */
  timeoutMs?: number;
  /** Milliseconds between two tries. Default 100. */
  intervalMs?: number;
  signal?: AbortSignal;
}

/**
 * Asks again and again until the answer is neither `undefined` nor `false`, and returns it. A question that throws
 * counts as "not yet"; its error is the cause when time runs out.
 */
export async function until<T>(
  what: string,
  question: () => Promise<T | undefined | false> | T | undefined | false,
  options: UntilOptions = {},
): Promise<T> {
  const timeoutMs = options.timeoutMs ?? 60_000;
  const deadline = Date.now() + timeoutMs;
  let last: unknown;
  for (;;) {
    options.signal?.throwIfAborted();
    try {
      const answer = await question();
      if (answer !== undefined && answer !== false) return answer;
      last = undefined;
    } catch (error) {
      if (error instanceof GiveUp) throw error;
      last = error;
    }
    if (Date.now() >= deadline) {
      const why = last instanceof Error ? `: ${last.message}` : '';
      throw new Error(`${what}: not so after ${timeoutMs} ms${why}`, { cause: last });
    }
    await sleep(options.intervalMs ?? 100, undefined, options.signal === undefined ? {} : { signal: options.signal });
  }
}

/** Thrown by a question of {@link until} that can never be answered any more: ends the wait at once. */
export class GiveUp extends Error {}
