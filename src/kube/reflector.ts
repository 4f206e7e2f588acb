import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { malformed, type Where } from './answer.ts';
import type { KubeClient } from './client.ts';
import { DistrustError } from './distrust-error.ts';
import { ApiError, describeError, isGone, TransportError } from './errors.ts';
import type { InformerMetrics } from './informer-metrics.ts';
import { readPages, type Selection } from './list-pages.ts';
import { keyOf, type KubeObject } from './object.ts';
import type { Outcome } from './object-store.ts';
import { backoffMs, DEFAULT_TIMINGS, watchSeconds, type Pace, type ReflectorTimings } from './reflector-timings.ts';
import { resourcePath, type Resource } from './resource.ts';
import { isOlder } from './resource-version.ts';
import type { WatchEvent } from './watch-decoder.ts';
import {
  checkIdentified,
  hasInitialEventsEnd,
  isRefusedRequest,
  resourceVersionOf,
  watchError,
} from './watch-event.ts';
import { WatchRound } from './watch-round.ts';

/** Where a reflector puts what it learns. `transform` returns undefined for an object that it cannot take. */
export interface ReflectorSink<T extends KubeObject> {
  readonly size: number;
  transform(raw: KubeObject): T | undefined;
  put(object: T): Outcome;
  delete(object: KubeObject): Outcome;
  /** Returns how many objects differed. */
  replace(listed: ReadonlyMap<string, T | undefined>): number;
}

export interface ReflectorOptions<T extends KubeObject> extends Selection {
  client: KubeClient;
  resource: Resource;
  sink: ReflectorSink<T>;
  logger?: Logger | undefined;
  metrics?: InformerMetrics | undefined;
  /** Milliseconds, monotonic. */
  clock?: (() => number) | undefined;
  random?: (() => number) | undefined;
  timings?: Partial<ReflectorTimings> | undefined;
  /** Errors that nobody needs to hear of: they pass, or do not matter. `failures` counts those in a row, from 1. */
  passing?: ((error: unknown, failures: number) => boolean) | undefined;
}

/**
 * Lists that succeed while watches keep failing: backoff falls back to this many failures, so that a server that is
 * well again is watched soon, but a broken one is not listed in a tight loop.
 */
const MAX_FAILURES_BESIDE_LISTS = 3;

/** How a watch went, when it did not fail. */
type WatchEnd = 'closed' | 'silent';

/** A watch that was to prove itself may be late by this much. */
const PROOF_MARGIN_MS = 3_000;

/**
 * Keeps a sink equal to a collection of the API, for ever: lists it, watches from there, and lists again only when the
 * server has forgotten where we were (410) or its answers cannot be trusted.
 *
 * Lists: as a stream (WatchList, KEP-3157) where the server offers it, else in pages; always consistent reads. A list
 * older than anything seen before is refused, an empty one is believed only after a second read says so too.
 *
 * Dead watches: TCP cannot tell a quiet watch from one behind a black hole, and bookmarks come once a minute at best (an
 * API server sends none for a kind that does not change, unless its etcd notifies progress). What always comes is the
 * orderly end of a watch when its timeoutSeconds are over. So a watch that brought no event is asked for half a minute
 * only, which costs one small request on a kept connection; a busy one for 5 to 10 minutes. When nothing at all has
 * arrived for 40 s, the next watch, from the same resourceVersion on a new connection, lasts five seconds: if it does
 * not even end by itself, everything is listed again. So a watch that dies silently is replaced within 40 s.
 */
export class Reflector<T extends KubeObject> {
  readonly #o: ReflectorOptions<T>;
  readonly #clock: () => number;
  readonly #random: () => number;
  readonly #timings: ReflectorTimings;
  readonly #path: string;
  readonly #labels: { cluster: string; resource: string };
  /** Where the next watch starts; undefined: list first. */
  #resume: string | undefined;
  #newest: string | undefined;
  #pace: Pace = 'busy';
  #streamLists = true;
  #lists = 0;
  /** The watch of this round proved to work; a list alone does not. */
  #delivered = false;
  #provedAt: number;
  #problem: string | undefined;

  constructor(o: ReflectorOptions<T>) {
    this.#o = o;
    this.#clock = o.clock ?? (() => performance.now());
    this.#random = o.random ?? Math.random;
    this.#timings = { ...DEFAULT_TIMINGS, ...o.timings };
    this.#path = resourcePath(o.resource, o.namespace);
    this.#labels = { cluster: o.client.cluster, resource: o.resource.plural };
    this.#provedAt = this.#clock();
  }

  /** Since the last event, bookmark, list or orderly end of a watch; before the first, since the start. */
  staleMs(): number {
    return this.#clock() - this.#provedAt;
  }

  /** Why the collection cannot be read now, in words for people; undefined while all is well. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** The newest resourceVersion of any list, event or bookmark; undefined before the first list. */
  get resourceVersion(): string | undefined {
    return this.#newest;
  }

