import { FORCE_LEAVE_ANNOTATION } from '../api/marks.ts';
import { isLeaving, type MemberCluster } from '../api/member-cluster.ts';
import type { MemberConnection } from '../members/connection.ts';

/** The administrator's word counts only where the member cannot be asked: else it leaves in order. */
export function isGivenUp(member: MemberCluster, connection: MemberConnection): boolean {
  return isLeaving(member) && isForced(member) && whyNotAsked(connection) !== undefined;
}

/** By its UID: the word is not for another MemberCluster of the name. */
export function isForced({ metadata: { annotations, uid } }: MemberCluster): boolean {
  return uid !== undefined && annotations?.[FORCE_LEAVE_ANNOTATION] === uid;
}

/** Why the member cannot be asked, once that is known. */
export function whyNotAsked(connection: MemberConnection): string | undefined {
  const { reachable, failure } = connection.reachability;
  if (reachable === false) return failure?.message.replace(/\.$/, '') ?? 'it does not answer';
  const isAnother = connection.observedIdentity !== undefined && !connection.identityOk();
  return reachable === true && isAnother ? 'another cluster answers in its place' : undefined;
}
