import { GROUP } from '../api/marks.ts';

/** Node annotation: the label keys that Spillway put there, so that stale ones can be told from other people's. */
export const LABELS_ANNOTATION = `${GROUP}/node-labels`;
/** Node annotation: the taints (`key:effect`) that Spillway put there. */
export const TAINTS_ANNOTATION = `${GROUP}/node-taints`;
/** Node annotation: Spillway cordoned the node, so Spillway may uncordon it. A cordon of anyone else stays. */
export const CORDONED_ANNOTATION = `${GROUP}/cordoned`;
/** Node condition: whether the member answers. `Ready` speaks of Spillway itself. */
export const REACHABLE_CONDITION = `${GROUP}/MemberReachable`;
