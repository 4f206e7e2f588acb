import { LRUCache } from 'lru-cache';
import { atMost } from '../kube/lru-limit.ts';

/** While its cause lasts it is told anew that something is held (ms): Events live for an hour, and alerts look at half of one. */
const TELL_AGAIN_MS = 20 * 60_000;

/** What was told last about pods and members, so that each cause has an Event, and another one from time to time while it lasts. */
export class ToldCauses {
  readonly #monotonic: () => number;
  readonly #told = new LRUCache<string, { cause: string; at: number }>(atMost());

  /** @param monotonic in ms. */
  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /** Whether a cause is to be told of it now, which counts as done: it is another one, or was told long ago. */
  isToBeTold(about: string, cause: string): boolean {
    const at = this.#monotonic();
    const last = this.#told.get(about);
    if (last?.cause === cause && at - last.at < TELL_AGAIN_MS) return false;
    this.#told.set(about, { cause, at });
    return true;
  }

  forget(about: string): void {
    this.#told.delete(about);
  }

  /** Forgets all but these. */
  keepOnly(isKept: (about: string) => boolean): void {
    const gone = Array.from(this.#told.keys()).filter((about) => !isKept(about));
    for (const about of gone) this.#told.delete(about);
  }
}
