import type { Dispatcher } from 'undici';
import type { Outgoing } from '../../src/kube/exchange.ts';
import { simulation } from './simulation.ts';
import type { Network } from './network.ts';
import type { SimProcess } from './sim-process.ts';

/** What the program asks for, and when it did, in ms. */
interface Asked {
  readonly outgoing: Outgoing;
  readonly handler: Dispatcher.DispatchHandler;
  readonly askedAt: number;
}

/** One request of the program from its dispatch to its end. */
export class Call {
  readonly outgoing: Outgoing;
  readonly owner: SimProcess | undefined;
  readonly origin: string;
  /** What is asked for, and how: most of those who are told of a call look at that. */
  readonly path: string;
  readonly query: string;
  /** When the program asked for it: it may have waited for a connection since, in ms. */
  readonly askedAt: number;
  /** Of the answer; 0: none has arrived. */
  status = 0;
  /** The client got an answer, an error, or gave up. */
  over = false;
  /** Called when the client gives up or the call is over. */
  onOver: (() => void) | undefined;
  readonly #handler: Dispatcher.DispatchHandler;
  readonly #controller: Dispatcher.DispatchController;
  readonly #free: () => void;

  constructor(origin: string, { outgoing, handler, askedAt }: Asked, free: () => void) {
    this.origin = origin;
    this.outgoing = outgoing;
    this.askedAt = askedAt;
    const { path } = outgoing;
    const queryAt = path.indexOf('?');
    this.path = queryAt < 0 ? path : path.slice(0, queryAt);
    this.query = queryAt < 0 ? '' : path.slice(queryAt + 1);
    this.owner = simulation().loop.current;
    this.#handler = handler;
    this.#free = free;
    this.#controller = {
      aborted: false,
      paused: false,
      reason: null,
      rawHeaders: [],
      pause: () => undefined,
      resume: () => undefined,
      abort: (reason: Error) => this.fail(reason),
    };
  }

  /** The request has a connection. It may be over after that. */
  begin(): void {
    this.#handler.onRequestStart?.(this.#controller, {});
  }

  head(status: number, headers: Record<string, string>): void {
    if (this.over) return;
    this.status = status;
    this.#handler.onResponseStart?.(this.#controller, status, headers, '');
  }

  data(text: string): void {
    if (!this.over) this.#handler.onResponseData?.(this.#controller, Buffer.from(text));
  }

  end(): void {
    if (this.over) return;
    this.#finish();
    this.#handler.onResponseEnd?.(this.#controller, {});
  }

  fail(reason: Error): void {
    if (this.over) return;
    this.#finish();
    this.#handler.onResponseError?.(this.#controller, reason);
  }

  #finish(): void {
    this.over = true;
    this.onOver?.();
    this.#free();
  }
}

/** What the program takes for undici's Pool: so many connections, each with one request at a time. */
export class SimPool {
  readonly #origin: string;
  readonly #most: number;
  readonly #network: Network;
  readonly #waiting: Asked[] = [];
  readonly #open = new Set<Call>();
  #closed: (() => void) | undefined;

  constructor(origin: string, { connections }: { connections: number | null }) {
    this.#origin = origin;
    this.#most = connections ?? Number.POSITIVE_INFINITY;
    this.#network = simulation().network;
  }

  dispatch(outgoing: Outgoing, handler: Dispatcher.DispatchHandler): boolean {
    this.#waiting.push({ outgoing, handler, askedAt: simulation().loop.now });
    this.#fill();
    return this.#waiting.length === 0;
  }

  async close(): Promise<void> {
    if (this.#open.size === 0) return;
    await new Promise<void>((resolve) => {
      this.#closed = resolve;
    });
  }

  async destroy(): Promise<void> {
    await Promise.resolve();
    const ended = Object.assign(new Error('the client was destroyed'), { code: 'UND_ERR_DESTROYED' });
    for (const asked of this.#waiting.splice(0)) {
      const call = new Call(this.#origin, asked, () => undefined);
      call.fail(ended);
    }
    for (const call of this.#open) call.fail(ended);
  }

  #begin(call: Call): void {
    if (call.over) return;
    try {
      call.begin();
    } catch (error) {
      // As undici does it: what is thrown fails the request, and leaves the connection to others.
      call.fail(error as Error);
    }
    if (!call.over) this.#network.send(call);
  }

  #fill(): void {
    while (this.#open.size < this.#most) {
      const next = this.#waiting.shift();
      if (next === undefined) break;
      const call: Call = new Call(this.#origin, next, () => {
        this.#open.delete(call);
        if (this.#open.size === 0) this.#closed?.();
        this.#fill();
      });
      this.#open.add(call);
      const waitMs = this.#network.connecting(this.#origin);
      if (waitMs === 0) this.#begin(call);
      else simulation().loop.schedule(waitMs, () => this.#begin(call), call.owner);
    }
  }
}
