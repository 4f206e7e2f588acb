import type { Pod } from '../kube/core-v1.ts';
import { controllerOrOwnKeyOf } from '../kube/owner-references.ts';

/** Longest wait for a successor to appear, and then to be bound (ms). */
const WAIT_MS = 60_000;

/** Moved pods whose successors are not bound yet; their capacity must not be promised twice. */
export class MovesUnderWay {
  readonly #monotonic: () => number;
  /** By key of the controller and UID of the pod that makes way, oldest first: the deadline for its successor to appear (monotonic ms). */
  readonly #awaited = new Map<string, Map<string, number>>();
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
      for (const [uid, until] of untils) if (until <= now) untils.delete(uid);
      if (untils.size === 0) this.#awaited.delete(controller);
      count += untils.size;
    }
    return count;
  }

  /** The same without the place that an earlier try to move the pod, which was not answered, keeps for its successor. */
  countBut(pod: Pod): number {
    const { count } = this;
    return this.#awaited.get(controllerOrOwnKeyOf(pod))?.has(pod.metadata.uid ?? '') === true ? count - 1 : count;
  }

  /**
   * The pod is about to be evicted or released: to be called before that is sent, as its successor may be seen, or others be moved, before the
   * answer comes. Returns what takes it back when the host refuses.
   */
  moving(pod: Pod): () => void {
    const controller = controllerOrOwnKeyOf(pod);
    const { uid = '' } = pod.metadata;
    const untils = this.#awaited.get(controller) ?? new Map<string, number>();
    const before = untils.get(uid);
    untils.delete(uid);
    this.#awaited.set(controller, untils.set(uid, this.#monotonic() + WAIT_MS));
    return () => {
      const now = this.#awaited.get(controller);
      if (now?.delete(uid) !== true) return;
      if (before !== undefined) now.set(uid, before);
      if (now.size === 0) this.#awaited.delete(controller);
    };
  }

  /** Whether it came in the place of another one, and its room is kept for it until it has a node. */
  isPlacing({ metadata: { uid = '' } }: Pod): boolean {
    return (this.#placing.get(uid) ?? 0) > this.#monotonic();
  }

  /** A new pod was seen. */
  came(pod: Pod): void {
    const controller = controllerOrOwnKeyOf(pod);
    const untils = this.#awaited.get(controller);
    const [first] = untils?.keys() ?? [];
    if (untils === undefined || first === undefined) return;
    untils.delete(first);
    if (untils.size === 0) this.#awaited.delete(controller);
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
