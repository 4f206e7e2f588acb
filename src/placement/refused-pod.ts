import type { ContainerStatus, Pod } from '../kube/core-v1.ts';
import { timestamp } from '../kube/timestamps.ts';
import type { Avoided } from './avoided.ts';

/**
 * So long after a refusal began to count nothing is done about the pod, in ms: a quota that is free again in a moment takes
 * it at the next try, and every replica knows of the refusal by then, so that the next pod goes elsewhere.
 */
export const PATIENCE_MS = 10_000;
/** Pods of one workload that make way at the same time, those without a place counted in. */
const AT_ONCE = 3;
/** For the pod that comes instead to find its place while the member is still avoided, in ms. */
export const ENOUGH_LEFT_MS = 15_000;

/** A pod that a member refuses, of a workload whose policy says `onRefusal: TryNext`. Times are wall clock in ms. */
export interface RefusedPod {
  readonly uid: string;
  readonly cluster: string;
  readonly createdAt: number;
  /** From when on the refusal counts. */
  readonly at: number;
}

export interface RefusedPodsFacts {
  readonly refused: readonly RefusedPod[];
  readonly avoided: readonly Avoided[];
  /** Pods of the workload that have no node, or made way and are not gone: another place has to be found for these first. */
  readonly underWay: number;
  /** Wall clock in ms. */
  readonly now: number;
}

/** Which pods may make way now, the longest refused first, and how many of them. */
export interface RefusedPodsStep {
  readonly ready: readonly string[];
  readonly atMost: number;
}

/**
 * Pods that may make way for others. Not before their patience is over; only while the member is avoided, so that the next
 * pod goes elsewhere; and none that came when the member was avoided already: it went there in spite of that, by the word of
 * somebody who does not ask here, and so would the next one, for ever.
 */
export function refusedPodsStep({ refused, avoided, underWay, now }: RefusedPodsFacts): RefusedPodsStep {
  const ready = refused
    .filter(({ at }) => at + PATIENCE_MS <= now)
    .filter(({ cluster, createdAt }) => {
      const entry = avoided.find((one) => one.cluster === cluster);
      return entry !== undefined && entry.until - now >= ENOUGH_LEFT_MS && createdAt < entry.since + PATIENCE_MS;
    })
    .toSorted((a, b) => a.at - b.at || (a.uid < b.uid ? -1 : 1))
    .map(({ uid }) => uid);
  return { ready, atMost: Math.max(0, AT_ONCE - underWay) };
}

/** Whether anything of the pod may have run, or its end has begun. What is not said counts as if it had. */
export function hasBegun({ metadata, status }: Pod): boolean {
  if (metadata.deletionTimestamp !== undefined || status?.phase !== 'Pending' || status.startTime !== undefined) {
    return true;
  }
  const { initContainerStatuses = [], containerStatuses = [], ephemeralContainerStatuses = [] } = status;
  return [...initContainerStatuses, ...containerStatuses, ...ephemeralContainerStatuses].some(containerHasBegun);
}

function containerHasBegun({ state, lastState, restartCount, started }: ContainerStatus): boolean {
  if (restartCount > 0 || started === true) return true;
  return [state?.running, state?.terminated, lastState?.terminated].some((one) => one !== undefined);
}

/**
 * The pod that would come instead of one that makes way, as old as it is when the member is about to be tried again. By then
 * it needs another place: it begins to wait for later tiers anew (`tryNextAfter`), and would go back where it was refused.
 */
export function successorOf(pod: Pod, avoidedUntil: number, now: number): Pod {
  const { nodeName: _, ...spec } = pod.spec;
  const waits = Math.max(0, avoidedUntil - now - ENOUGH_LEFT_MS);
  return { ...pod, metadata: { ...pod.metadata, creationTimestamp: timestamp(now - waits) }, spec };
}
