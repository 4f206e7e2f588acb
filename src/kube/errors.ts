import { cleanText } from './clean-text.ts';
import type { Status } from './status.ts';

/** Longest words of a server in an error's own message, and longest description of one, in bytes. */
const LONGEST_DESCRIPTION = 1000;

/** The API server answered and refused. `path` has no query: exec commands and the like do not belong in logs. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly cluster: string;
  readonly method: string;
  readonly path: string;
  readonly code: number;
  /** The Status reason in CamelCase (`NotFound`), or '' where the answer had none. */
  readonly reason: string;
  readonly status: Status;
  /** How long the server asked us to wait, in milliseconds; at most half a minute (see retry-policy.ts). */
  readonly retryAfterMs: number | undefined;

  constructor(o: {
    cluster: string;
    method: string;
    path: string;
    code: number;
    status: Status;
    retryAfterMs?: number | undefined;
  }) {
    const words = cleanText(o.status.message ?? o.status.reason ?? '', LONGEST_DESCRIPTION);
    super(`${o.method} ${o.path} in cluster ${o.cluster}: ${o.code} ${words}`);
    this.cluster = o.cluster;
    this.method = o.method;
    this.path = o.path;
    this.code = o.code;
    this.reason = o.status.reason ?? '';
    this.status = o.status;
    this.retryAfterMs = o.retryAfterMs;
  }
}

/**
 * No usable answer came. `malformed`: an answer that cannot be what was asked for (HTML, `{}`, truncated JSON, a
 * redirect). `proxy`: what leads to the server does not. `aborted`: the caller's own signal, never a fact about the cluster.
 */
export type TransportErrorKind = 'timeout' | 'refused' | 'reset' | 'dns' | 'tls' | 'proxy' | 'aborted' | 'malformed';

export class TransportError extends Error {
  override readonly name = 'TransportError';
  readonly cluster: string;
  readonly kind: TransportErrorKind;
  readonly method: string;
  readonly path: string;
  /** What went wrong, without the method and path that `message` repeats. */
  readonly detail: string;

  constructor(o: {
    cluster: string;
    kind: TransportErrorKind;
    method: string;
    path: string;
    detail: string;
    cause?: unknown;
  }) {
    super(`${o.method} ${o.path} in cluster ${o.cluster}: ${o.detail}`, { cause: o.cause });
    this.cluster = o.cluster;
    this.kind = o.kind;
    this.method = o.method;
    this.path = o.path;
    this.detail = o.detail;
  }
}

/** Held back here, before any of it was sent: nothing of it can have been done. */
export class UnsentError extends TransportError {}

/** Credentials that cannot be used, or that we refuse to use. `reason` is CamelCase, fit for a condition. */
export class CredentialsError extends Error {
  override readonly name = 'CredentialsError';
  readonly reason: string;

  constructor(reason: string, message: string) {
    super(message);
    this.reason = reason;
  }
}

/** What an API server says of a path that it does not know: nothing about any object. */
const UNKNOWN_PATH = /^the server could not find the requested resource/;

/** The API server has no such object. A 404 of a proxy in between, which gives no reason, says nothing of the kind. */
export function isNotFound(e: unknown): e is ApiError {
  const isSaid = e instanceof ApiError && e.code === 404 && e.reason === 'NotFound';
  return isSaid && !UNKNOWN_PATH.test(e.status.message ?? '');
}

/** The API server, or a proxy in between, does not know the path, so nothing was said about any object. */
export function isUnknownPath(e: unknown): e is ApiError {
  return e instanceof ApiError && e.code === 404 && !isNotFound(e);
}

export function isAlreadyExists(e: unknown): e is ApiError {
  return e instanceof ApiError && e.code === 409 && e.reason === 'AlreadyExists';
}

/** An optimistic lock or precondition (resourceVersion, uid) did not hold. */
export function isConflict(e: unknown): e is ApiError {
  return e instanceof ApiError && e.code === 409 && e.reason !== 'AlreadyExists';
}

