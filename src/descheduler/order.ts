import type { KubeObject } from '../kube/object.ts';

/** An object by which people order moves, as far as its end is concerned. */
export interface Order extends KubeObject {
  readonly spec: { readonly ttlSecondsAfterFinished?: number };
  readonly status?: { readonly observedGeneration?: number; readonly finishTime?: string };
}

export const NO_SUCH_WORKLOAD = 'there is no such workload, or its kind is not one whose pods go where policies say';

/** The same order still: neither deleted, made anew nor edited. */
export function isSameOrder<T extends KubeObject>(asked: KubeObject, now: T | undefined): now is T {
  return now?.metadata.uid === asked.metadata.uid && now?.metadata.generation === asked.metadata.generation;
}

/** It is finished, as it is asked for now: an edit begins it anew. */
export function isOver({ metadata, status }: Order): boolean {
  return status?.observedGeneration === (metadata.generation ?? 0) && status.finishTime !== undefined;
}

/** Until it is to be deleted, in ms; undefined when it stays. `now` in ms. */
export function deletedInMs(order: Order, now: number): number | undefined {
  const { ttlSecondsAfterFinished: ttl } = order.spec;
  const finishTime = order.status?.finishTime;
  if (ttl === undefined || finishTime === undefined || !isOver(order)) return undefined;
  return Math.max(0, Date.parse(finishTime) + ttl * 1_000 - now);
}
