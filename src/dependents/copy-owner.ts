import { MEMBER_LABEL } from '../api/marks.ts';
import type { CopyRecord } from './copy.ts';

/** How soon a copy that another MemberCluster takes care of is looked at again, in ms: that one may be gone by then. */
export const OTHERS_AGAIN_MS = 60_000;

export interface CopyOwner {
  /** Name of the MemberCluster. */
  member: string;
  /** Whether there is another MemberCluster of that name that stands for the same cluster, or may. Default: there is none. */
  sharesCluster?: (member: string) => boolean;
}

/**
 * Whether removing the copy, once it is of no use, is the business of another MemberCluster that stands for the same
 * cluster: only that one knows which of its pods are yet to come. Copies of versions that did not say who wrote them are
 * everybody's business.
 */
export function isOfOther({ metadata }: CopyRecord, { member, sharesCluster }: CopyOwner): boolean {
  const writer = metadata.labels?.[MEMBER_LABEL];
  return writer !== undefined && writer !== member && sharesCluster?.(writer) === true;
}
