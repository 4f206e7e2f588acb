import type { Pod } from '../kube/core-v1.ts';
import { conditionOf, isReady } from '../kube/conditions.ts';
import { DELETION_COST_ANNOTATION, deletionCostOf, FIRST_TO_GO } from '../placement/deletion-cost.ts';
import type { OnHeal } from './purge-mode.ts';

/** Costs are 32-bit numbers for the ReplicaSet controller. */
const HIGHEST = 2 ** 31 - 1;

/**
 * The deletion costs by which a ReplicaSet that has the original again, and so one pod too many, ends the other one, if that is Ready; undefined where
 * somebody else sets the original's. `replacement`: none, where it is the first to go already, or where somebody else sets it. It is the lowest there is, not one less
 * than others have: whoever keeps costs in order may write those at the same time.
 */
export interface HealCosts {
  readonly original: number;
  readonly replacement: number | undefined;
}

/** `others`: the rest of the ReplicaSet's pods. */
export function healCosts(original: Pod, replacement: Pod | undefined, others: readonly Pod[]): HealCosts | undefined {
  if (deletionCostOf(original).foreign) return undefined;
  const own = replacement === undefined ? [] : [costOf(replacement)];
  const isSaid =
    replacement === undefined || deletionCostOf(replacement).foreign || costOf(replacement) === FIRST_TO_GO;
  return {
    original: Math.min(HIGHEST, Math.max(0, ...others.map(costOf), ...own) + 1),
    replacement: isSaid ? undefined : FIRST_TO_GO,
  };
}

/** Whether it is the original that stays, which is Ready. Both as they are in the host, whole. */
export function originalStays(onHeal: OnHeal, original: Pod, replacement: Pod | undefined): boolean {
  if (replacement === undefined || !isReady(replacement)) return true;
  return onHeal === 'KeepOriginal' || readySince(original) <= readySince(replacement);
}

/**
 * Since when its containers have been ready without a break, wall clock of the host in ms. That it was out of reach meanwhile, and what controllers
 * of the host wait for, does not count. The two are in clusters whose clocks may differ: of what its member says only how long it took from the start of the pod
 * until they were ready counts, from when the host gave it its node. What it waited for a node in its member is left out; so an original that ran
 * through was always ready before another one was made in its place.
 */
function readySince(pod: Pod): number {
  const containers = conditionOf(pod, 'ContainersReady');
  const condition = containers?.status === 'True' ? containers : conditionOf(pod, 'Ready');
  const ready = Date.parse(condition?.lastTransitionTime ?? '');
  if (Number.isNaN(ready)) return Number.POSITIVE_INFINITY;
  const { metadata, status } = pod;
  const bound = Date.parse(conditionOf(pod, 'PodScheduled')?.lastTransitionTime ?? metadata.creationTimestamp ?? '');
  const started = Date.parse(status?.startTime ?? '');
  return Number.isNaN(bound) || Number.isNaN(started) ? ready : bound + Math.max(0, ready - started);
}

/** As the ReplicaSet controller reads it: what is no number is none. */
function costOf({ metadata }: Pod): number {
  const cost = Number(metadata.annotations?.[DELETION_COST_ANNOTATION] ?? 0);
  return Number.isInteger(cost) ? Math.min(HIGHEST, Math.max(FIRST_TO_GO, cost)) : 0;
}
