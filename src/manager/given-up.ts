import { FORCE_LEAVE_ANNOTATION } from '../api/marks.ts';
import { isLeaving, type MemberCluster } from '../api/member-cluster.ts';
import { isAnotherCluster } from '../members/cluster-identity.ts';
import type { MemberConnection } from '../members/connection.ts';

/** What is known of a member that may be unable to answer. */
export type Asked = Pick<MemberConnection, 'reachability' | 'observedIdentity' | 'identityOk' | 'silentMs'>;

/** The administrator's word counts only in a long outage: else the member leaves in order, after a short one too. */
export function isGivenUp(member: MemberCluster, connection: Asked, forceLeaveSeconds: number): boolean {
  if (!isLeaving(member) || !isForced(member)) return false;
  return whyNotAsked(connection) !== undefined && connection.silentMs >= forceLeaveSeconds * 1000;
}

/** By its UID: the word is not for another MemberCluster of the name. */
export function isForced({ metadata: { annotations, uid } }: MemberCluster): boolean {
  return uid !== undefined && annotations?.[FORCE_LEAVE_ANNOTATION] === uid;
}

/** Why the member cannot be asked, once that is known. */
export function whyNotAsked(connection: Asked): string | undefined {
  const { reachable, failure } = connection.reachability;
  if (reachable === false) return failure?.message.replace(/\.$/, '') ?? 'it does not answer';
  return reachable === true && isAnotherCluster(connection) ? 'another cluster answers in its place' : undefined;
}
