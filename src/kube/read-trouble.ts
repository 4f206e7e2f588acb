import { describeError, isOutage } from './errors.ts';
import { LimitError } from './limit-error.ts';

/** A refusal that lasts longer than this is no passing one, nor what a restored cluster needs to be believed again, in ms. */
const LASTING_MS = 120_000;

/** What is in the way of reading a collection at the moment, in words for people. */
export class ReadTrouble {
  readonly #monotonic: () => number;
  #problem: string | undefined;
  #limit: string | undefined;
  /** Since when all errors were refusals. */
  #refusedSince: number | undefined;

  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /** Why it cannot be read now; undefined while all is well. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** The same of a refusal that has lasted for two minutes. Outages do not count: whether a cluster answers at all is told elsewhere. */
  get lastingRefusal(): string | undefined {
    const since = this.#refusedSince;
    return since === undefined || this.#monotonic() - since < LASTING_MS ? undefined : this.#problem;
  }

  /** Which limit it has met; undefined while there is room. */
  get limit(): string | undefined {
    return this.#limit;
  }

  /** Returns the words for the error. Nobody needs to hear of a `passing` one. */
  note(error: unknown, passing: boolean): string {
    this.#limit = error instanceof LimitError ? error.message : undefined;
    const words = describeError(error);
    if (passing) return words;
    this.#problem = words;
    this.#refusedSince = isOutage(error) ? undefined : (this.#refusedSince ?? this.#monotonic());
    return words;
  }

  over(): void {
    this.#problem = undefined;
    this.#limit = undefined;
    this.#refusedSince = undefined;
  }
}
