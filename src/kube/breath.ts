import { monotonic } from './clock.ts';

/** So long others may have to wait, in ms. */
const TURN_MS = 25;

/** For long work that must not keep everything else waiting: to be called between its steps, it lets others have their turn in time. */
export class Breath {
  #since = monotonic();

  async take(): Promise<void> {
    if (monotonic() - this.#since < TURN_MS) return;
    await new Promise<void>((resolve) => setImmediate(resolve));
    this.#since = monotonic();
  }
}
