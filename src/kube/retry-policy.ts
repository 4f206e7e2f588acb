import { ApiError, TransportError } from './errors.ts';
import { TooLargeError } from './exchange.ts';

/** Tries after the first one for requests that are safe to repeat. */
const MAX_RETRIES = 3;
/** Tries after the first one when the server names the time itself (429 with Retry-After). */
const MAX_TOLD_RETRIES = 10;
const BASE_MS = 100;
const RETRYABLE_CODES = new Set([429, 500, 502, 503, 504]);

/**
 * How long to wait before trying again, in milliseconds, or undefined to give up. `attempt` counts from 0, `random` is
 * in [0, 1). `safe`: repeating the request cannot do harm. Requests that are not safe are repeated only after 429 with
 * Retry-After, as client-go does: the server turned them away before doing anything.
 */
export function retryDelayMs(o: {
  error: unknown;
  attempt: number;
  safe: boolean;
  remainingMs: number;
  random: number;
}): number | undefined {
  const { error, attempt, safe } = o;
  let delay: number | undefined;
  if (error instanceof ApiError) {
    const told = error.retryAfterMs;
    if (error.code === 429 && told !== undefined && attempt < MAX_TOLD_RETRIES) {
      delay = Math.max(told, BASE_MS) + BASE_MS * o.random;
    } else if (safe && attempt < MAX_RETRIES && RETRYABLE_CODES.has(error.code)) {
      delay = Math.max(told ?? 0, backoff(attempt, o.random));
    }
  } else if (error instanceof TransportError && safe && attempt < MAX_RETRIES) {
    const mayPass = error.kind !== 'aborted' && error.kind !== 'tls' && !(error.cause instanceof TooLargeError);
    delay = mayPass ? backoff(attempt, o.random) : undefined;
  }
  return delay !== undefined && delay < o.remainingMs ? delay : undefined;
}

/** 100, 200, 400 ms, each between half and one and a half of that. */
function backoff(attempt: number, random: number): number {
  return BASE_MS * 2 ** attempt * (0.5 + random);
}

/** The longest time, in milliseconds, that a server may make us wait by naming it: then it is asked again. */
const LONGEST_RETRY_AFTER_MS = 30_000;

/**
 * How long the server asked us to wait, in milliseconds, 0 to {@link LONGEST_RETRY_AFTER_MS}: by the header Retry-After,
 * seconds or a date (RFC 9110), else by the seconds in its Status; undefined when neither says so.
 */
export function retryAfterMs(
  header: string | string[] | undefined,
  seconds: number | undefined,
  nowMs: number,
): number | undefined {
  const told = parseRetryAfter(header, nowMs) ?? (seconds !== undefined && seconds > 0 ? seconds * 1000 : undefined);
  return told === undefined ? undefined : Math.min(LONGEST_RETRY_AFTER_MS, told);
}

function parseRetryAfter(value: string | string[] | undefined, nowMs: number): number | undefined {
  const text = Array.isArray(value) ? value[0] : value;
  if (text === undefined || text.trim() === '') {
    return undefined;
  }
  if (/^\d+$/.test(text.trim())) {
    return Number(text) * 1000;
  }
  const date = Date.parse(text);
  return Number.isNaN(date) ? undefined : Math.max(0, date - nowMs);
}

/**
 * What to say when no try is left. A proxy is waited for by a time of its own, which may be more than was left to the last try: that one
 * knows only that nothing came, the one before what stands in the way.
 */
export function tellingError(last: unknown, before: unknown): unknown {
  const isOfKind = (error: unknown, kind: TransportError['kind']): boolean =>
    error instanceof TransportError && error.kind === kind;
  return isOfKind(last, 'timeout') && isOfKind(before, 'proxy') ? before : last;
}
