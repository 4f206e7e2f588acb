import { OPEN_CREATION_MS } from './unanswered-creation.ts';

/** Creations of one virtual node that the member may carry out still, also of pods that are gone from the host by now. */
export class OpenCreations {
  readonly #monotonic: () => number;
  /** When requests without an answer yet were begun, in ms, by UID of the host pod. */
  readonly #underWay = new Map<string, number>();
  /** Until when others may be carried out, in ms. */
  readonly #until = new Map<string, number>();

  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  begun(uid: string): void {
    this.#underWay.set(uid, this.#monotonic());
  }

  /** `sent`: what is known of the request; left out if there was none. */
  answered(uid: string, sent: 'carried-out' | 'refused' | { openMs: number } | undefined): void {
    this.#underWay.delete(uid);
    // Of an earlier one nothing can come any more: the name is taken.
    if (sent === 'carried-out') this.#until.delete(uid);
    if (typeof sent === 'object')
      this.#until.set(uid, Math.max(this.#until.get(uid) ?? 0, this.#monotonic() + sent.openMs));
  }

  /** How long it takes until nothing can come of any of them; 0: nothing can. */
  get openMs(): number {
    const now = this.#monotonic();
    let last = 0;
    for (const begun of this.#underWay.values()) last = Math.max(last, begun + OPEN_CREATION_MS - now);
    for (const [uid, until] of this.#until) {
      if (until <= now) this.#until.delete(uid);
      else last = Math.max(last, until - now);
    }
    return last;
  }
}
