import type { Pod } from '../kube/core-v1.ts';
import { controllerOf } from '../kube/owner-references.ts';

/** Longest wait for a successor to appear, and then to be bound (ms). */
const WAIT_MS = 60_000;

/** Moved pods whose successors are not bound yet; their capacity must not be promised twice. */
export class MovesUnderWay {
  readonly #monotonic: () => number;
  /** By controller UID, a deadline for each successor that has not appeared yet (monotonic ms). */
  readonly #awaited = new Map<string, number[]>();
  /** By pod UID, the deadline for a successor to be bound (monotonic ms). */
  readonly #placing = new Map<string, number>();

  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /** Of all workloads together, as they compete for the same capacity. */
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

  /** The pod was evicted or released. */
  moved(pod: Pod): void {
    const controller = controllerUidOf(pod);
    this.#awaited.set(controller, [...(this.#awaited.get(controller) ?? []), this.#monotonic() + WAIT_MS]);
  }

  /** A new pod was seen. */
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
