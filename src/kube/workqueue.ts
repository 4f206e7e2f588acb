import { setMaxListeners } from 'node:events';
import type { Logger } from 'pino';
import { monotonic } from './clock.ts';
import { DelayHeap } from './delay-heap.ts';
import { describeError } from './errors.ts';
import { systemTimers } from './timers.ts';
import type { Timers } from './timers.ts';
import type { WorkQueueMetrics } from './workqueue-metrics.ts';

export type Priority = 'high' | 'normal';

/** What handling a key came to: nothing more to do, or look again after a while without calling it a failure. */
export type HandlerResult = void | { requeueAfterMs: number };

export interface WorkQueueOptions {
  /** For logs and metrics. */
  name: string;
  /** How many keys are handled at the same time. */
  concurrency: number;
  /**
   * Normal keys are only begun while fewer than `fresh` keys are in work that began within the last second, but for two
   * that high ones cannot keep away, and while fewer than `most` normal ones are in work in all; default `concurrency` for
   * both. Few fresh ones leave the API servers' time to what is urgent, and are as many as a busy API server gets done
   * anyway; what hangs keeps others from being begun only when it is much.
   */
  normal?: { fresh: number; most: number };
  /**
   * Brings one key to its desired state. Its signal aborts `graceMs` after the queue was told to stop. A rejection is
   * logged and the key retried with backoff, for ever.
   */
  handler: (key: string, signal: AbortSignal) => Promise<HandlerResult>;
  /** First and longest wait after failures of one key; 5 ms and 5 min. The wait doubles each time, half of it random. */
  backoff?: { baseMs: number; maxMs: number };
  /** How long handlers may go on after the stop; 5,000 ms. */
  graceMs?: number;
  /** Milliseconds, monotonic. */
  monotonic?: () => number;
  timers?: Timers | undefined;
  /** 0 <= random() < 1 */
  random?: () => number;
  metrics?: WorkQueueMetrics | undefined;
  logger?: Logger | undefined;
}

/** After so many high keys in a row a normal one gets its turn. */
const HIGH_RUN = 8;
/** So many normal keys are in work whatever else is. */
const LEAST_NORMAL = 2;
/** A key that is in work for so long is not fresh any more, in ms. */
const FRESH_MS = 1_000;
/** After so many starts without a pause the event loop gets to serve sockets and timers. */
const STARTS_PER_TURN = 64;

interface Running {
  readonly priority: Priority;
  readonly since: number;
  again: Priority | undefined;
}

/**
 * Keys to be worked on. A key is in the queue at most once and in work at most once; added while in work, it is handled
 * once more afterwards. Fresh keys start at once: there is no overall rate limit, the client's answers (429) are that.
 */
export class WorkQueue {
  readonly #options: WorkQueueOptions;
  readonly #backoff: { baseMs: number; maxMs: number };
  readonly #monotonic: () => number;
  readonly #timers: Timers;
  readonly #random: () => number;
  /** The truth about waiting keys; the lists below may hold stale entries of keys that moved up. */
  readonly #waiting = new Map<string, { priority: Priority; since: number }>();
  readonly #lists: Record<Priority, Fifo> = { high: new Fifo(), normal: new Fifo() };
  readonly #running = new Map<string, Running>();
  readonly #inFlight = new Set<Promise<void>>();
  readonly #failures = new Map<string, number>();
  readonly #delays: DelayHeap;
  readonly #retries: DelayHeap;
  #highRun = 0;
  #cancelLook: (() => void) | undefined;
  #starts = 0;
  #state: 'idle' | 'running' | 'stopped' = 'idle';
  #handlerSignal: AbortSignal | undefined;

  constructor(options: WorkQueueOptions) {
    this.#options = options;
    this.#backoff = options.backoff ?? { baseMs: 5, maxMs: 300_000 };
    this.#monotonic = options.monotonic ?? monotonic;
    this.#timers = options.timers ?? systemTimers;
    this.#random = options.random ?? Math.random;
    this.#delays = new DelayHeap(this.#monotonic, this.#timers, (key) => this.add(key));
    this.#retries = new DelayHeap(this.#monotonic, this.#timers, (key) => this.add(key));
  }

  /** Keys waiting to be handled now; delayed ones and those in work are not counted. */
  get depth(): number {
    return this.#waiting.size;
  }

