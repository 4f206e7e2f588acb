import { isFinished } from '../api/pod-phase.ts';
import type { Pod, PodStatus } from '../kube/core-v1.ts';

/**
 * Why a member pod may be deleted: what is known, not merely missing, about the host pod with UID `of` that it runs for.
 * `missing`: not found, again after a time of doubt; good only with the breaker's permit. `second-copy`: the host pod lives, and
 * another copy of it, with UID `kept`, was there at a live read.
 */
export type DeletionEvidence =
  | { of: string; says: 'deleting' | 'finished' | 'replaced' | 'deletion-watched' | 'missing' }
  | { of: string; says: 'second-copy'; kept: string };

/**
 * How it is known that the member has no pod for the host pod with UID `of`: its deletion there was watched, a live read
 * of the pinned cluster said so at `at` (monotonic ms), its namespace may never have a place there, or it is shown as one that
 * never was to run there. `fenced`: an administrator says so, and it is stored that a copy which comes back is to end.
 */
export interface AbsenceEvidence {
  of: string;
  how: 'watched' | 'read' | 'nowhere' | 'never' | 'fenced';
  at: number;
  /** Until then a creation of ours may be carried out yet, in monotonic ms. */
  unansweredUntil?: number;
}

/** What a host pod's status is written from. */
export type StatusSource =
  /** What the member said last. */
  | { from: 'member'; status: PodStatus | undefined }
  /** Nothing: the pod is not there. */
  | { from: 'absence'; evidence: AbsenceEvidence }
  /** Why it is not there yet. */
  | { from: 'hold' };

/** What the departed pod said counts if it had ended; else nothing is known but that it is gone. */
export function sourceOf(departed: Pod | undefined, evidence: AbsenceEvidence): StatusSource {
  const told = departed !== undefined && isFinished(departed);
  return told ? { from: 'member', status: departed.status } : { from: 'absence', evidence };
}
