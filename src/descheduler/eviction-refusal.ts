import type { Pod } from '../kube/core-v1.ts';
import { isReady } from '../kube/conditions.ts';
import {
  ApiError,
  describeError,
  hasManyBudgets,
  isAgainstBudget,
  isAnotherObject,
  isRightMissing,
  isUnauthorized,
  TransportError,
  type TransportErrorKind,
  UnsentError,
} from '../kube/errors.ts';
import { CAUGHT_UP_MS } from '../kube/reflector-timings.ts';
import type { Held } from './wanted-move.ts';

/** How long a pod is held that the host does not let go, or fails to, for reasons that may be of this pod alone (ms). */
export const REFUSED_MS = 15_000;
/** The same for budgets. Where several choose the pod, somebody has to take one away. */
const HELD_MS = { budget: 5_000, manyBudgets: 60_000 } as const;
/** What takes the host longer than this takes up the time of others (ms). */
export const SLOW_MS = 1_000;
/** So many times as long as it took nothing of the same controller is tried. */
const RESTS = 20;

/**
 * What the host means that does not let a pod go, be it by eviction, or by a patch. `changed`: it is gone, or another one, or another version: the
 * caches will catch up. `budget`: a disruption budget, now. `manyBudgets`: several, for good. `noRight`: Spillway may not, whichever pod it is.
 * `denied`: admission is against it, or the host is for another reason. `fails`: it may pass: a webhook that is down, a server with too much to do, no answer.
 * `unheard`: the host cannot be reached, or does not know us, whichever pod it is.
 */
export type EvictionRefusal = 'changed' | 'budget' | 'manyBudgets' | 'noRight' | 'denied' | 'fails' | 'unheard';

/** Sent, and not answered. */
const OF_THE_REQUEST: ReadonlySet<TransportErrorKind> = new Set(['timeout', 'reset', 'malformed']);
/** By webhooks and policies alike, with whatever code their owners chose. */
const DENIED = /denied (?:the )?request/;
/** Nobody was asked to store anything yet. */
const WEBHOOK_FAILS = /failed calling webhook/;

export function evictionRefusal(error: unknown): EvictionRefusal {
  if (isUnanswered(error)) return 'fails';
  if (!(error instanceof ApiError)) return 'unheard';
  const { code, status } = error;
  const { message = '' } = status;
  if (DENIED.test(message)) return 'denied';
  if (isUnauthorized(error)) return 'unheard';
  if (isAnotherObject(error)) return 'changed';
  if (isAgainstBudget(error)) return 'budget';
  if (hasManyBudgets(error)) return 'manyBudgets';
  if (isRightMissing(error)) return 'noRight';
  return code >= 500 || code === 408 || code === 429 ? 'fails' : 'denied';
}

/** It was sent, and not answered: it is this request that the host hangs at, as at a slow webhook, or that what is before it breaks off. Were it all of them, watches would tell. */
export function isUnanswered(error: unknown): error is TransportError {
  return error instanceof TransportError && OF_THE_REQUEST.has(error.kind);
}

/** Whether the host may have done it, or may do it yet: what etcd was asked to store it may still store. */
export function mayBeDone(error: unknown): boolean {
  if (!(error instanceof ApiError)) return !(error instanceof UnsentError);
  const refusal = evictionRefusal(error);
  if (refusal !== 'fails') return false;
  return error.code !== 429 && !WEBHOOK_FAILS.test(error.status.message ?? '');
}

/** For how long a pod is not tried again. Where it may be done, not before the caches must show that. */
export function refusedForMs(error: unknown): number {
  return mayBeDone(error) ? CAUGHT_UP_MS : REFUSED_MS;
}

/**
 * Whether the failure to read a pod is about that pod alone: no webhook is asked about a read, so a server that says that it is overloaded, or on its
 * way up or down, is so for all of them.
 */
export function isOfOnePod(error: unknown): error is ApiError | TransportError {
  const ofAll = [401, 429, 502, 503, 504];
  return isUnanswered(error) || (error instanceof ApiError && !ofAll.includes(error.code));
}

/** Why a pod stays that the host does not let go, until it may be asked again. Pods of one workload are much alike: the others of it wait for their turns. */
export function heldByHost(refusal: 'budget' | 'manyBudgets' | 'denied' | 'fails', error: unknown, pod: Pod): Held {
  const why = whyNotLetGo(refusal, error, isReady(pod) ? undefined : NOT_READY);
  const { retryAfterMs = 0 } = error instanceof ApiError ? error : {};
  if (refusal === 'denied' || refusal === 'fails')
    return { why, forMs: Math.max(refusedForMs(error), retryAfterMs), ofWorkload: 'perhaps' };
  return { why, forMs: Math.max(HELD_MS[refusal], retryAfterMs), ofWorkload: true };
}

/** The API server's message does not tell whether the budget can ever allow the eviction. */
const NOT_READY =
  ' (the pod is not Ready, so the budget counts it as lost; with unhealthyPodEvictionPolicy: AlwaysAllow such pods may go)';

/** In words, those of the host in parentheses, as they may change with each try. `hint`: what is to be said of a budget. */
export function whyNotLetGo(
  refusal: 'budget' | 'manyBudgets' | 'noRight' | 'denied' | 'fails',
  error: unknown,
  hint = '',
): string {
  if (refusal === 'budget') return `its disruption budget allows no eviction now${hint}`;
  if (refusal === 'manyBudgets')
    return 'more than one disruption budget chooses it, and Kubernetes evicts no such pod: leave it one';
  if (refusal === 'fails') return `the host fails to let it go (${describeError(error)})`;
  return `the host does not let it go (${describeError(error)})`;
}

/** Why a pod stays that could not be read. To wait for an answer in vain takes half a minute, which is not to be taken up too often. */
export function heldUnread(error: ApiError | TransportError): Held {
  const why = `the host does not say what it is now (${describeError(error)})`;
  const isSlow = error instanceof TransportError && error.kind === 'timeout';
  return { why, forMs: isSlow ? CAUGHT_UP_MS : REFUSED_MS, ofWorkload: 'perhaps' };
}

/**
 * How long pods of one controller are left alone when the host took so long not to do what was asked about one of them, in ms: they are much alike, and what takes it
 * long for one of them must not take up the time of all others. 0: it was no long time.
 */
export function slowRestMs(tookMs: number): number {
  return tookMs >= SLOW_MS ? tookMs * RESTS : 0;
}
