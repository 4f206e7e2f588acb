import { ApiError, isOutage } from './errors.ts';
import { LimitError } from './limit-error.ts';
import type { HistoryTimings } from './seen-history.ts';

/** Times that a reflector lives by, in milliseconds unless named otherwise. Tests shorten them. */
export interface ReflectorTimings extends HistoryTimings {
  /** A watch that brings nothing at all for this long is given up and tested. */
  silenceMs: number;
  /** timeoutSeconds of a watch that brought events: a random value between these, so that reconnects spread out. */
  busySeconds: readonly [number, number];
  /** The same for a watch that brought none. The API server sends a bookmark two seconds before the end. */
  quietSeconds: readonly [number, number];
  /** The same for a watch that must prove at once that it delivers. */
  proofSeconds: number;
  /** The same right after the server was seen to answer again: what waits for the end of an outage waits for this, too. */
  againSeconds: number;
  /** Until the answer to a watch request must have begun. */
  startMs: number;
  /** Until a page of a list must be complete. */
  pageMs: number;
  /** Wait before the first and before any further try after failures. */
  backoffBaseMs: number;
  backoffMaxMs: number;
  /** The same after a server sent more than there is room for. */
  limitMs: number;
  /** Wait between an empty list and its confirmation. */
  confirmMs: number;
}

export const DEFAULT_TIMINGS: ReflectorTimings = {
  silenceMs: 40_000,
  busySeconds: [300, 600],
  quietSeconds: [30, 36],
  proofSeconds: 5,
  againSeconds: 1,
  startMs: 15_000,
  pageMs: 60_000,
  backoffBaseMs: 500,
  backoffMaxMs: 30_000,
  limitMs: 60_000,
  confirmMs: 1_000,
  turnedBackMs: 60_000,
  checkMs: 30_000,
  checkMaxMs: 600_000,
};

/**
 * By then caches show what was written, or it is known that they do not (ms): a watch that died without a word is given up, and the next one has begun
 * and brings what was missed, or is found to bring nothing.
 */
export const CAUGHT_UP_MS = DEFAULT_TIMINGS.silenceMs + DEFAULT_TIMINGS.startMs + DEFAULT_TIMINGS.proofSeconds * 1_000;

/**
 * An outage counts as so many failures, however long it is: 2 to 6 s after its end watches go on, where nobody sees that end before. So does what comes right after it, as
 * from an API server that refuses everybody until it knows the rights.
 */
const MAX_FAILURES_OF_OUTAGE = 4;

/** How many failures in a row there are with this one, as far as they count. */
export function countFailure(failures: number, error: unknown): number {
  return Math.min(failures + 1, isOutage(error) ? MAX_FAILURES_OF_OUTAGE : Infinity);
}

/** How long to wait before the next try, in ms. `failures` counts from 1, `random` gives [0, 1). */
export function retryMs(
  timings: ReflectorTimings,
  { error, failures, isForgotten, isInDoubt }: RetryState,
  random: () => number,
): number {
  const delay = isForgotten ? 0 : backoffMs(timings, failures, random());
  const longest = isInDoubt ? timings.turnedBackMs / 6 : Infinity;
  return Math.max(leastMs(timings, error, random()), Math.min(delay, longest));
}

export interface RetryState {
  readonly error: unknown;
  readonly failures: number;
  /** The server has forgotten where we were, and that is all. */
  readonly isForgotten: boolean;
  /** What the cluster lists is older than what was seen before, see SeenHistory. */
  readonly isInDoubt: boolean;
}

/** What the server asks for is bounded, and spread out: it may ask all of its clients at once. */
function leastMs(timings: ReflectorTimings, error: unknown, random: number): number {
  if (error instanceof LimitError) return timings.limitMs * (0.5 + random);
  return error instanceof ApiError ? (error.retryAfterMs ?? 0) * (1 + random / 10) : 0;
}

/** Doubles from the base to the maximum, each between half and one and a half of that. */
function backoffMs(timings: ReflectorTimings, failures: number, random: number): number {
  const doubled = timings.backoffBaseMs * 2 ** Math.min(failures - 1, 20);
  return Math.min(timings.backoffMaxMs, doubled) * (0.5 + random);
}

/** How a watch is expected to go: it brings events, it brings none, or it must prove that it can, right after an outage as soon as may be. */
export type Pace = 'busy' | 'quiet' | 'proof' | 'again';

/** timeoutSeconds for the next watch. `random` is in [0, 1). */
export function watchSeconds(timings: ReflectorTimings, pace: Pace, random: number): number {
  if (pace === 'proof') {
    return timings.proofSeconds;
  }
  if (pace === 'again') {
    return timings.againSeconds;
  }
  const [low, high] = pace === 'quiet' ? timings.quietSeconds : timings.busySeconds;
  return Math.round(low + (high - low) * random);
}
