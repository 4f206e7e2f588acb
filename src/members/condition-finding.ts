import type { MemberClusterStatus } from '../api/member-cluster-status.ts';

export type Condition = NonNullable<MemberClusterStatus['conditions']>[number];
/** What a condition of a MemberCluster is to say. */
export type Finding = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>;

export const yes = (type: string, reason: string, message: string): Finding => ({
  type,
  status: 'True',
  reason,
  message,
});
export const no = (type: string, reason: string, message: string): Finding => ({
  type,
  status: 'False',
  reason,
  message,
});
export const unknown = (type: string, reason: string, message: string): Finding => ({
  type,
  status: 'Unknown',
  reason,
  message,
});
