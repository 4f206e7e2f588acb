import type { Pod } from '../kube/core-v1.ts';
import { controllerOf } from '../kube/owner-references.ts';

/** A pod that has not come, or has found no place, by then is not waited for any more, in ms. */
const WAIT_MS = 60_000;

/** Pods that were moved and whose successors have no place yet: the room that these need is not given away twice. */
export class MovesUnderWay {
  readonly #monotonic: () => number;
  /** By UID of the controller, until when each of the pods that it is to make is waited for. */
  readonly #awaited = new Map<string, number[]>();
  /** By UID, until when a pod that came is waited for to be bound. */
  readonly #placing = new Map<string, number>();

  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /** Those of all workloads: pods take room from each other. */
  get count(): number {
    const now = this.#monotonic();
    for (const [uid, until] of this.#placing) if (until <= now) this.#placing.delete(uid);
    let count = this.#placing.size;
    for (const [controller, untils] of this.#awaited) {
      const left = untils.filter((until) => until > now);
      if (left.length === 0) this.#awaited.delete(controller);
      else this.#awaited.set(controller, left);
      count += left.length;
    }
    return count;
  }

  /** The pod is on its way out. */
  moved(pod: Pod): void {
    const controller = controllerUidOf(pod);
    this.#awaited.set(controller, [...(this.#awaited.get(controller) ?? []), this.#monotonic() + WAIT_MS]);
  }

  /** A pod that was not there before. */
  came(pod: Pod): void {
    const controller = controllerUidOf(pod);
    const [first, ...others] = this.#awaited.get(controller) ?? [];
    if (first === undefined) return;
    if (others.length === 0) this.#awaited.delete(controller);
    else this.#awaited.set(controller, others);
    this.#placing.set(pod.metadata.uid ?? '', this.#monotonic() + WAIT_MS);
    this.seen(pod);
  }

  seen({ metadata: { uid = '' }, spec }: Pod): void {
    if (spec.nodeName !== undefined) this.#placing.delete(uid);
  }

  gone({ metadata: { uid = '' } }: Pod): void {
    this.#placing.delete(uid);
  }
}

function controllerUidOf(pod: Pod): string {
  return controllerOf(pod)?.uid ?? pod.metadata.uid ?? '';
}
