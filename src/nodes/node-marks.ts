import { GROUP } from '../api/marks.ts';

/** Node annotation: the label keys that Spillway put there, so that stale ones can be told from other people's. */
export const LABELS_ANNOTATION = `${GROUP}/node-labels`;
/** Node annotation: the taints (`key:effect`) that Spillway put there. */
export const TAINTS_ANNOTATION = `${GROUP}/node-taints`;
/** Node annotation: Spillway cordoned the node, so Spillway may uncordon it. A cordon of anyone else stays. */
export const CORDONED_ANNOTATION = `${GROUP}/cordoned`;
/** Node condition: whether the member answers. `Ready` speaks of Spillway itself. */
export const REACHABLE_CONDITION = `${GROUP}/MemberReachable`;

/**
 * Node annotation: labels that choose the member's nodes behind the virtual node (`key=value`, by commas), none for all of
 * them. Whoever serves it when its pool is gone from the spec reads it here.
 */
export const POOL_ANNOTATION = `${GROUP}/pool`;

/** Neither keys nor values of labels have commas or equals signs. */
export function poolText(selector: Readonly<Record<string, string>>): string {
  return Object.entries(selector)
    .map(([key, value]) => `${key}=${value}`)
    .sort((a, b) => (a < b ? -1 : 1))
    .join(',');
}

export function poolOfText(text: string): Record<string, string> {
  const pairs = text.split(',').map((pair) => pair.split('='));
  return Object.fromEntries(pairs.flatMap(([key = '', value = '']) => (key === '' ? [] : [[key, value]])));
}
