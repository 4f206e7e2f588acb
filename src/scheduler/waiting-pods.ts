import type { Logger } from 'pino';
import { GROUP } from '../api/marks.ts';
import type { Pod } from '../kube/core-v1.ts';
import type { KubeClient } from '../kube/client.ts';
import { describeError } from '../kube/errors.ts';
import { NODES } from '../kube/resource.ts';
import { pause } from '../kube/timers.ts';
import { timestamp } from '../kube/timestamps.ts';
import { patch } from '../kube/verbs.ts';
import { AutoResetEvent } from '../kube/auto-reset-event.ts';

/** On one virtual node: when waiting pods were worth another look last. Writing it makes schedulers take that look. */
const LOOK_AGAIN_ANNOTATION = `${GROUP}/look-again`;

/** Between two such writes at least, and at most while pods wait, in ms. */
const SOONEST_MS = 2_000;
const LATEST_MS = 20_000;
/** A pod that was not asked about for so long does not wait for us any more. */
const FORGET_MS = 15 * 60_000;

export interface WaitingPodsOptions {
  host: KubeClient;
  /** Any virtual node; undefined while there is none. */
  virtualNode: () => string | undefined;
  logger: Logger;
  /** Wall clock in ms, for what is written. */
  clock: () => number;
  /** In ms. */
  monotonic: () => number;
}

/**
 * Pods that no node may take because of an answer from here. kube-scheduler looks at such a pod again only after an event
 * of the host, or five minutes; but room in a member, an edited policy, or a tier that may be tried by now are no events of
 * the host. So one annotation of one virtual node is changed when something may have changed, and every 20 s while pods wait.
 */
export class WaitingPods {
  readonly #o: WaitingPodsOptions;
  readonly #waiting = new Map<string, number>();
  readonly #wakeUp = new AutoResetEvent();
  /** Pods wait that somebody else was asked about. */
  #othersWait = false;
  #due = Number.POSITIVE_INFINITY;

  constructor(options: WaitingPodsOptions) {
    this.#o = options;
  }

  get size(): number {
    return this.#waiting.size;
  }

  answered(pod: Pod, placed: boolean): void {
    const { uid = '' } = pod.metadata;
    if (placed) {
      this.#waiting.delete(uid);
      return;
    }
    const now = this.#o.monotonic();
    if (this.#waiting.size === 0) this.resyncIn(LATEST_MS);
    this.#waiting.set(uid, now);
  }

  /** The pod is bound, or gone. */
  settled(pod: Pod): void {
    this.#waiting.delete(pod.metadata.uid ?? '');
  }

  /** Pods were refused before this process was there to be asked; once they are asked about again they are known. */
  takeOver(): void {
    this.#othersWait = true;
    this.resyncIn(0);
  }

  /** Something changed that may make room for pods which wait, or will in so many ms. */
  resyncIn(ms: number): void {
    const at = this.#o.monotonic() + ms;
    if (at >= this.#due) return;
    this.#due = at;
    this.#wakeUp.set();
  }

  async run(signal: AbortSignal): Promise<void> {
    const { monotonic } = this.#o;
    while (!signal.aborted) {
      const rest = this.#due - monotonic();
      if (rest > 0) {
        await this.#wakeUp.wait(signal, Math.min(rest, LATEST_MS));
        continue;
      }
      this.#due = Number.POSITIVE_INFINITY;
      this.#forgetOld();
      if (this.#waiting.size === 0 && !this.#othersWait) continue;
      if (await this.#resync(signal)) this.#othersWait = false;
      this.resyncIn(LATEST_MS);
      await pause(SOONEST_MS, signal);
    }
  }

  #forgetOld(): void {
    const now = this.#o.monotonic();
    for (const [uid, at] of this.#waiting) if (now - at > FORGET_MS) this.#waiting.delete(uid);
  }

  /** Whether they were told, or there is nobody whose pods could wait for us. */
  async #resync(signal: AbortSignal): Promise<boolean> {
    const { host, virtualNode, clock, logger } = this.#o;
    const name = virtualNode();
    if (name === undefined) return true;
    const annotations = { [LOOK_AGAIN_ANNOTATION]: timestamp(clock()) };
    try {
      await patch(host, NODES, { name }, { metadata: { annotations } }, { type: 'merge' }, { signal });
      return true;
    } catch (error) {
      if (!signal.aborted)
        logger.warn({ node: name }, `schedulers could not be told to look again: ${describeError(error)}`);
      return false;
    }
  }
}
