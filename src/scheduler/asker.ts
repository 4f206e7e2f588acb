import type { ServerResponse } from 'node:http';
import { setImmediate } from 'node:timers/promises';

/** Whoever asked a question, and may hang up before it has the answer: what came of that answer is then known to nobody. */
export class Asker {
  readonly #response: ServerResponse;
  readonly #hungUp = new AbortController();

  constructor(response: ServerResponse) {
    this.#response = response;
    response.once('close', () => {
      if (!response.writableFinished) this.#hungUp.abort();
    });
  }

  /** Aborted when it hung up before the whole answer was sent. */
  get hungUp(): AbortSignal {
    return this.#hungUp.signal;
  }

  /**
   * A moment for what came in while this process was busy with other things, or with the answer: that it hung up is heard of only then, and
   * an answer is sent as well into a connection that its other end has closed. What came in during a poll phase is read in the next one,
   * which may be only after the first of the two.
   */
  async listen(): Promise<void> {
    await setImmediate();
    await setImmediate();
    if (this.#response.socket?.writable !== true) this.#hungUp.abort();
  }
}
