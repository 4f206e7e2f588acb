import { AutoResetEvent } from '../kube/auto-reset-event.ts';
import type { Pod } from '../kube/core-v1.ts';
import { pause } from '../kube/timers.ts';

/** How often it is looked whether one has left, in ms. */
const LOOK_MS = 1_000;

export interface UnseenPodsOptions {
  /** Whether the watch has shown it. */
  isSeen: (pod: Pod) => boolean;
  /** Whether it is deleted, by what the watch has shown since. */
  hasLeft: (pod: Pod) => boolean;
  /** Called with one that has left, of which no event will tell. */
  left: (pod: Pod) => void;
}

/**
 * Pods that a scheduler asked about before the watch has shown them. One that is deleted while the watch is behind, as when the way
 * to the host is cut, is never shown: nobody else would take back what is held for it.
 */
export class UnseenPods {
  readonly #o: UnseenPodsOptions;
  /** By UID. */
  readonly #pods = new Map<string, Pod>();
  readonly #came = new AutoResetEvent();

  constructor(options: UnseenPodsOptions) {
    this.#o = options;
  }

  asked(pod: Pod): void {
    if (this.#o.isSeen(pod)) return;
    this.#pods.set(pod.metadata.uid ?? '', pod);
    this.#came.set();
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      if (this.#pods.size === 0) await this.#came.wait(signal);
      await pause(LOOK_MS, signal);
      this.#look();
    }
  }

  #look(): void {
    const { isSeen, hasLeft, left } = this.#o;
    for (const [uid, pod] of this.#pods) {
      const wasShown = isSeen(pod);
      if (!wasShown && !hasLeft(pod)) continue;
      this.#pods.delete(uid);
      if (!wasShown) left(pod);
    }
  }
}
