import { createHash } from 'node:crypto';

/** Pods of a member that are kept although their host pods are gone, and why. */
export interface KeptDeletions {
  /** UIDs of the member pods. */
  uids: readonly string[];
  /** The breaker is open: further ones will be kept, too. */
  open: boolean;
  /** The host's history has gone back, as after a restore from a backup. */
  hostWentBack: boolean;
}

/**
 * What an administrator repeats to confirm that exactly these pods are to be deleted: how many, and a fingerprint, so that
 * pods which join them later are not meant.
 */
export function deletionToken(uids: readonly string[]): string {
  const text = uids.toSorted((a, b) => (a < b ? -1 : 1)).join('\n');
  return `${uids.length}-${createHash('sha256').update(text).digest('hex').slice(0, 10)}`;
}
