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

/** Nothing but an answer that refuses says that a creation has no effect. */
export function mayBeCarriedOut(error: unknown): boolean {
  if (error instanceof TransportError) {
    // Of a connection that was never made: other errors of that kind also end established ones.
    const neverSent = error.kind === 'dns' || (error.kind === 'refused' && error.detail.includes('ECONNREFUSED'));
    return !neverSent;
  }
  if (!(error instanceof ApiError)) return true;
  if (error.code === 408) return true;
  // Admission comes before anything is stored.
  return error.code >= 500 && !(error.status.message ?? '').includes('failed calling webhook');
}

/** One more creation without an answer, given up on at `now` (ms): when it reached the API server is not known, but it was before. */
export function oneMoreUnanswered(before: UnansweredCreation | undefined, of: string, now: number): UnansweredCreation {
  return { of, until: now + REQUEST_TIMEOUT_MS, single: before?.of !== of };
}

/**
 * What a process that ended may have sent for a pod, seen from one that has just learned of it, at `now` (ms). Clocks of two
 * machines are not compared: it counts from then.
 */
export function unansweredByFormer(of: string, now: number): UnansweredCreation {
  return { of, until: now + OPEN_CREATION_MS, single: false };
}
