import { cleanText } from '../kube/clean-text.ts';

/** Names of the member are cut to so many bytes: after them stands what can be done. */
const MAX_COPY_BYTES = 100;
const MAX_REASON_BYTES = 140;
/** So many are named. */
const MOST_NAMED = 3;

/** Copies that a member was told to delete, and has not deleted; `first`: some of them. */
export interface UndeletedList {
  readonly count: number;
  readonly first: readonly { copy: string; since: string; heldBy: string }[];
}

/** Which these are, since when they are to go, and what keeps them; undefined: there are none. */
export function undeletedInWords(lists: readonly UndeletedList[]): string | undefined {
  const count = lists.reduce((sum, list) => sum + list.count, 0);
  const named = lists.flatMap(({ first }) => first).slice(0, MOST_NAMED);
  if (named.length === 0) return undefined;
  const words = named.map(({ copy, since, heldBy }) => {
    return `${cleanText(copy, MAX_COPY_BYTES)} (since ${since}: ${cleanText(heldBy, MAX_REASON_BYTES)})`;
  });
  const more = count > named.length ? ` and ${count - named.length} more` : '';
  return `What the member was told to delete, and still has: ${words.join(', ')}${more}. That waits for somebody in the member.`;
}
