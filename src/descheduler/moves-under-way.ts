import type { Pod } from '../kube/core-v1.ts';
import { controllerOrOwnKeyOf } from '../kube/owner-references.ts';

/** Longest wait for a successor to appear, and then to be bound (ms). */
const WAIT_MS = 60_000;

interface Sent {
  readonly pod: Pod;
  /** Monotonic ms. */
  readonly until: number;
}

/**
 * Pods that were told to make way, until the caches must show what became of that: from then on others know by these that their successors need
 * places. And those that came instead, which have a moment to find theirs.
 */
export class MovesUnderWay {
  readonly #monotonic: () => number;
  /** By key of the controller and UID of the pod that makes way, oldest first. */
  readonly #awaited = new Map<string, Map<string, Sent>>();
  /** By pod UID, the deadline for a successor to be bound (monotonic ms). */
  readonly #placing = new Map<string, number>();

  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /** Of all workloads, as they compete for the same room. `but`: what an earlier try to move it, which was not answered, keeps is its own. */
  sent(but?: Pod): Pod[] {
    const now = this.#monotonic();
    const sent: Pod[] = [];
    for (const [controller, pods] of this.#awaited) {
      for (const [uid, { pod, until }] of pods) {
        if (until <= now) pods.delete(uid);
        else if (uid !== but?.metadata.uid) sent.push(pod);
      }
      if (pods.size === 0) this.#awaited.delete(controller);
    }
    return sent;
  }

  /**
   * The pod is about to be evicted or released: to be called before that is sent, as its successor may be seen, or others be moved, before the
   * answer comes. Returns what takes it back when the host refuses.
   */
  moving(pod: Pod): () => void {
    const controller = controllerOrOwnKeyOf(pod);
    const { uid = '' } = pod.metadata;
    const pods = this.#awaited.get(controller) ?? new Map<string, Sent>();
    const before = pods.get(uid);
    pods.delete(uid);
    this.#awaited.set(controller, pods.set(uid, { pod, until: this.#monotonic() + WAIT_MS }));
    return () => {
      const now = this.#awaited.get(controller);
      if (now?.delete(uid) !== true) return;
      if (before !== undefined) now.set(uid, before);
      if (now.size === 0) this.#awaited.delete(controller);
    };
  }

  /** Whether it came in the place of another one a moment ago, and has no node yet. */
  isPlacing({ metadata: { uid = '' } }: Pod): boolean {
    return (this.#placing.get(uid) ?? 0) > this.#monotonic();
  }

  /** A new pod was seen. */
  came(pod: Pod): void {
    const controller = controllerOrOwnKeyOf(pod);
    const sent = this.#awaited.get(controller);
    const [first] = sent?.keys() ?? [];
    if (sent === undefined || first === undefined) return;
    sent.delete(first);
    if (sent.size === 0) this.#awaited.delete(controller);
    const now = this.#monotonic();
    for (const [uid, until] of this.#placing) if (until <= now) this.#placing.delete(uid);
    this.#placing.set(pod.metadata.uid ?? '', now + WAIT_MS);
    this.seen(pod);
  }

  seen({ metadata: { uid = '' }, spec }: Pod): void {
    if (spec.nodeName !== undefined) this.#placing.delete(uid);
  }

  gone({ metadata: { uid = '' } }: Pod): void {
    this.#placing.delete(uid);
  }
}
