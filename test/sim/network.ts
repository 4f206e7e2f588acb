import type { EventLoop } from './event-loop.ts';
import type { Call } from './sim-pool.ts';
import type { Random } from './random.ts';
import type { SimProcess } from './sim-process.ts';

/** What answers requests. */
export interface Endpoint {
  readonly name: string;
  /** Answers at once, by `answer`, or in pieces. */
  take(call: Call, answer: Line): void;
}

/** The way back to the client of one request. */
export interface Line {
  whole(status: number, body: string, headers?: Record<string, string>): void;
  /** Pieces arrive in the order they are sent. */
  start(): void;
  piece(text: string, delayMs?: number): void;
  end(): void;
  reset(): void;
}

/** What goes wrong between the program and one server; each a probability unless named otherwise. */
export interface Trouble {
  /** The request never arrives. */
  lostRequest: number;
  /** It is carried out, and the answer never arrives. */
  lostAnswer: number;
  /** It arrives so late that the client has given up, and is carried out then. */
  late: number;
  /** The connection breaks before or after it was carried out. */
  reset: number;
  /** 429, 500, 503 or 504. */
  refused: number;
  /** Every message takes up to so many ms more. */
  slowMs: number;
  /** Nothing gets through in that direction. */
  cutToServer: boolean;
  cutToClient: boolean;
  /** A new connection takes up to so many ms; requests wait for it. */
  connectMs: number;
}

export const NO_TROUBLE: Trouble = {
  lostRequest: 0,
  lostAnswer: 0,
  late: 0,
  reset: 0,
  refused: 0,
  slowMs: 0,
  cutToServer: false,
  cutToClient: false,
  connectMs: 0,
};

/** A request that arrives later is refused by API servers, which look at its age. */
const LATEST_MS = 45_000;
/** The longest that a message takes when all is well, in ms. */
const USUAL_MS = 8;

const REFUSALS = [
  { code: 429, reason: 'TooManyRequests', headers: { 'retry-after': '1' } },
  { code: 429, reason: 'TooManyRequests', headers: { 'retry-after': '3600' } },
  { code: 500, reason: 'InternalError', headers: {} },
  { code: 503, reason: 'ServiceUnavailable', headers: {} },
  { code: 504, reason: 'Timeout', headers: {} },
] as const;

/** Messages between processes and servers: each is a turn of the loop, so their order is chance. */
export class Network {
  /** Servers by origin. */
  readonly endpoints = new Map<string, Endpoint>();
  /** Trouble of servers by origin. */
  readonly troubles = new Map<string, Trouble>();
  readonly processes = new Set<SimProcess>();
  /** Places between which and a server nothing gets through, in either direction: `place origin`. */
  readonly partitions = new Set<string>();
  /** Told of everything that a process sends; for the log. */
  onSend: ((call: Call, what: string) => void) | undefined;
  /** Told of everything that arrives at a process. An answer that it gave up waiting for does not. */
  onReceive: ((call: Call, text: string) => void) | undefined;
  /** When the last of all requests that are on their way arrives, as far as that is known, in ms. */
  lastArrival = 0;
  readonly #loop: EventLoop;
  readonly #random: Random;

  constructor(loop: EventLoop, random: Random) {
    this.#loop = loop;
    this.#random = random;
  }

  isListening(socket: string): boolean {
    return [...this.processes].some(({ alive, sockets }) => alive && sockets.has(socket));
  }

  /** How long the request waits for its connection, in ms. */
  connecting(origin: string): number {
    const { connectMs } = this.troubles.get(origin) ?? NO_TROUBLE;
    return connectMs > 0 && this.#random.chance(0.5) ? this.#random.between(0, connectMs) : 0;
  }

  /** Whether requests of the process do not arrive, or answers do not come back. */
  isCut(origin: string, { place }: SimProcess): boolean {
    const { cutToServer, cutToClient } = this.troubles.get(origin) ?? NO_TROUBLE;
    return cutToServer || cutToClient || this.partitions.has(`${place} ${origin}`);
  }

