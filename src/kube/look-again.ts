import { isForbidden } from './errors.ts';
import { pause } from './timers.ts';

/** After a refusal, which only another role mends, in ms. */
const REFUSED_MS = 60_000;

export interface LookAgainOptions {
  /** Between two looks, in ms. */
  everyMs: number;
  /** Told of each look that threw. */
  failed: (error: unknown) => void;
  signal: AbortSignal;
}

/** Looks again and again until the signal aborts, and seldom after 403; never rejects. */
export async function lookAgain(
  look: () => Promise<void>,
  { everyMs, failed, signal }: LookAgainOptions,
): Promise<void> {
  while (!signal.aborted) {
    let again = everyMs;
    try {
      await look();
    } catch (error) {
      if (signal.aborted) return;
      failed(error);
      if (isForbidden(error)) again = REFUSED_MS;
    }
    await pause(again, signal);
  }
}
