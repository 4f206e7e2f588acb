import { setMaxListeners } from 'node:events';
import { waitAtMost } from './wait-at-most.ts';

/** How long a stream may take to be gone once it was cut. */
const CUT_MS = 1_000;

/** The streams and followed logs that are open on one virtual node: counted, capped, waited for at shutdown. */
export class OpenStreams {
  readonly #limit: number;
  readonly #gauge: (change: 1 | -1, kind: string) => void;
  readonly #cut = new AbortController();
  readonly #open = new Set<Promise<void>>();
  #draining = false;

  /** `gauge` is told about every opening and closing. */
  constructor(limit: number, gauge: (change: 1 | -1, kind: string) => void) {
    this.#limit = limit;
    this.#gauge = gauge;
    // Every open stream listens.
    setMaxListeners(0, this.#cut.signal);
  }

  get size(): number {
    return this.#open.size;
  }

  /** Why no stream can be opened now; undefined when one can. */
  refusal(): { code: 429 | 503; message: string } | undefined {
    if (this.#draining) {
      return { code: 503, message: 'this virtual node is shutting down; try again in a moment' };
    }
    return this.#open.size < this.#limit
      ? undefined
      : { code: 429, message: `this virtual node has ${this.#limit} open streams, the most it allows; close some` };
  }

  /** Runs one stream to its end; `signal` aborts when the node can wait no longer. `work` must not reject. */
  async run<T>(kind: string, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const running = work(this.#cut.signal);
    const ended = running.then(
      () => undefined,
      () => undefined,
    );
    this.#open.add(ended);
    this.#gauge(1, kind);
    try {
      return await running;
    } finally {
      this.#open.delete(ended);
      this.#gauge(-1, kind);
    }
  }

  /** Lets streams end by themselves for `graceMs`, then cuts the rest and gives them a moment to be gone. */
  async drain(graceMs: number): Promise<void> {
    this.#draining = true;
    const drained = Promise.all(this.#open);
    await waitAtMost(graceMs, drained);
    this.#cut.abort(new Error('the virtual node is shutting down'));
    await waitAtMost(CUT_MS, drained);
  }
}
