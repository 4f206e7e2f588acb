import { realNow } from './real-time.ts';

/** A turn that was taken: of which step, and when in simulated time, in ms. */
export interface Turned {
  readonly step: number;
  readonly at: number;
}

/** A whole history takes a second or two. So long (s) one turn takes on no machine, however much else it has to do. */
const LONGEST_TURN_S = 30;
/** How often a process says that it takes turns, in ms. */
const TELL_MS = 100;

/** To be called after each turn; `tell` gets one of them now and then. */
export function tellingOfTurns(tell: (turned: Turned) => void): (step: number, at: number) => void {
  let toldAt = realNow();
  return (step, at) => {
    const now = realNow();
    if (now - toldAt < TELL_MS) return;
    toldAt = now;
    tell({ step, at });
  };
}

/**
 * Looks from another process whether one still takes turns: what keeps its event loop busy for ever cannot say so itself. Counts its
 * own seconds, so that it is as slow as the machine.
 */
export class TurnWatch {
  readonly #onStuck: (last: Turned, what: string) => void;
  readonly #timer: NodeJS.Timeout;
  #last: Turned | undefined;
  #seconds = 0;

  /** `onStuck`: told once, and of the last turn that is known. */
  constructor(onStuck: (last: Turned, what: string) => void, everyMs = 1_000) {
    this.#onStuck = onStuck;
    this.#timer = setInterval(() => this.#look(), everyMs);
    this.#timer.unref();
  }

  /** Of a history that has just begun, or goes on; undefined: none is under way. */
  took(turned: Turned | undefined): void {
    this.#last = turned;
    this.#seconds = 0;
  }

  end(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    this.#seconds += 1;
    if (this.#last === undefined || this.#seconds < LONGEST_TURN_S) return;
    this.end();
    const at = (this.#last.at / 1_000).toFixed(0);
    const what = `a turn after ${at} s of simulated time has kept the program busy for ${LONGEST_TURN_S} s and has not ended`;
    this.#onStuck(this.#last, what);
  }
}