  /** Ends only with the signal. */
  async run(signal: AbortSignal): Promise<void> {
    setMaxListeners(0, signal);
    let failures = 0;
    let forgotten = false;
    while (!signal.aborted) {
      this.#delivered = false;
      const lists = this.#lists;
      let error: unknown;
      try {
        if (this.#resume === undefined && !this.#mayStreamLists()) {
          await this.#listPages(signal);
        }
        this.#ended(await this.#watch(signal));
      } catch (e) {
        error = e;
      }
      if (signal.aborted) {
        return;
      }
      if (this.#delivered && !(error instanceof DistrustError)) {
        failures = 0;
      } else if (this.#lists > lists) {
        failures = Math.min(failures, MAX_FAILURES_BESIDE_LISTS);
      }
      const before = forgotten;
      forgotten = isGone(error);
      if (error === undefined) {
        continue;
      }
      failures++;
      this.#note(error, failures);
      // A forgotten resourceVersion is nobody's fault, and common after an outage: unless it happens twice in a row
      // there is nothing to wait for.
      const told = error instanceof ApiError ? (error.retryAfterMs ?? 0) : 0;
      const delay = forgotten && !before ? 0 : backoffMs(this.#timings, failures, this.#random());
      await this.#pause(Math.max(told, delay), signal);
    }
  }

  #mayStreamLists(): boolean {
    return this.#streamLists && this.#o.client.capabilities.watchList;
  }

