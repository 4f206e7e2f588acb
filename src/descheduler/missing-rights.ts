import { LRUCache } from 'lru-cache';
import { describeError } from '../kube/errors.ts';
import { atMost } from '../kube/lru-limit.ts';
import type { MovingOptions } from './moving-options.ts';
import type { Held } from './wanted-move.ts';

/** Delay after a 403, for the whole namespace (ms). */
const NO_RIGHT_MS = 60_000;

export interface MissingRightsOptions extends Pick<MovingOptions, 'logger' | 'monotonic'> {
  /** What cannot be done, and what would grant it, for the log. */
  logged: string;
  /** The same for an Event. */
  why: string;
}

/** Where the host refuses what a move needs: one refusal speaks for all pods of its namespace, as rights may differ. */
export class MissingRights {
  readonly #o: MissingRightsOptions;
  /** By namespace, when to ask again (monotonic ms). */
  readonly #until = new LRUCache<string, number>(atMost());

  constructor(options: MissingRightsOptions) {
    this.#o = options;
  }

  /** Whether it was refused a moment ago. */
  in(namespace: string): boolean {
    return (this.#until.get(namespace) ?? 0) > this.#o.monotonic();
  }

  note(namespace: string, error: unknown): void {
    const { logger, monotonic, logged } = this.#o;
    if (!this.#until.has(namespace)) logger.warn({ namespace }, `${logged}: ${describeError(error)}`);
    this.#until.set(namespace, monotonic() + NO_RIGHT_MS);
  }

  /** What holds every workload of the namespace. */
  held(namespace: string): Held {
    const forMs = (this.#until.get(namespace) ?? 0) - this.#o.monotonic();
    return { why: this.#o.why, forMs, ofWorkload: true };
  }
}
