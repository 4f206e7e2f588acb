import type { KubeObject } from '../kube/object.ts';
import type { Resource } from '../kube/resource.ts';

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

/** Why no move for such an object begins while those of its kind cannot be followed, as `problem` says. */
export function whyNotFollowed({ kind }: Resource, problem: string | undefined): string | undefined {
  return problem === undefined
    ? undefined
    : `it is not known whether it is still wanted, as ${kind}s cannot be followed now (${problem})`;
}

/** What is remembered of orders by their keys, of each as long as it asks for the same; may be lost. */
export class OrderMemory<T> {
  readonly #known = new Map<string, { readonly asked: KubeObject; readonly memory: T }>();

  get(key: string): T | undefined {
    return this.#known.get(key)?.memory;
  }

  /** `begin`: what is remembered of one that asks for it since now. */
  of(key: string, asked: KubeObject, begin: () => T): T {
    const known = this.#known.get(key);
    if (known !== undefined && isSameOrder(known.asked, asked)) return known.memory;
    const memory = begin();
    this.#known.set(key, { asked: { metadata: asked.metadata }, memory });
    return memory;
  }

  forget(key: string): undefined {
    this.#known.delete(key);
  }
}
