import { FENCED, type FencingState, SILENT_MS } from '../api/fencing.ts';
import type { MemberConnection } from './connection.ts';

/** What a member shows of itself, as far as a word that nothing runs there is concerned; undefined: nobody can say at present. */
export type Heard = 'answers' | 'silent' | undefined;

/**
 * One that answers with errors, or now and then, neither proves the word wrong nor lets it count; nor does one whose last probe failed, though it still
 * counts as reachable: it may be gone since before the word was given.
 */
export function heardOf(member: Pick<MemberConnection, 'reachability' | 'identityOk' | 'unansweredMs'>): Heard {
  const { reachable, against } = member.reachability;
  if (reachable === true) return against === 0 && member.identityOk() ? 'answers' : undefined;
  return reachable === false && member.unansweredMs >= SILENT_MS ? 'silent' : undefined;
}

/**
 * What the taint on a virtual node is worth. It is a word about one outage: given, or left standing, while the member answers, it
 * is refused, and stays so until it is taken away, lest pods be released the moment the member falls silent for another reason.
 * `isTainted`: undefined while the Node has not been seen.
 */
export function nextFencing(
  before: FencingState | undefined,
  isTainted: boolean | undefined,
  member: Heard,
): FencingState | undefined {
  if (isTainted === undefined) return before;
  if (!isTainted) return undefined;
  if (member === 'answers') return 'Refused';
  return member === 'silent' ? (before ?? FENCED) : before;
}

/** Whether it counts at this moment: the taint is there, and nothing comes from the member. */
export function isFenced(state: FencingState | undefined, isTainted: boolean | undefined, member: Heard): boolean {
  return state === FENCED && isTainted === true && member === 'silent';
}
