import { clusterInWords } from '../api/cluster.ts';

export type RefusalReason =
  | 'NotSelected'
  | 'OtherGroup'
  | 'Unavailable'
  | 'Impossible'
  | 'Tainted'
  | 'Avoided'
  | 'Migrating'
  | 'NoShare'
  | 'Spread'
  | 'HasItsShare'
  | 'AtMax'
  | 'LaterTier'
  | 'LocalFirst'
  | 'NoRoom';

/** Why a cluster does not take a pod now. */
export interface Refusal {
  readonly cluster: string;
  readonly reason: RefusalReason;
  /** Without the cluster's name: `it takes no new pods`. */
  readonly message: string;
}

/** For FailedScheduling: `member east: no node has 4 cpu free (largest free slot 2 cpu)`. */
export function refusalInWords({ cluster, message }: Refusal): string {
  return `${clusterInWords(cluster)}: ${message}`;
}

const MAX_LISTED = 6;

/** `a`, `a and b`, `a, b and c`; of many only the first, and how many more. */
export function listInWords(words: readonly string[]): string {
  if (words.length > MAX_LISTED) {
    return `${words.slice(0, MAX_LISTED - 1).join(', ')} and ${String(words.length - MAX_LISTED + 1)} more`;
  }
  const [last = ''] = words.slice(-1);
  return words.length < 2 ? last : `${words.slice(0, -1).join(', ')} and ${last}`;
}

/** The same refusal for all of them. */
export function refuseAll(
  candidates: Iterable<{ readonly name: string }>,
  reason: RefusalReason,
  message: string,
): Refusal[] {
  return Array.from(candidates, ({ name }) => ({ cluster: name, reason, message }));
}
