import { cpus } from 'node:os';
import type { Usage } from '../hack/process-table.ts';

/**
 * Tells how much of the machine was used by programs that have nothing to do with the bench since this was made: when
 * it is not close to 0, figures are worse than they need be, and differ from turn to turn.
 */
export class Disturbance {
  readonly #own: () => Iterable<Usage | undefined>;
  readonly #machineBefore = busySeconds();
  readonly #ownBefore: number;
  readonly #began = performance.now();

  /** `own`: what every process of the bench has used so far; the same processes each time it is asked. */
  constructor(own: () => Iterable<Usage | undefined>) {
    this.#own = own;
    this.#ownBefore = this.#ownSeconds();
  }

  /** Share of all cores, 0 to 1. */
  share(): number {
    const capacity = (cpus().length * (performance.now() - this.#began)) / 1000;
    const others = busySeconds() - this.#machineBefore - (this.#ownSeconds() - this.#ownBefore);
    return Math.max(0, others / capacity);
  }

  #ownSeconds(): number {
    const { user, system } = process.cpuUsage();
    let sum = (user + system) / 1e6;
    for (const usage of this.#own()) sum += usage?.cpuSeconds ?? 0;
    return sum;
  }
}

/** What all cores together have worked since the machine started. */
function busySeconds(): number {
  let milliseconds = 0;
  for (const { times } of cpus()) milliseconds += times.user + times.nice + times.sys + times.irq;
  return milliseconds / 1000;
}
