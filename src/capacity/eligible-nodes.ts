import { MEMBER_LABEL, NODE_LABEL } from '../api/marks.ts';
import { conditionOf } from '../kube/conditions.ts';
import type { Node } from '../kube/core-v1.ts';
import { dedicatingTaints, hasPassingTaint, isAmong } from './accepted-taints.ts';
import type { Pool } from './pool.ts';

export type NotEligible =
  | 'VirtualNode'
  | 'OtherPool'
  | 'Excluded'
  | 'Tainted'
  | 'Unschedulable'
  | 'NotReady'
  | 'Deleting';

/**
 * Why a node of the member does not belong to the pool at all, as long as nobody changes labels or taints; undefined when
 * it does. A virtual node of ours (in a member that is a host itself) never does: its capacity is somebody else's.
 *
 * Of pools with taints each node counts in one only, so that no room is offered twice: where several of `pools`, all of the member,
 * could have it, in the one of whose taints it lacks the fewest, and of equals in the first. Pools without taints take all
 * that they choose.
 */
export function whyNotInPool(node: Node, pool: Pool, pools: readonly Pool[] = []): NotEligible | undefined {
  const outside = whyNotForPool(node, pool);
  if (outside !== undefined || pool.taints.length === 0) return outside;
  const lacks = taintsLacking(node, pool);
  let isBefore = true;
  for (const other of pools) {
    if (other.virtualNode === pool.virtualNode) {
      isBefore = false;
      continue;
    }
    const more = taintsLacking(node, other) - lacks;
    if ((more < 0 || (more === 0 && isBefore)) && whyNotForPool(node, other) === undefined) return 'OtherPool';
  }
  return undefined;
}

/** Why the node cannot take pods of the pool now; undefined when it can: Ready, not cordoned, no hard taint but accepted ones. */
export function whyNotEligible(node: Node, pool: Pool, pools: readonly Pool[] = []): NotEligible | undefined {
  const outside = whyNotInPool(node, pool, pools);
  if (outside !== undefined) return outside;
  if (node.metadata.deletionTimestamp !== undefined) return 'Deleting';
  if (node.spec?.unschedulable === true) return 'Unschedulable';
  const ready = conditionOf(node, 'Ready');
  if (ready?.status !== 'True') return 'NotReady';
  return hasPassingTaint(node) ? 'Tainted' : undefined;
}

/** The same, whatever other pools there are. */
function whyNotForPool(node: Node, pool: Pool): NotEligible | undefined {
  const { labels = {} } = node.metadata;
  if (Object.hasOwn(labels, NODE_LABEL) || Object.hasOwn(labels, MEMBER_LABEL)) return 'VirtualNode';
  if (!carries(labels, pool.nodeSelector)) return 'OtherPool';
  if (Object.keys(pool.excluded).length > 0 && carries(labels, pool.excluded)) return 'Excluded';
  return dedicatingTaints(node).every((taint) => isAmong(taint, pool.taints)) ? undefined : 'Tainted';
}

/** How many of the pool's taints the node does not have. */
function taintsLacking(node: Node, { taints }: Pool): number {
  const there = node.spec?.taints ?? [];
  return taints.filter((taint) => !isAmong(taint, there)).length;
}

function carries(labels: Readonly<Record<string, string>>, wanted: Readonly<Record<string, string>>): boolean {
  return Object.entries(wanted).every(([key, value]) => Object.hasOwn(labels, key) && labels[key] === value);
}