  /** Decides from an error where to go on, and tells it once in each form. */
  #note(error: unknown, failures: number): void {
    const { logger, passing } = this.#o;
    if (isGone(error)) {
      this.#resume = undefined;
      this.#ended('expired');
    } else {
      this.#ended('failed');
      this.#pace = 'proof'; // be sure soon that the next one delivers
    }
    if (error instanceof DistrustError) {
      this.#resume = undefined;
      this.#refused(error.reason);
    } else if (error instanceof TransportError && error.kind === 'malformed') {
      this.#refused('malformed');
    } else if (isRefusedRequest(error)) {
      if (this.#resume === undefined) {
        this.#streamLists = false; // perhaps the server cannot stream them; a list in pages will tell
      }
      this.#resume = undefined;
    }
    const problem = describeError(error);
    const quiet = isGone(error) || passing?.(error, failures) === true;
    const level = quiet || (problem === this.#problem && failures > 1) ? 'debug' : 'warn';
    this.#problem = quiet ? this.#problem : problem;
    logger?.[level]({ ...this.#labels, failures, staleMs: this.staleMs() }, `watching ${this.#path}: ${problem}`);
  }

  async #listPages(signal: AbortSignal): Promise<void> {
    let { listed, version } = await this.#readPages(signal);
    if (listed.size === 0 && this.#o.sink.size > 0) {
      this.#refused('empty');
      await this.#pause(this.#timings.confirmMs, signal);
      ({ listed, version } = await this.#readPages(signal));
    }
    this.#accept(listed, version, 'pages');
    if (!this.#streamLists) {
      this.#o.client.capabilities.watchList = false; // the same list works in pages
    }
  }

  async #readPages(signal: AbortSignal): Promise<{ listed: Map<string, T | undefined>; version: string }> {
    const { client, resource, namespace, labelSelector, fieldSelector, sink } = this.#o;
    const selection = { namespace, labelSelector, fieldSelector };
    const where = this.#where();
    const request = { signal, deadlineMs: this.#timings.pageMs };
    const listed = new Map<string, T | undefined>();
    const version = await readPages(client, resource, { ...selection, request }, (items) => {
      for (const item of items) {
        listed.set(keyOf(item), sink.transform(checkIdentified(where, resource, item)));
      }
    });
    return { listed, version };
  }

  #accept(listed: ReadonlyMap<string, T | undefined>, version: string, method: 'pages' | 'stream'): void {
    if (isOlder(version, this.#newest)) {
      throw new DistrustError(
        'backward',
        `${this.#labels.cluster} listed ${this.#labels.resource} of resourceVersion ${version}, but ${this.#newest} was ` +
          'seen before; the old state is kept. If etcd was restored from a backup, restart this program to accept it',
      );
    }
    const differences = this.#o.sink.replace(listed);
    if (this.#lists > 0) {
      this.#o.metrics?.missed.inc(this.#labels, differences);
    }
    this.#o.metrics?.lists.inc({ ...this.#labels, method });
    this.#lists++;
    this.#pace = 'busy';
    this.#advance(version);
    this.#delivered = false;
  }

  /** One watch, from the resume point or, as a streamed list, from nothing. */
  async #watch(signal: AbortSignal): Promise<WatchEnd> {
    const streamsList = this.#resume === undefined;
    let gathering = streamsList ? new Map<string, T | undefined>() : undefined;
    const seconds = watchSeconds(this.#timings, streamsList ? 'busy' : this.#pace, this.#random());
    const { silenceMs, startMs } = this.#timings;
    const round = new WatchRound(this.#clock, Math.min(silenceMs, seconds * 1000 + PROOF_MARGIN_MS));
    let distrustEmpty = false;
    const onEvent = (event: WatchEvent): void => {
      if (gathering === undefined) {
        this.#take(event, round);
      } else if (this.#gather(event, gathering)) {
        const listed = gathering;
        gathering = undefined;
        if (listed.size === 0 && this.#o.sink.size > 0) {
          distrustEmpty = true;
          round.stop();
        } else {
          this.#accept(listed, this.#listVersion(event.object), 'stream');
        }
      }
    };
    const request = { ...this.#watchRequest(seconds), deadlineMs: startMs };
    try {
      await round.run(this.#o.client, request, seconds, signal, onEvent);
    } catch (e) {
      throw e instanceof SyntaxError ? malformed(this.#where(), e.message, e) : e;
    }
    if (distrustEmpty) {
      this.#refused('empty');
      await this.#pause(this.#timings.confirmMs, signal);
      const { listed, version } = await this.#readPages(signal);
      this.#accept(listed, version, 'pages');
      return 'closed';
    }
    if (gathering !== undefined) {
      this.#streamLists = false; // ignored the question for initial events: an old or foreign server
      throw malformed(this.#where(), 'the streamed list has no end');
    }
    return this.#judge(round);
  }

  /** After a watch that ended without an error: how long may the next one last, and must we list? */
  #judge(round: WatchRound): WatchEnd {
    if (!round.silent) {
      if (!round.lasted()) {
        throw new TransportError({ ...this.#where(), kind: 'reset', detail: 'the watch ended before its time' });
      }
      this.#prove();
      this.#pace = round.events > 0 ? 'busy' : 'quiet';
      return 'closed';
    }
    if (this.#pace === 'proof' && !round.proved) {
      this.#resume = undefined;
      throw new TransportError({ ...this.#where(), kind: 'timeout', detail: 'watches deliver nothing; listing again' });
    }
    this.#pace = 'proof';
    return 'silent';
  }

  /** Collects the initial state of a streamed list; true at its end. */
  #gather(event: WatchEvent, listed: Map<string, T | undefined>): boolean {
    if (event.type === 'ERROR') {
      throw watchError(this.#where(), event.object);
    }
    if (event.type === 'BOOKMARK') {
      return hasInitialEventsEnd(event.object);
    }
    const raw = checkIdentified(this.#where(), this.#o.resource, event.object);
    if (event.type === 'DELETED') {
      listed.delete(keyOf(raw));
    } else {
      listed.set(keyOf(raw), this.#o.sink.transform(raw));
    }
    return false;
  }

  #take(event: WatchEvent, round: WatchRound): void {
    if (event.type === 'ERROR') {
      throw watchError(this.#where(), event.object);
    }
    if (event.type === 'BOOKMARK') {
      round.proved = true;
      this.#advance(resourceVersionOf(event.object));
      return;
    }
    const raw = checkIdentified(this.#where(), this.#o.resource, event.object);
    const version = raw.metadata.resourceVersion;
    const outcome = this.#apply(event.type, raw);
    round.events++;
    round.proved = true;
    this.#o.metrics?.events.inc({ ...this.#labels, outcome });
    if (isOlder(version, this.#newest)) {
      // Events of one watch only go forward. What else went missing on the way here cannot be known.
      throw new DistrustError('disorder', `${this.#labels.cluster} sent watch events of ${this.#path} out of order`);
    }
    this.#advance(version ?? '');
  }

  #apply(type: 'ADDED' | 'MODIFIED' | 'DELETED', raw: KubeObject): Outcome | 'unusable' {
    const { sink } = this.#o;
    if (type === 'DELETED') {
      return sink.delete(raw);
    }
    const object = sink.transform(raw);
    return object === undefined ? 'unusable' : sink.put(object);
  }

  #prove(): void {
    this.#provedAt = this.#clock();
    this.#problem = undefined;
    this.#delivered = true;
  }

  #advance(version: string): void {
    this.#prove();
    if (version === '' || isOlder(version, this.#newest)) {
      return;
    }
    this.#newest = version;
    this.#resume = version;
  }

  #listVersion(bookmark: unknown): string {
    const version = resourceVersionOf(bookmark);
    if (version === '') {
      throw malformed(this.#where(), 'the streamed list has no resourceVersion');
    }
    return version;
  }

  #watchRequest(timeoutSeconds: number) {
    const initial = this.#resume === undefined;
    return {
      path: this.#path,
      query: {
        labelSelector: this.#o.labelSelector,
        fieldSelector: this.#o.fieldSelector,
        watch: true,
        allowWatchBookmarks: true,
        timeoutSeconds,
        resourceVersion: this.#resume,
        ...(initial ? { sendInitialEvents: true, resourceVersionMatch: 'NotOlderThan' } : {}),
      },
    };
  }

  #where(): Where {
    return { cluster: this.#labels.cluster, method: 'GET', path: this.#path };
  }

  #refused(reason: string): void {
    this.#o.metrics?.refused.inc({ ...this.#labels, reason });
  }

  #ended(end: WatchEnd | 'expired' | 'failed'): void {
    this.#o.metrics?.watches.inc({ ...this.#labels, end });
  }

  async #pause(ms: number, signal: AbortSignal): Promise<void> {
    await sleep(ms, undefined, { signal }).catch(() => undefined); // the signal is looked at by the loop
  }
}
