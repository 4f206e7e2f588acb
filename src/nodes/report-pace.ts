import { monotonic } from '../kube/clock.ts';

/** Lastingly, of all virtual nodes of a process: a hundred kubelets, which look at their status every 10 s, write no more. */
const REPORT_MS = 100;
/** Twenty nodes that change all the time, each reported every 2 s, do not wait. */
const AHEAD_MS = 2_000;

/**
 * How fast the room behind virtual nodes is told to the host. Where so many of them change all the time that it would be more, each rests
 * after its report until those before it are paid for: all of them have their turns, and one that has been quiet is told at once.
 * In any time, `n` nodes write at most `n` reports and those of {@link AHEAD_MS} more than the rate says.
 */
export class ReportPace {
  readonly #now: () => number;
  /** Until when what was reported is enough, by the lasting rate. */
  #paid = 0;

  /** `now`: monotonic, in ms. */
  constructor(now: () => number = monotonic) {
    this.#now = now;
  }

  /** A node is reported now for its room alone. Answers from when on, in monotonic ms, it may be again. */
  wrote(): number {
    this.#paid = Math.max(this.#now(), this.#paid) + REPORT_MS;
    return this.#paid - AHEAD_MS;
  }
}