  #troubleOf({ origin, owner }: Call): Trouble {
    const trouble = this.troubles.get(origin) ?? NO_TROUBLE;
    const isApart = this.partitions.size > 0 && this.partitions.has(`${owner?.place} ${origin}`);
    return isApart ? { ...trouble, cutToServer: true, cutToClient: true } : trouble;
  }

  send(call: Call): void {
    const { origin } = call;
    const trouble = this.#troubleOf(call);
    const endpoint = this.endpoints.get(origin);
    const random = this.#random;
    const fate = endpoint === undefined ? 'refused-connection' : this.#fate(trouble);
    this.onSend?.(call, fate);
    const delay = this.#delay(trouble);
    if (fate === 'refused-connection' || endpoint === undefined) {
      this.#toClient(call, delay, () =>
        call.fail(Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })),
      );
      return;
    }
    if (fate === 'lost-request') return;
    if (fate === 'reset-before') {
      this.#toClient(call, delay, () => call.fail(broken()));
      return;
    }
    if (fate === 'refuse') {
      const { code, reason, headers } = random.pick(REFUSALS) ?? REFUSALS[2];
      const body = { kind: 'Status', apiVersion: 'v1', status: 'Failure', code, reason, message: 'made to fail' };
      const line = new NetworkLine(this, call, delay);
      this.#loop.later(delay, () => line.whole(code, JSON.stringify(body), headers));
      return;
    }
    const arrival = fate === 'late' ? random.between(5_000, LATEST_MS) : delay;
    this.lastArrival = Math.max(this.lastArrival, this.#loop.now + arrival);
    const line = new NetworkLine(this, call, this.#delay(trouble), fate === 'lost-answer', fate === 'reset-after');
    this.#loop.later(arrival, () => {
      // What a dead or impatient client had sent may have left its machine, or not.
      if ((call.over || call.owner?.alive === false) && random.chance(0.5)) return;
      if (this.#troubleOf(call).cutToServer) {
        this.#resend(call, endpoint, line, this.#loop.now + LATEST_MS);
        return;
      }
      endpoint.take(call, line);
    });
  }

  /** TCP tries again: what was sent into a cut may arrive when it has healed. */
  #resend(call: Call, endpoint: Endpoint, line: Line, until: number): void {
    this.#loop.later(this.#random.between(1_000, 5_000), () => {
      if (call.over || call.owner?.alive === false) {
        if (this.#loop.now > until || this.#random.chance(0.8)) return;
      }
      if (this.#troubleOf(call).cutToServer) this.#resend(call, endpoint, line, until);
      else endpoint.take(call, line);
    });
  }

  #fate(trouble: Trouble): string {
    const random = this.#random;
    if (random.chance(trouble.lostRequest)) return 'lost-request';
    if (random.chance(trouble.lostAnswer)) return 'lost-answer';
    if (random.chance(trouble.late)) return 'late';
    if (random.chance(trouble.reset)) return random.chance(0.5) ? 'reset-before' : 'reset-after';
    if (random.chance(trouble.refused)) return 'refuse';
    return 'well';
  }

  #delay({ slowMs }: Trouble): number {
    return this.#random.between(0.2, USUAL_MS) + (slowMs > 0 ? this.#random.between(0, slowMs) : 0);
  }

  /** A turn of the client, unless nothing gets through to it: then it waits for that. */
  deliver(call: Call, delay: number, run: () => void): void {
    this.#toClient(call, delay, () => {
      if (this.#troubleOf(call).cutToClient) {
        if (!call.over) this.#loop.later(0, () => this.deliver(call, this.#random.between(1_000, 3_000), run));
      } else run();
    });
  }

  /** How long something takes on a way that was as slow as `delay` when it began, in ms: what is slow no more is not so for ever. */
  delayNow(call: Call, delay: number): number {
    return this.#troubleOf(call).slowMs > 0 ? delay : Math.min(delay, USUAL_MS);
  }

  arrived(call: Call, text: string): void {
    if (!call.over) this.onReceive?.(call, text);
  }

  #toClient(call: Call, delay: number, run: () => void): void {
    this.#loop.schedule(delay, run, call.owner);
  }
}

function broken(): Error {
  return Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
}

class NetworkLine implements Line {
  readonly #network: Network;
  readonly #call: Call;
  readonly #delay: number;
  readonly #lost: boolean;
  readonly #resets: boolean;
  #queue: (() => void)[] = [];
  #busy = false;

  constructor(network: Network, call: Call, delay: number, lost = false, resets = false) {
    this.#network = network;
    this.#call = call;
    this.#delay = delay;
    this.#lost = lost;
    this.#resets = resets;
  }

  whole(status: number, body: string, headers: Record<string, string> = {}): void {
    if (this.#lost) return;
    this.#network.deliver(this.#call, this.#delay, () => {
      if (this.#resets) {
        this.#call.fail(broken());
        return;
      }
      this.#call.head(status, { 'content-type': 'application/json', ...headers });
      this.#network.arrived(this.#call, status < 300 ? body : '');
      this.#call.data(body);
      this.#call.end();
    });
  }

  start(): void {
    if (this.#lost) return;
    this.#send(this.#delay, () => this.#call.head(200, { 'content-type': 'application/json' }));
  }

  piece(text: string, delayMs = this.#network.delayNow(this.#call, this.#delay)): void {
    if (this.#lost) return;
    this.#send(delayMs, () => {
      this.#network.arrived(this.#call, text);
      this.#call.data(text);
    });
  }

  end(): void {
    this.#send(this.#delay, () => this.#call.end());
  }

  reset(): void {
    this.#queue = [];
    this.#network.deliver(this.#call, this.#delay, () => this.#call.fail(broken()));
  }

  /** One after the other, each as late as its delay says. */
  #send(delay: number, run: () => void): void {
    const step = (): void => {
      run();
      this.#busy = false;
      this.#queue.shift()?.();
    };
    const go = (): void => {
      this.#busy = true;
      this.#network.deliver(this.#call, delay, step);
    };
    if (this.#busy) this.#queue.push(go);
    else go();
  }
}