  /** Queues the key. A key that waits already stays where it is, or moves up if it is now `high`. */
  add(key: string, priority: Priority = 'normal'): void {
    if (this.#state === 'stopped') return;
    const running = this.#running.get(key);
    if (running !== undefined) {
      if (running.again !== 'high') running.again = priority;
      return;
    }
    const waiting = this.#waiting.get(key);
    if (waiting === undefined) {
      this.#waiting.set(key, { priority, since: this.#monotonic() });
      this.#options.metrics?.added(this.#options.name);
    } else if (priority === 'high' && waiting.priority === 'normal') {
      waiting.priority = 'high';
    } else {
      return;
    }
    this.#lists[priority].push(key);
    this.#pump();
  }

  /** Queues the key after `ms` milliseconds; of several such calls the earliest time counts. */
  addAfter(key: string, ms: number): void {
    if (this.#state === 'stopped') return;
    if (ms <= 0) this.add(key);
    else this.#delays.set(key, this.#monotonic() + ms);
  }

  /** Forgets the failures of a key and its pending retry. A key added or delayed on purpose stays. */
  forget(key: string): void {
    this.#failures.delete(key);
    this.#retries.delete(key);
  }

  /**
   * Handles keys until the signal aborts, then waits for the handlers in flight. Never rejects. Keys added before are
   * kept until this is called; it can be called once.
   */
  async run(signal: AbortSignal): Promise<void> {
    if (this.#state !== 'idle') throw new Error(`work queue ${this.#options.name} has already run`);
    const { name, graceMs = 5_000, metrics } = this.#options;
    const detach = metrics?.attach(name, {
      depth: () => this.depth,
      workAges: () => [...this.#running.values()].map(({ since }) => this.#monotonic() - since),
    });
    const handlers = new AbortController();
    // Every request of every handler listens to this one signal; that is no leak to be warned of.
    setMaxListeners(0, handlers.signal);
    this.#handlerSignal = handlers.signal;
    if (!signal.aborted) {
      this.#state = 'running';
      this.#pump();
      await new Promise<void>((resolve) => {
        signal.addEventListener('abort', () => resolve(), { once: true });
      });
    }
    this.#state = 'stopped';
    this.#delays.clear();
    this.#retries.clear();
    this.#cancelLook?.();
    const cancelGrace = this.#timers.start(() => handlers.abort(signal.reason), graceMs);
    await Promise.all(this.#inFlight);
    cancelGrace();
    detach?.();
  }

  #pump(): void {
    while (this.#state === 'running' && this.#running.size < this.#options.concurrency) {
      if (this.#starts >= STARTS_PER_TURN) return;
      const next = this.#next();
      if (next === undefined) return;
      this.#starts += 1;
      if (this.#starts === 1) setImmediate(() => this.#newTurn());
      const work = this.#work(next.key, next.priority).finally(() => {
        this.#inFlight.delete(work);
        this.#pump();
      });
      this.#inFlight.add(work);
    }
  }

  #newTurn(): void {
    this.#starts = 0;
    this.#pump();
  }

  #next(): { key: string; priority: Priority } | undefined {
    const order: Priority[] = this.#highRun >= HIGH_RUN ? ['normal', 'high'] : ['high', 'normal'];
    for (const priority of order) {
      const list = this.#lists[priority];
      if (list.isEmpty || (priority === 'normal' && !this.#mayBeginNormal())) continue;
      for (let key = list.shift(); key !== undefined; key = list.shift()) {
        if (this.#waiting.get(key)?.priority !== priority) continue;
        this.#highRun = priority === 'high' ? this.#highRun + 1 : 0;
        return { key, priority };
      }
    }
    return undefined;
  }

  #mayBeginNormal(): boolean {
    const { normal } = this.#options;
    if (normal === undefined) return true;
    const since = this.#monotonic() - FRESH_MS;
    const running = [...this.#running.values()];
    const fresh = running.filter((one) => one.since > since);
    const all = running.filter(isNormal).length;
    const isLow = fresh.length < normal.fresh || fresh.filter(isNormal).length < LEAST_NORMAL;
    if (isLow && all < normal.most) return true;
    // Nothing else may happen until they are not fresh any more.
    this.#cancelLook ??= this.#timers.start(() => {
      this.#cancelLook = undefined;
      this.#pump();
    }, FRESH_MS);
    return false;
  }

  async #work(key: string, priority: Priority): Promise<void> {
    const { name, handler, metrics } = this.#options;
    const now = this.#monotonic();
    metrics?.started(name, now - (this.#waiting.get(key)?.since ?? now));
    this.#waiting.delete(key);
    this.#retries.delete(key);
    const entry: Running = { priority, since: now, again: undefined };
    this.#running.set(key, entry);
    try {
      const result = await handler(key, this.#handlerSignal ?? AbortSignal.abort());
      this.#failures.delete(key);
      if (typeof result === 'object') this.addAfter(key, result.requeueAfterMs);
    } catch (error) {
      this.#failed(key, error);
    }
    metrics?.finished(name, this.#monotonic() - now);
    this.#running.delete(key);
    if (entry.again !== undefined) this.add(key, entry.again);
  }

  #failed(key: string, error: unknown): void {
    if (this.#state === 'stopped') return;
    const { name, logger, metrics } = this.#options;
    const failures = (this.#failures.get(key) ?? 0) + 1;
    this.#failures.set(key, failures);
    const { baseMs, maxMs } = this.#backoff;
    const full = Math.min(maxMs, baseMs * 2 ** Math.min(failures - 1, 40));
    const retryInMs = Math.round(full * (0.5 + 0.5 * this.#random()));
    metrics?.retried(name);
    this.#retries.set(key, this.#monotonic() + retryInMs);
    // Every failure is in the metrics; the log gets the 1st, 2nd, 4th, 8th... of a key.
    const level = Number.isInteger(Math.log2(failures)) ? 'warn' : 'debug';
    logger?.[level]({ queue: name, key, failures, retryInMs }, describeError(error));
  }
}

function isNormal({ priority }: Running): boolean {
  return priority === 'normal';
}

/** A list that gives up its first element in constant time. */
class Fifo {
  #items: string[] = [];
  #first = 0;

  push(item: string): void {
    this.#items.push(item);
  }

  get isEmpty(): boolean {
    return this.#first === this.#items.length;
  }

  shift(): string | undefined {
    const item = this.#items[this.#first];
    if (item === undefined) return undefined;
    this.#first += 1;
    if (this.#first === this.#items.length) {
      this.#items = [];
      this.#first = 0;
    } else if (this.#first > 1_000 && this.#first * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#first);
      this.#first = 0;
    }
    return item;
  }
}
