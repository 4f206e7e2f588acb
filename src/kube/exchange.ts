import { setMaxListeners } from 'node:events';
import type { Dispatcher } from 'undici';
import { LONGEST_ANSWER_BYTES, type AnswerRoom } from './answer-room.ts';

export interface Answer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: Buffer;
}

/** What undici sends: headers are a flat name, value, name, value list. */
export interface Outgoing {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  path: string;
  headers: string[];
  body: string | Buffer | null;
  /**
   * undici would close a connection after a DELETE with a body, which API servers read: the next request had to shake hands anew. Not
   * added when it is sent: a copy of these options costs a tenth of a GET.
   */
  reset: false;
}

/** The deadline of an exchange passed. */
export class DeadlineError extends Error {
  override readonly name = 'DeadlineError';
  readonly code = 'ETIMEDOUT';
}

/** The answer is longer than one may be, or than there is room for beside the others under way. */
export class TooLargeError extends Error {
  override readonly name = 'TooLargeError';
  readonly code = 'UND_ERR_RES_EXCEEDED_MAX_SIZE';
}

/** The caller's signal fired. */
export class CancelledError extends Error {
  override readonly name = 'AbortError';
}

export interface ExchangeOptions {
  timeoutMs: number;
  signal?: AbortSignal | undefined;
  onData?: ((chunk: Buffer) => void) | undefined;
  onStart?: () => void;
  /** Called when a connection is free for the request, before its first byte; what it throws keeps the request back. */
  beforeSend?: (() => void) | undefined;
  room: AnswerRoom;
}

/**
 * One HTTP exchange with the whole body in one Buffer. undici's dispatch is used directly: it costs about a third less
 * than its `request`, which builds a stream per answer. Rejects with what undici reports, {@link DeadlineError} or
 * {@link CancelledError}; a request that still waits for a connection ends at its deadline too.
 *
 * `onData` takes the body of a 200 piece by piece instead, for watches; the deadline then covers the start only.
 */
export function exchange(dispatcher: Dispatcher, outgoing: Outgoing, o: ExchangeOptions): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const handler = new ExchangeHandler(resolve, reject, o);
    dispatcher.dispatch(outgoing, handler);
  });
}

class ExchangeHandler implements Dispatcher.DispatchHandler {
  readonly #resolve: (answer: Answer) => void;
  readonly #reject: (reason: Error) => void;
  readonly #signal: AbortSignal | undefined;
  readonly #onData: ((chunk: Buffer) => void) | undefined;
  readonly #onStart: (() => void) | undefined;
  readonly #beforeSend: (() => void) | undefined;
  readonly #room: AnswerRoom;
  #held = 0;
  readonly #onAbort: (() => void) | undefined;
  #timer: NodeJS.Timeout | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #failure: Error | undefined;
  #status = 0;
  #headers: Record<string, string | string[] | undefined> = {};
  #chunks: Buffer[] = [];
  #length = 0;
  #settled = false;

  constructor(resolve: (answer: Answer) => void, reject: (reason: Error) => void, o: ExchangeOptions) {
    this.#resolve = resolve;
    this.#reject = reject;
    this.#signal = o.signal;
    this.#onData = o.onData;
    this.#onStart = o.onStart;
    this.#beforeSend = o.beforeSend;
    this.#room = o.room;
    this.#timer = setTimeout(() => {
      this.#cancel(new DeadlineError(`nothing within ${Math.round(o.timeoutMs)} ms`));
    }, o.timeoutMs);
    if (o.signal !== undefined) {
      this.#onAbort = () => {
        this.#cancel(new CancelledError('the caller stopped waiting'));
      };
      setMaxListeners(0, o.signal); // one signal of a component serves hundreds of requests
      o.signal.addEventListener('abort', this.#onAbort, { once: true });
      if (o.signal.aborted) {
        this.#onAbort();
      }
    }
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#failure !== undefined) {
      controller.abort(this.#failure);
      return;
    }
    // Thrown from here, and not given to abort(), it leaves the connection to others.
    this.#beforeSend?.();
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    this.#status = status;
    this.#headers = headers;
    if (this.#onData !== undefined && status === 200) {
      clearTimeout(this.#timer);
      this.#onStart?.();
    }
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#onData !== undefined && this.#status === 200) {
      if (!this.#settled) {
        this.#onData(chunk);
      }
      return;
    }
    if (this.#settled) {
      return;
    }
    this.#length += chunk.length;
    const cost = this.#length > LONGEST_ANSWER_BYTES ? undefined : this.#room.take(chunk.length);
    if (cost === undefined) {
      const limit = this.#length > LONGEST_ANSWER_BYTES ? 'longer than 16 MiB' : 'more than there is room for at once';
      this.#cancel(new TooLargeError(`the answer is ${limit}`));
    } else {
      this.#held += cost;
      this.#chunks.push(chunk);
    }
  }

  onResponseEnd(): void {
    const [only] = this.#chunks;
    const body = this.#chunks.length === 1 && only !== undefined ? only : Buffer.concat(this.#chunks);
    this.#settle();
    this.#resolve({ status: this.#status, headers: this.#headers, body });
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#fail(this.#failure ?? error);
  }

  #cancel(reason: Error): void {
    this.#failure = reason;
    this.#fail(reason);
    this.#controller?.abort(reason);
  }

  #fail(reason: Error): void {
    this.#settle();
    this.#reject(reason);
  }

  #settle(): void {
    this.#settled = true;
    this.#chunks = [];
    this.#room.give(this.#held);
    this.#held = 0;
    clearTimeout(this.#timer);
    if (this.#onAbort !== undefined) {
      this.#signal?.removeEventListener('abort', this.#onAbort);
    }
  }
}
