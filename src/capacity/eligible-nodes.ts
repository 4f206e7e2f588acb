import { MEMBER_LABEL, NODE_LABEL } from '../api/marks.ts';
import type { Node } from '../kube/core-v1.ts';
import { HARD_EFFECTS } from '../kube/taints.ts';
import type { Pool } from './pool.ts';

/**
 * Taints that Kubernetes itself puts on a node for a state that passes. Anything else with a hard effect is somebody's
 * decision that ordinary pods do not belong there.
 */
const PASSING_TAINTS: ReadonlySet<string> = new Set([
  'node.kubernetes.io/not-ready',
  'node.kubernetes.io/unreachable',
  'node.kubernetes.io/unschedulable',
  'node.kubernetes.io/memory-pressure',
  'node.kubernetes.io/disk-pressure',
  'node.kubernetes.io/pid-pressure',
  'node.kubernetes.io/network-unavailable',
  'node.kubernetes.io/out-of-service',
  'node.cloudprovider.kubernetes.io/uninitialized',
  'node.cloudprovider.kubernetes.io/shutdown',
]);

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
 */
export function whyNotInPool(node: Node, pool: Pool): NotEligible | undefined {
  const { labels = {} } = node.metadata;
  if (Object.hasOwn(labels, NODE_LABEL) || Object.hasOwn(labels, MEMBER_LABEL)) return 'VirtualNode';
  if (!carries(labels, pool.nodeSelector)) return 'OtherPool';
  if (Object.keys(pool.excluded).length > 0 && carries(labels, pool.excluded)) return 'Excluded';
  const taints = node.spec?.taints ?? [];
  const lasting = taints.some(({ key, effect }) => HARD_EFFECTS.includes(effect) && !PASSING_TAINTS.has(key));
  return lasting ? 'Tainted' : undefined;
}

/** Why the node cannot take pods of the pool now; undefined when it can: Ready, not cordoned, no hard taint. */
export function whyNotEligible(node: Node, pool: Pool): NotEligible | undefined {
  const outside = whyNotInPool(node, pool);
  if (outside !== undefined) return outside;
  if (node.metadata.deletionTimestamp !== undefined) return 'Deleting';
  if (node.spec?.unschedulable === true) return 'Unschedulable';
  const ready = node.status?.conditions?.find(({ type }) => type === 'Ready');
  if (ready?.status !== 'True') return 'NotReady';
  return (node.spec?.taints ?? []).some(({ effect }) => HARD_EFFECTS.includes(effect)) ? 'Tainted' : undefined;
}

function carries(labels: Readonly<Record<string, string>>, wanted: Readonly<Record<string, string>>): boolean {
  return Object.entries(wanted).every(([key, value]) => Object.hasOwn(labels, key) && labels[key] === value);
}