/**
 * The object that was meant is gone, or another one has its name by now: a wrong UID is 409 on delete, and 409 or 422 on patch. A policy
 * that refuses a write answers 422, too.
 */
export function isAnotherObject(e: unknown): boolean {
  if (isNotFound(e) || isConflict(e)) return true;
  return e instanceof ApiError && e.code === 422 && /metadata\.uid/.test(e.status.message ?? '');
}

/** A lock on the UID did not hold: no object of the name has it any more. A PUT of what is gone is answered so for some kinds, others say 404. */
export function isUidGone(e: unknown): e is ApiError {
  return isConflict(e) && e.message.includes('Precondition failed: UID in precondition');
}

/** The resourceVersion or continue token asked for is too old (410 Gone, reason Expired). */
export function isGone(e: unknown): e is ApiError {
  return e instanceof ApiError && (e.code === 410 || e.reason === 'Expired' || e.reason === 'Gone');
}

/** An eviction that a disruption budget does not allow now. Others answer 429, too: a server that has too much to do, a webhook. */
export function isAgainstBudget(e: unknown): e is ApiError {
  if (!(e instanceof ApiError) || e.code !== 429) return false;
  return e.status.details?.causes?.some(({ reason }) => reason === 'DisruptionBudget') === true;
}

/** An eviction of a pod that several disruption budgets choose: Kubernetes carries out none, and answers 500. */
export function hasManyBudgets(e: unknown): e is ApiError {
  return e instanceof ApiError && e.code === 500 && e.message.includes('more than one PodDisruptionBudget');
}

export function isForbidden(e: unknown): e is ApiError {
  return e instanceof ApiError && e.code === 403;
}

/** The identity lacks a right, by the words of Kubernetes' authorizers: admission that refuses an object answers 403 as well. */
export function isRightMissing(e: unknown): e is ApiError {
  return isForbidden(e) && /is forbidden: User/.test(e.status.message ?? '');
}

export function isUnauthorized(e: unknown): e is ApiError {
  return e instanceof ApiError && e.code === 401;
}

/**
 * The same request may succeed later without anybody changing anything: no usable answer, 429, or a server error
 * (a failing admission webhook is a 500).
 */
export function isTransient(e: unknown): boolean {
  if (e instanceof TransportError) {
    return e.kind !== 'aborted';
  }
  return e instanceof ApiError && (e.code === 429 || e.code >= 500) && !isPermanent(e);
}

/** The cluster gave no answer that says anything of the request. */
export function isOutage(e: unknown): boolean {
  return isTransient(e) && !(e instanceof TransportError && e.kind === 'malformed');
}

/** etcd's own limits (1.5 MiB a request, 2 MiB a message), which API servers pass on as a 500. */
const TOO_LARGE = /request is too large|message larger than max/;

/** Somebody has to change the object, or what changes it on its way: it is malformed, invalid (422) or too large (413). */
export function isPermanent(e: unknown): e is ApiError {
  if (!(e instanceof ApiError)) return false;
  return e.code === 400 || e.code === 413 || e.code === 422 || TOO_LARGE.test(e.status.message ?? '');
}

/**
 * One line for people: which cluster, what it said, and whether it may pass by itself. Never holds credentials. What else
 * nobody may read is taken out by `hide`, which gets the text as it came: half a value would not be known as one.
 */
export function describeError(e: unknown, hide = (text: string): string => text): string {
  let text: string;
  if (e instanceof ApiError) {
    const words = e.status.message ?? `it answered ${e.code}`;
    const label = e.reason === '' ? `${e.code}` : `${e.code} ${e.reason}`;
    text = `cluster ${e.cluster}: ${words} (${label}${isTransient(e) ? ', transient' : ''})`;
  } else if (e instanceof TransportError) {
    text = `cluster ${e.cluster}: ${e.detail}${isTransient(e) ? ' (transient)' : ''}`;
  } else {
    text =
      e instanceof Error
        ? e.message
        : typeof e === 'string'
          ? e
          : `something was thrown that is no error (${typeof e})`;
  }
  return cleanText(hide(text), LONGEST_DESCRIPTION);
}
