import { monotonic } from '../kube/clock.ts';

export interface DeletionBreakerOptions {
  windowMs?: number;
  monotonic?: () => number;
  /** It was open when a former process ended: nobody has looked since. */
  open?: boolean;
  /** What was permitted before in this process, by UID and since when in monotonic ms; goes on here. Default: nothing. */
  permits?: Map<string, number>;
}

/**
 * Invariant I2: deletions of member pods whose host pod merely cannot be found are few. More than max(5, 10 % of our
 * pods) of them within five minutes means that something is wrong with what we see, not with the pods: the breaker
 * opens and stays open until an operator confirms the deletions that were held back.
 */
export class DeletionBreaker {
  readonly #windowMs: number;
  readonly #monotonic: () => number;
  /** Member pods, by UID, that may go, and since when. */
  readonly #permits: Map<string, number>;
  /** Confirmed ones do not count as many. */
  readonly #confirmed = new Set<string>();
  #open: boolean;

  constructor(options: DeletionBreakerOptions = {}) {
    this.#windowMs = options.windowMs ?? 5 * 60_000;
    this.#monotonic = options.monotonic ?? monotonic;
    this.#open = options.open ?? false;
    this.#permits = options.permits ?? new Map<string, number>();
  }

  get open(): boolean {
    return this.#open;
  }

  /** Asks for the deletion of one more member pod among `total` of the virtual node; false once the breaker is open. */
  permit(uid: string, total: number): boolean {
    const now = this.#monotonic();
    if (this.#confirmed.has(uid)) return true;
    if (this.#open) return false;
    for (const [one, at] of this.#permits) if (now - at >= this.#windowMs) this.#permits.delete(one);
    if (this.#permits.has(uid)) return true;
    if (this.#permits.size >= Math.max(5, Math.floor(total / 10))) {
      this.#open = true;
      return false;
    }
    this.#permits.set(uid, now);
    return true;
  }

  /** Whether an operator confirmed the deletion of this member pod. */
  isConfirmed(uid: string): boolean {
    return this.#confirmed.has(uid);
  }

  /** Whether the deletion of this member pod was permitted. */
  redeem(uid: string): boolean {
    return this.#confirmed.has(uid) || (!this.#open && this.#permits.has(uid));
  }

  /** An operator has looked and says that these deletions, by UID of the member pod, are meant. Closes the breaker. */
  confirm(uids: Iterable<string>): void {
    for (const uid of uids) this.#confirmed.add(uid);
    this.#open = false;
    this.#permits.clear();
  }

  /** The member pod is gone. */
  forget(uid: string): void {
    this.#confirmed.delete(uid);
  }
}
