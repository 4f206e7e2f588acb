import { GROUP } from '../api/marks.ts';
import type { KubeObject } from '../kube/object.ts';

/** What the ReplicaSet controller reads: of equally ready pods those with a lower number go first. Absent is 0. */
export const DELETION_COST_ANNOTATION = 'controller.kubernetes.io/pod-deletion-cost';
/** The value that Spillway wrote there; any other value is somebody else's. */
export const OWN_COST_ANNOTATION = `${GROUP}/deletion-cost`;

/** The deletion cost of a pod; foreign when somebody else chose it, which is then left alone. */
export function deletionCostOf(pod: KubeObject): { cost: number | undefined; foreign: boolean } {
  const annotations = pod.metadata.annotations ?? {};
  const text = annotations[DELETION_COST_ANNOTATION];
  if (text === undefined) return { cost: undefined, foreign: false };
  if (text !== annotations[OWN_COST_ANNOTATION]) return { cost: undefined, foreign: true };
  return { cost: Number(text), foreign: false };
}

/** The annotations that give a pod a cost of ours. */
export function costAnnotations(cost: number): Record<string, string> {
  return { [DELETION_COST_ANNOTATION]: String(cost), [OWN_COST_ANNOTATION]: String(cost) };
}

/** A pod whose cost is ours to choose. */
export interface CostedPod {
  readonly uid: string;
  readonly cluster: string;
  /** What we wrote; undefined (which counts as 0) when nothing. */
  readonly cost: number | undefined;
}

/** Between two bands, so that others fit in later without a change of those that are there. */
const GAP = 1_000;
const LIMIT = 2 ** 31 - 1;
const MAX_BANDS = 2 ** 20;

interface Place {
  readonly pod: CostedPod;
  /** Number of the run of pods of one cluster it belongs to; pods of a band may have the same cost. */
  readonly band: number;
}

/**
 * The costs that have to change so that pods go in the wanted order, with as few writes as possible: pods of one cluster
 * stand in for each other, as many as possible keep what they have, and the others get a number between theirs.
 *
 * @param order the cluster of each pod, the first to go first (see `removalOrder`); as many of each as there are pods.
 */
export function deletionCosts(order: readonly string[], pods: readonly CostedPod[]): Map<string, number> {
  const places = placesOf(order, pods);
  const costs = fillIn(places, keepMost(places)) ?? renumber(places);
  const changes = new Map<string, number>();
  for (const [index, { pod }] of places.entries()) {
    const cost = costs[index] ?? 0;
    if (cost !== (pod.cost ?? 0)) changes.set(pod.uid, cost);
  }
  return changes;
}

/**
 * Gives the pods of each cluster its places, those with the lowest cost the first ones. Pods that have none yet are mostly
 * new, so they take the first places and the others need not move up; only those of the last band are fine without any.
 */
function placesOf(order: readonly string[], pods: readonly CostedPod[]): Place[] {
  const bands = bandsOf(order);
  const [lastCluster, lastBand] = [order.at(-1), bands.at(-1)];
  const lastSize = bands.filter((band) => band === lastBand).length;
  const byCluster = new Map<string, CostedPod[]>();
  for (const pod of pods.toSorted((a, b) => (a.cost ?? 0) - (b.cost ?? 0) || (a.uid < b.uid ? -1 : 1))) {
    byCluster.set(pod.cluster, [...(byCluster.get(pod.cluster) ?? []), pod]);
  }
  const waiting = new Map<string, CostedPod[]>();
  for (const [cluster, own] of byCluster) {
    const fresh = own.filter(({ cost }) => cost === undefined);
    const fine = cluster === lastCluster ? fresh.slice(0, lastSize) : [];
    const known = own.filter(({ cost }) => cost !== undefined);
    waiting.set(cluster, [...fresh.slice(fine.length), ...known, ...fine].toReversed());
  }
  return order.flatMap((cluster, index) => {
    const pod = waiting.get(cluster)?.pop();
    return pod === undefined ? [] : [{ pod, band: bands[index] ?? 0 }];
  });
}

/** The number of the run of equal names that each belongs to. */
function bandsOf(order: readonly string[]): number[] {
  let band = 0;
  return order.map((cluster, index) => (index > 0 && cluster !== order[index - 1] ? (band += 1) : band));
}

/**
 * Indexes of the most pods that can stay as they are: costs rise from band to band and do not fall within one. That is the
 * longest non-decreasing sequence once equal costs of different bands are made to fall.
 */
function keepMost(places: readonly Place[]): Set<number> {
  const keys = places.map(({ pod, band }) => (pod.cost ?? 0) * MAX_BANDS - band);
  const key = (index: number): number => keys[index] ?? 0;
  const ends: number[] = [];
  const before: (number | undefined)[] = [];
  for (const index of keys.keys()) {
    let [low, high] = [0, ends.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (key(ends[middle] ?? 0) <= key(index)) low = middle + 1;
      else high = middle;
    }
    before[index] = low === 0 ? undefined : ends[low - 1];
    ends[low] = index;
  }
  const kept = new Set<number>();
  for (let index = ends.at(-1); index !== undefined; index = before[index]) kept.add(index);
  return kept;
}

/** The cost of every place, kept or new; undefined where there is no number left between two that are kept. */
function fillIn(places: readonly Place[], kept: ReadonlySet<number>): number[] | undefined {
  const costs = places.map(({ pod }) => pod.cost ?? 0);
  for (let start = 0; start < places.length; start += 1) {
    if (kept.has(start)) continue;
    let end = start;
    while (end < places.length && !kept.has(end)) end += 1;
    const [left, right] = [places[start - 1], places[end]];
    const fresh = new Set(places.slice(start, end).map(({ band }) => band));
    if (left !== undefined) fresh.delete(left.band);
    if (right !== undefined) fresh.delete(right.band);
    const values = between(costs[start - 1], costs[end], fresh.size);
    if (values === undefined) return undefined;
    const byBand = new Map([...fresh].map((band, index) => [band, values[index] ?? 0]));
    for (let index = start; index < end; index += 1) {
      const band = places[index]?.band ?? 0;
      const neighbour = band === left?.band ? costs[start - 1] : costs[end];
      costs[index] = byBand.get(band) ?? neighbour ?? 0;
    }
    start = end;
  }
  return costs;
}

/** So many rising numbers strictly between two; outside of one where the other is missing. */
function between(low: number | undefined, high: number | undefined, count: number): number[] | undefined {
  const numbers = Array.from({ length: count }, (_, index) => index + 1);
  if (low === undefined && high === undefined) return numbers.map((number) => (number - count) * GAP);
  if (low === undefined) return within(numbers.map((number) => (high ?? 0) - (count - number + 1) * GAP));
  if (high === undefined) return within(numbers.map((number) => low + number * GAP));
  const step = Math.floor((high - low) / (count + 1));
  return step < 1 && count > 0 ? undefined : numbers.map((number) => low + number * step);
}

function within(numbers: number[]): number[] | undefined {
  return numbers.every((number) => Math.abs(number) <= LIMIT) ? numbers : undefined;
}

/** New costs for all, the last band at 0. */
function renumber(places: readonly Place[]): number[] {
  const last = places.at(-1)?.band ?? 0;
  return places.map(({ band }) => (band - last) * GAP);
}
