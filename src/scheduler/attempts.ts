import { LRUCache } from 'lru-cache';
import { unscheduledOf } from '../kube/conditions.ts';
import type { Pod } from '../kube/core-v1.ts';
import { atMost } from '../kube/lru-limit.ts';
import { fnv32a } from '../kube/fnv.ts';
import { isOlder } from '../kube/resource-version.ts';

/** Attempts that are remembered, at the most. */
const MAX_ATTEMPTS = 20_000;
/** So long one attempt may ask more than once. A scheduler with nothing else to do may begin the next one as soon: see {@link LATE_MS}. */
const SAME_ATTEMPT_MS = 900;
/**
 * From 1.33 on kube-scheduler lets a pod that has no place rest only while others wait (SchedulerPopFromBackoffQ): it may ask about it again
 * before anybody's watch shows that it has none. By then it does, in ms. After an error (reason SchedulerError) the pod does rest.
 */
const LATE_MS = 2_000;
const NO_PLACE = 'Unschedulable';

interface Attempt {
  /** What the scheduler knew of its former failure when it asked; undefined: of none. */
  readonly knownFailure: string | undefined;
  /** Of the pod as the scheduler knew it; what is older tells nothing of how this attempt ends. */
  readonly resourceVersion: string | undefined;
  readonly isSilent: boolean;
  /** Monotonic, in ms. */
  readonly at: number;
  /** Until when (monotonic, in ms) the pod may yet show how the attempt before failed. */
  readonly oldNewsUntil?: number;
}

/**
 * What schedulers do with pods after they were told a place. Between the answer and the bind may lie minutes, as when a volume
 * is made; while that goes on the place must not go to another pod. It is over when the pod is bound or gone, when it shows
 * that the attempt failed, or when it is asked about anew. A failure that is word for word the one before is not written to the
 * pod, so once a pod was asked about anew without a sign of why, its next attempts may fail in the same way: they count as
 * `silent`, until one shows how it ended.
 */
export class Attempts {
  /** A volume may take ten minutes (`bindTimeoutSeconds` of the scheduler), and some more where others are before it. */
  static readonly HOLD_MS = 15 * 60_000;
  /** Without long steps between answer and bind there are milliseconds, unless the API server is slow. */
  static readonly SILENT_HOLD_MS = 10_000;
  readonly #monotonic: () => number;
  /** By UID of the pod. */
  readonly #open = new LRUCache<string, Attempt>(atMost(MAX_ATTEMPTS));
  /** By UID, pods that were told no place, as long as they do not show it. */
  readonly #refused = new LRUCache<string, Pick<Attempt, 'knownFailure' | 'at'>>(atMost(MAX_ATTEMPTS));

  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /** A scheduler was told a place for the pod. For how long it is to be held, in ms, unless the attempt ends before. */
  begin(pod: Pod): number {
    const { uid = '', resourceVersion } = pod.metadata;
    const before = this.#open.get(uid);
    const now = this.#monotonic();
    const isSame = before !== undefined && now - before.at < SAME_ATTEMPT_MS;
    const isSilent = isSame ? before.isSilent : before !== undefined;
    const knownFailure = failureOf(pod);
    const last = isSame ? before : this.#refused.get(uid);
    const isOld = last !== undefined && last.knownFailure === knownFailure && now - last.at < LATE_MS;
    this.#refused.delete(uid);
    const old = isOld ? { oldNewsUntil: now + LATE_MS } : {};
    this.#open.set(uid, { knownFailure, resourceVersion, isSilent, at: now, ...old });
    return isSilent ? Attempts.SILENT_HOLD_MS : Attempts.HOLD_MS;
  }

  /** A scheduler was told that there is no place for the pod, so that it writes down that the attempt failed. */
  refused(pod: Pod): void {
    const { uid = '' } = pod.metadata;
    this.#open.delete(uid);
    this.#refused.set(uid, { knownFailure: failureOf(pod), at: this.#monotonic() });
  }

  /** Whether the pod, as the host shows it now, failed in the attempt that is under way; each state is to be shown once. */
  hasFailed(pod: Pod): boolean {
    const { uid = '' } = pod.metadata;
    const failure = failureOf(pod);
    if (failure === undefined) return false;
    if (failure !== this.#refused.peek(uid)?.knownFailure) this.#refused.delete(uid);
    const attempt = this.#open.get(uid);
    if (attempt === undefined || failure === attempt.knownFailure) return false;
    if (isOlder(pod.metadata.resourceVersion, attempt.resourceVersion)) return false;
    const { oldNewsUntil = 0, ...rest } = attempt;
    if (this.#monotonic() >= oldNewsUntil || unscheduledOf(pod)?.reason !== NO_PLACE) return true;
    this.#open.set(uid, { ...rest, knownFailure: failure });
    return false;
  }

  /** It is known how it ended. */
  end(uid: string): void {
    this.#open.delete(uid);
    this.#refused.delete(uid);
  }
}

/** What the scheduler wrote on the pod when it last failed; only whether it is another one is of interest. */
function failureOf(pod: Pod): string | undefined {
  const condition = unscheduledOf(pod);
  if (condition === undefined) return undefined;
  const { reason = '', message = '', lastTransitionTime = '' } = condition;
  return `${reason} ${lastTransitionTime ?? ''} ${fnv32a(message).toString(36)}`;
}
