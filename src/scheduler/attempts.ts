import { LRUCache } from 'lru-cache';
import type { Pod } from '../kube/core-v1.ts';
import { atMost } from '../kube/lru-limit.ts';
import { fnv32a } from '../kube/fnv.ts';

/** Attempts that are remembered, at the most. */
const MAX_ATTEMPTS = 20_000;
/** A scheduler that failed lets a pod rest for a second at least. */
const SAME_ATTEMPT_MS = 900;

interface Attempt {
  /** What the scheduler knew of its former failure when it asked; undefined: of none. */
  readonly knownFailure: string | undefined;
  readonly isSilent: boolean;
  /** Monotonic, in ms. */
  readonly at: number;
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

  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /** A scheduler was told a place for the pod. For how long it is to be held, in ms, unless the attempt ends before. */
  begin(pod: Pod): number {
    const { uid = '' } = pod.metadata;
    const before = this.#open.get(uid);
    const now = this.#monotonic();
    const isSame = before !== undefined && now - before.at < SAME_ATTEMPT_MS;
    const isSilent = isSame ? before.isSilent : before !== undefined;
    this.#open.set(uid, { knownFailure: failureOf(pod), isSilent, at: now });
    return isSilent ? Attempts.SILENT_HOLD_MS : Attempts.HOLD_MS;
  }

  /** Whether the pod, as the host shows it, failed in the attempt that is under way. */
  hasFailed(pod: Pod): boolean {
    const attempt = this.#open.get(pod.metadata.uid ?? '');
    const failure = failureOf(pod);
    return attempt !== undefined && failure !== undefined && failure !== attempt.knownFailure;
  }

  /** It is known how it ended. */
  end(uid: string): void {
    this.#open.delete(uid);
  }
}

/** What the scheduler wrote on the pod when it last failed; only whether it is another one is of interest. */
function failureOf({ status }: Pod): string | undefined {
  const condition = status?.conditions?.find(({ type, status: value }) => type === 'PodScheduled' && value === 'False');
  if (condition === undefined) return undefined;
  const { reason = '', message = '', lastTransitionTime = '' } = condition;
  return `${reason} ${lastTransitionTime ?? ''} ${fnv32a(message).toString(36)}`;
}
