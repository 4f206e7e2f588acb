import { GROUP } from '../api/marks.ts';
import type { KubeObject } from '../kube/object.ts';
import { costNumbers } from './cost-numbers.ts';
import { costPlaces } from './cost-places.ts';
import type { CostedPod } from './costed-pod.ts';

/** What the ReplicaSet controller reads: of equally ready pods those with a lower number go first. Absent is 0. */
export const DELETION_COST_ANNOTATION = 'controller.kubernetes.io/pod-deletion-cost';
/** The value that Spillway wrote there; any other value is somebody else's. */
export const OWN_COST_ANNOTATION = `${GROUP}/deletion-cost`;

/**
 * The lowest cost that the ReplicaSet controller reads. A pod has it that is to go next as another one comes back to its ReplicaSet;
 * costs by an order are all above it, so that no write of those puts another pod before it.
 */
export const FIRST_TO_GO = -(2 ** 31);

/** Whole and within 32 bits, or nearly so. */
const COST = /^(0|-?[1-9]\d{0,9})$/;

/** The deletion cost of a pod; foreign when somebody else chose it, which is then left alone. */
export function deletionCostOf(pod: KubeObject): { cost: number | undefined; foreign: boolean } {
  const annotations = pod.metadata.annotations ?? {};
  const text = annotations[DELETION_COST_ANNOTATION];
  if (text === undefined) return { cost: undefined, foreign: false };
  // What cannot be a cost of ours was written by somebody who wants it to look like one.
  if (text !== annotations[OWN_COST_ANNOTATION] || !COST.test(text)) return { cost: undefined, foreign: true };
  return { cost: Number(text), foreign: false };
}

/** The annotations that give a pod a cost of ours. */
export function costAnnotations(cost: number): Record<string, string> {
  return { [DELETION_COST_ANNOTATION]: String(cost), [OWN_COST_ANNOTATION]: String(cost) };
}

/**
 * The costs that have to change so that pods go in the wanted order, with as few writes as possible: pods of one cluster
 * stand in for each other, as many as possible keep what they have, and the others get a number between theirs. While the
 * order only follows pods that come and go, that is about one write for each that comes, wherever in the order it stands.
 *
 * @param order the cluster of each pod, the first to go first (see `removalOrder`); as many of each as there are pods.
 */
export function deletionCosts(order: readonly string[], pods: readonly CostedPod[]): Map<string, number> {
  const { places, kept } = costPlaces(order, pods);
  const costs = costNumbers(places, kept);
  const changes = new Map<string, number>();
  for (const [index, { pod }] of places.entries()) {
    const cost = costs[index] ?? 0;
    if (cost !== (pod.cost ?? 0)) changes.set(pod.uid, cost);
  }
  return changes;
}
