import { clusterInWords, NOT_CONTACTED } from '../api/cluster.ts';
import { isLost } from '../placement/lost-members.ts';
import type { PlacedMember } from '../placement/placed-pods.ts';

/**
 * Why nobody knows how pods in the member are now, though it may well serve: it is not reachable, for a reason by which it is not lost. Undefined for all
 * others.
 */
export function whyUnheard(member: PlacedMember): string | undefined {
  if (member.reachable !== false || isLost(member)) return undefined;
  return `${clusterInWords(member.name)} is not reachable, and not lost either: what it said last may be old`;
}

/**
 * Why nobody knows whether the member answers: it has yet to be asked, as one whose MemberCluster was made anew. It may have been lost before that, and then what its
 * pods may not do holds. Undefined for all others.
 */
export function whyUnasked({ name, reachable }: PlacedMember): string | undefined {
  return reachable === undefined ? `${clusterInWords(name)}: ${NOT_CONTACTED}` : undefined;
}
