import type { DeletionEvidence } from './evidence.ts';

/** A copy is to be deleted: which, why, and with what grace. What differs in one of these is another reason, which waits for nothing. */
export interface Deletion {
  uid: string;
  says: DeletionEvidence['says'];
  gracePeriodSeconds: number | undefined;
}

/** What came of the DELETEs that were sent for one reason. */
export interface SentDeletion extends Deletion {
  /** So many the member has accepted. */
  accepted: number;
  /** So many in a row it has answered as if that copy were not there. */
  vain: number;
  /** No other one is sent before, in monotonic ms. */
  until: number;
}

/** What was accepted is under way for so long at first, and then ever longer, as another DELETE seldom changes anything: in ms. */
const ACCEPTED_MS = { first: 30_000, most: 600_000 };
/** The cache is behind a copy that is gone, mostly for a moment, in ms. */
const VAIN_MS = { first: 1000, most: 60_000 };

/** How long the deletion has to wait for those that were sent for the same reason, in ms. */
export function waitOf(deletion: Deletion, sent: SentDeletion | undefined, now: number): number {
  return isSame(deletion, sent) ? Math.max(0, sent.until - now) : 0;
}

/** With one more that was sent at `at`, in monotonic ms. */
export function withAnswer(
  deletion: Deletion,
  sent: SentDeletion | undefined,
  { accepted: isAccepted, at }: { accepted: boolean; at: number },
): SentDeletion {
  const before = isSame(deletion, sent) ? sent : { accepted: 0, vain: 0 };
  const accepted = before.accepted + (isAccepted ? 1 : 0);
  const vain = isAccepted ? 0 : before.vain + 1;
  const waitMs = isAccepted ? doubled(ACCEPTED_MS, accepted) : doubled(VAIN_MS, vain);
  return { ...deletion, accepted, vain, until: at + waitMs };
}

function isSame(deletion: Deletion, sent: SentDeletion | undefined): sent is SentDeletion {
  return (
    sent?.uid === deletion.uid && sent.says === deletion.says && sent.gracePeriodSeconds === deletion.gracePeriodSeconds
  );
}

function doubled({ first, most }: { first: number; most: number }, times: number): number {
  return Math.min(most, first * 2 ** Math.min(times - 1, 10));
}
