import { ApiError, TransportError } from '../kube/errors.ts';

/**
 * An API server gives up on a request after so long (`--request-timeout`, 60 s unless set), in ms: what it has not carried
 * out by then it never will.
 */
const REQUEST_TIMEOUT_MS = 60_000;
/** So long after the last creation was begun one may be carried out, in ms: it may have waited for a connection until our own deadline. */
export const OPEN_CREATION_MS = 30_000 + REQUEST_TIMEOUT_MS;

/** Creations of ours that may be carried out still, although the member has no such pod. */
export interface UnansweredCreation {
  /** UID of the host pod. */
  of: string;
  /** From then on none will be carried out any more, in ms. */
  until: number;
  /** No other creation was sent: once the pod has been seen, none is left. */
  single: boolean;
}

/** What a server has begun when it answers that it failed, it has done or given up within moments, in ms. */
const FAILED_MS = 5_000;
/** Answers of those who gave up waiting for somebody else: the API server behind them may be at it still. */
const GAVE_UP = new Set([408, 502, 504]);

/**
 * How long a creation may be carried out yet after that error, in ms; 0: it has no effect. Nothing but an answer that refuses
 * says so.
 */
export function openAfterMs(error: unknown): number {
  if (error instanceof TransportError) {
    // Of a connection that was never made: other errors of that kind also end established ones.
    const neverSent = error.kind === 'dns' || (error.kind === 'refused' && error.detail.includes('ECONNREFUSED'));
    return neverSent ? 0 : REQUEST_TIMEOUT_MS;
  }
  if (!(error instanceof ApiError) || GAVE_UP.has(error.code)) return REQUEST_TIMEOUT_MS;
  const { message = '' } = error.status;
  // Admission comes before anything is stored; what etcd was asked to store it may when it has a leader again.
  if (error.code < 500 || message.includes('failed calling webhook')) return 0;
  return message.includes('etcdserver') ? REQUEST_TIMEOUT_MS : FAILED_MS;
}

/**
 * One more creation that may be carried out for `openMs` after `now` (ms): when it reached the API server is not known, but it
 * was before.
 */
export function oneMoreUnanswered(
  before: UnansweredCreation | undefined,
  of: string,
  now: number,
  openMs: number,
): UnansweredCreation {
  const same = before?.of === of ? before : undefined;
  return { of, until: Math.max(same?.until ?? 0, now + openMs), single: same === undefined };
}

/**
 * What a process that ended may have sent for a pod, seen from one that has just learned of it, at `now` (ms). Clocks of two
 * machines are not compared: it counts from then.
 */
export function unansweredByFormer(of: string, now: number): UnansweredCreation {
  return { of, until: now + OPEN_CREATION_MS, single: false };
}
