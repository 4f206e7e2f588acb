import { DESCHEDULER_LEASE, movesStopped, stopInWords } from '../api/moves-stopped.ts';
import type { Lease } from '../kube/lease.ts';

/** What was read longer ago may be otherwise by now, in ms: the holder of a Lease has lost it by then, and others read it every few seconds. */
const KNOWN_FOR_MS = 15_000;

/** How it is said that nobody knows; what follows is why. */
export const STOP_NOT_KNOWN = 'it is not known whether all moves are stopped';

/**
 * Whether people have stopped all moves, by an annotation of the descheduler's own Lease. Every replica reads that for the election
 * anyway, so it takes no further request or right, and the next holder knows of it before it has the Lease.
 */
export class MovesStop {
  readonly #monotonic: () => number;
  readonly #listeners = new Set<() => void>();
  #seen: { readonly uid: string | undefined; readonly said: string | undefined; readonly at: number } | undefined;

  /** @param monotonic in ms. */
  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /** The Lease as it is now. */
  seen(lease: Lease): void {
    const before = this.#seen;
    this.#seen = { uid: lease.metadata.uid, said: movesStopped(lease), at: this.#monotonic() };
    if (before?.said !== this.#seen.said) for (const listener of this.#listeners) listener();
  }

  /** Of the Lease. */
  get uid(): string | undefined {
    return this.#seen?.uid;
  }

  /** What people said when they stopped all moves; undefined: they did not, as far as is known. */
  get said(): string | undefined {
    return this.#seen?.said;
  }

  /** Why no move may begin now; undefined when one may. */
  get why(): string | undefined {
    const { said, at } = this.#seen ?? {};
    if (said !== undefined) return stopInWords(said);
    if (at !== undefined && this.#monotonic() - at < KNOWN_FOR_MS) return undefined;
    return `${STOP_NOT_KNOWN} (Lease ${DESCHEDULER_LEASE} could not be read lately)`;
  }

  /** Told when moves are stopped, and when they may go on. @returns how to end that. */
  on(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
