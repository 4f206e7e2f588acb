import type { Node, Taint } from '../kube/core-v1.ts';
import { HARD_EFFECTS } from '../kube/taints.ts';

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

/** Those of a virtual node's taints that it accepts on nodes of the member: hard ones, and none that tells of a passing state. */
export function acceptedOf(taints: readonly Taint[]): readonly Taint[] {
  return taints.filter(isDedicating);
}

/** The taints by which somebody reserves the node for pods that tolerate them. */
export function dedicatingTaints(node: Node): readonly Taint[] {
  return (node.spec?.taints ?? []).filter(isDedicating);
}

/** The node has a passing taint with a hard effect, which no pool accepts. */
export function hasPassingTaint(node: Node): boolean {
  return (node.spec?.taints ?? []).some(({ key, effect }) => PASSING_TAINTS.has(key) && HARD_EFFECTS.includes(effect));
}

/**
 * Whether every pod that tolerates all of `taints` tolerates `taint`: the same one is among them. A toleration names key, value
 * and effect, so each of these counts; a value that is absent is the empty one.
 */
export function isAmong(taint: Taint, taints: readonly Taint[]): boolean {
  return taints.some(
    ({ key, value = '', effect }) => key === taint.key && value === (taint.value ?? '') && effect === taint.effect,
  );
}

function isDedicating({ key, effect }: Taint): boolean {
  return HARD_EFFECTS.includes(effect) && !PASSING_TAINTS.has(key);
}
