import { setMaxListeners } from 'node:events';
import type { Logger } from 'pino';
import { malformed, type Where } from './response-body.ts';
import { childSignal, type ChildSignal } from './child-signal.ts';
import type { KubeClient } from './client.ts';
import { monotonic } from './clock.ts';
import { DistrustError } from './distrust-error.ts';
import { isGone, TransportError } from './errors.ts';
import type { InformerMetrics } from './informer-metrics.ts';
import { accountOf, type CacheAccount } from './cache-account.ts';
import { LimitError } from './limit-error.ts';
import { checkGone, checkOnward, currentVersion } from './list-checks.ts';
import { readPages, type Selection } from './list-pages.ts';
import { gather } from './initial-events.ts';
import { acceptOf } from './metadata-only.ts';
import type { KubeObject } from './object.ts';
import { ReadTrouble } from './read-trouble.ts';
import { ReflectorIntake, type ReflectorSink } from './reflector-intake.ts';
import {
  countFailure,
  DEFAULT_TIMINGS,
  retryMs,
  watchSeconds,
  type Pace,
  type ReflectorTimings,
} from './reflector-timings.ts';
import { resourcePath, type Resource } from './resource.ts';
import { SeenHistory } from './seen-history.ts';
import { pause } from './timers.ts';
import type { WatchEvent } from './watch-decoder.ts';
import { checkIdentified, isRefusedRequest, listVersionOf, resourceVersionOf, watchError } from './watch-event.ts';
import { watchQuery } from './watch-query.ts';
import { WatchRound } from './watch-round.ts';

export interface ReflectorOptions<T extends KubeObject> extends Selection {
  client: KubeClient;
  resource: Resource;
  sink: ReflectorSink<T>;
  /** Default: one for what a list takes while it is read. */
  account?: CacheAccount | undefined;
  logger?: Logger | undefined;
  metrics?: InformerMetrics | undefined;
  /** Milliseconds, monotonic. */
  monotonic?: (() => number) | undefined;
  random?: (() => number) | undefined;
  timings?: Partial<ReflectorTimings> | undefined;
  /** Errors that nobody needs to hear of: they pass, or do not matter. `failures` counts those in a row, from 1; few of an outage. */
  passing?: ((error: unknown, failures: number) => boolean) | undefined;
}

/**
 * Lists that succeed while watches keep failing: backoff falls back to this many failures, so that a server that is well
 * again is watched soon, but a broken one is not listed in a tight loop.
 */
const MAX_FAILURES_BESIDE_LISTS = 3;

/** A watch that was to prove itself may be late by this much. */
const PROOF_MARGIN_MS = 3_000;

type WatchEnd = 'closed' | 'silent';

/**
 * Keeps a sink equal to a collection of the API, for ever: lists it, watches from there, and lists again only when the
 * server has forgotten where we were (410) or its answers cannot be trusted.
 *
 * Lists: as a stream (WatchList, KEP-3157) where the server offers it, else in pages; always consistent reads. A list
 * older than anything seen before is refused, unless the cluster goes on from there for a minute (see SeenHistory). An
 * empty one is believed only after a second read says so too and objects that were known are not found by name.
 *
 * Dead watches: TCP cannot tell a quiet watch from one behind a black hole, and bookmarks come once a minute at best (none
 * for a kind that does not change, unless etcd notifies progress). What always comes is the orderly end of a watch when its
 * timeoutSeconds are over. So a watch that brought no event is asked for half a minute only, which costs one small request
 * on a kept connection; a busy one for 5 to 10 minutes. When nothing at all has arrived for 40 s, the next watch, from the
 * same resourceVersion on a new connection, lasts five seconds: if it does not even end by itself, everything is listed
 * again. So a watch that dies silently is replaced within 40 s.
 *
 * A watch from where the cluster has not come yet, after a list with too high a version, is silent and ends in order. So
 * where watches bring nothing at all, the server is asked how far it is: 30 s after a list, then ever more rarely.
 */
export class Reflector<T extends KubeObject> {
  readonly #o: ReflectorOptions<T>;
  readonly #monotonic: () => number;
  readonly #random: () => number;
  readonly #timings: ReflectorTimings;
  readonly #where: Where;
  readonly #labels: { cluster: string; resource: string };
  /** Where the next watch starts; undefined: list first. */
  #resume: string | undefined;
  /** Of the try that is made, and of the rest after it. */
  #turn: ChildSignal | undefined;
  /** Tries in a row that failed, as far as they count. */
  #failures = 0;
  /** The server had forgotten where the last one was to begin. */
  #forgotten = false;
  readonly #history: SeenHistory;
  readonly #intake: ReflectorIntake<T>;
  /** The last watch ended in order and brought neither event nor bookmark. */
  #idle = false;
  #pace: Pace = 'busy';
  #streamLists = true;
  #lists = 0;
  #begun = 0;
  /** The watch of this round proved to work; a list alone does not. */
  #delivered = false;
  #provedAt: number;
  /** What is in the way. */
  readonly trouble: ReadTrouble;

  constructor(o: ReflectorOptions<T>) {
    this.#o = o;
    this.#monotonic = o.monotonic ?? monotonic;
    this.#random = o.random ?? Math.random;
    this.#timings = { ...DEFAULT_TIMINGS, ...o.timings };
    this.trouble = new ReadTrouble(this.#monotonic);
    this.#history = new SeenHistory(this.#timings, this.#monotonic);
    this.#provedAt = this.#monotonic();
    const { cluster } = o.client;
    this.#where = { cluster, method: 'GET', path: resourcePath(o.resource, o.namespace) };
    this.#labels = { cluster, resource: o.resource.plural };
    this.#intake = new ReflectorIntake<T>({ ...o, cluster, account: o.account ?? accountOf(o.client, o.resource) });
  }

  /** Since the last event, bookmark, list or orderly end of a watch; before the first, since the start. */
  staleMs(): number {
    return this.#monotonic() - this.#provedAt;
  }

  /** What is left out because it is no valid object, in words for people; undefined while nothing is. */
  get leftOut(): string | undefined {
    return this.#intake.leftOut;
  }

  /** The newest resourceVersion of any list, event or bookmark; undefined before the first list. */
  get resourceVersion(): string | undefined {
    return this.#history.newest;
  }

  /** How many lists were begun, the one that is being read among them. */
  get listsBegun(): number {
    return this.#begun;
  }

  /** Ends only with the signal. */
  async run(signal: AbortSignal): Promise<void> {
    setMaxListeners(0, signal);
    while (!signal.aborted) {
      this.#turn = childSignal(signal);
      await this.#try(this.#turn.signal);
      this.#turn.release();
    }
  }

  /**
   * Lists or watches anew, in the place of a rest, of a question that nobody has answered and of a watch that may be dead without a word, and asks for
   * a proof within a second: somebody saw that the server answers again. Not where something was heard just now.
   */
  retryNow(): void {
    if (this.staleMs() < this.#timings.againSeconds * 1_000) return;
    this.#pace = 'again';
    this.#turn?.abort();
  }

  /** One list or watch, and the rest after it where it failed. */
  async #try(signal: AbortSignal): Promise<void> {
    this.#delivered = false;
    const lists = this.#lists;
    let error: unknown;
    try {
      // A first list takes nothing away.
      if (this.#failures > 0 || (this.#resume === undefined && this.#lists > 0)) await this.#o.client.confirmCluster();
      if (this.#resume === undefined && !this.#mayStreamLists()) {
        await this.#listPages(signal);
      } else if (await this.#isPlaceUnreached(signal)) {
        this.#resume = undefined;
        return;
      }
      this.#ended(await this.#watch(signal));
    } catch (e) {
      error = e;
    }
    this.#intake.dropList();
    if (signal.aborted) return;
    if (this.#delivered && !(error instanceof DistrustError)) {
      this.#failures = 0;
    } else if (this.#lists > lists) {
      this.#failures = Math.min(this.#failures, MAX_FAILURES_BESIDE_LISTS);
    }
    // A forgotten resourceVersion is nobody's fault, and common after an outage: unless it happens twice in a row
    // there is nothing to wait for.
    const isForgotten = isGone(error) && !this.#forgotten;
    this.#forgotten = isGone(error);
    if (error === undefined) return;
    this.#failures = countFailure(this.#failures, error);
    this.#note(error);
    const state = { error, failures: this.#failures, isForgotten, isInDoubt: this.#history.inDoubt };
    await pause(retryMs(this.#timings, state, this.#random), signal);
  }

  /** Watches say nothing; whether that is because they start from where the cluster has not come yet. */
  async #isPlaceUnreached(signal: AbortSignal): Promise<boolean> {
    if (this.#resume === undefined || !this.#idle || !this.#history.takeCheck()) {
      return false;
    }
    return this.#history.isBehind(await currentVersion(this.#o, signal));
  }

  #mayStreamLists(): boolean {
    return this.#streamLists && this.#o.client.capabilities.watchList;
  }

  /** Decides from an error where to go on, and tells it once in each form. */
  #note(error: unknown): void {
    const { logger, passing } = this.#o;
    const failures = this.#failures;
    if (isGone(error)) {
      this.#resume = undefined;
      this.#ended('expired');
    } else {
      this.#ended('failed');
      this.#pace = 'proof'; // be sure soon that the next one delivers
    }
    if (error instanceof LimitError) {
      this.#refused('limit');
    } else if (error instanceof DistrustError) {
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
    const quiet = isGone(error) || passing?.(error, failures) === true;
    const before = this.trouble.problem;
    const problem = this.trouble.note(error, quiet);
    const level = quiet || (problem === before && failures > 1) ? 'debug' : 'warn';
    logger?.[level]({ ...this.#labels, failures, staleMs: this.staleMs() }, `watching ${this.#where.path}: ${problem}`);
  }

  /** With `refused` an empty list has been seen already. */
  async #listPages(signal: AbortSignal, refused = false): Promise<void> {
    let version = refused ? undefined : await this.#readPages(signal);
    if (version === undefined || this.#intake.isListSuspect) {
      this.#refused('empty');
      await pause(this.#timings.confirmMs, signal);
      version = await this.#readPages(signal);
      if (this.#intake.isListEmpty) {
        await checkGone(this.#o, this.#o.sink.values(), signal);
      }
    }
    this.#accept(version, 'pages');
    if (!this.#streamLists) {
      this.#o.client.capabilities.watchList = false; // the same list works in pages
    }
  }

  /** Into the list of the intake; returns its resourceVersion. */
  async #readPages(signal: AbortSignal): Promise<string> {
    const { client, resource, namespace, labelSelector, fieldSelector } = this.#o;
    const selection = { namespace, labelSelector, fieldSelector };
    const request = { signal, deadlineMs: this.#timings.pageMs };
    this.#intake.dropList();
    this.#begun++;
    return await readPages(client, resource, { ...selection, request }, (items) => {
      for (const item of items) this.#intake.list(checkIdentified(this.#where, resource, item));
    });
  }

  #accept(version: string, method: 'pages' | 'stream'): void {
    checkOnward(version, this.#history, this.#timings, this.#o);
    const differences = this.#intake.acceptList();
    if (this.#lists > 0) {
      this.#o.metrics?.missed.inc(this.#labels, differences);
    }
    this.#o.metrics?.lists.inc({ ...this.#labels, method });
    this.#lists++;
    this.#pace = 'busy';
    this.#history.listed();
    this.#advance(version);
    this.#delivered = false;
  }

  /** One watch, from the resume point or, as a streamed list, from nothing. */
  async #watch(signal: AbortSignal): Promise<WatchEnd> {
    const streamsList = this.#resume === undefined;
    let gathering = streamsList;
    if (streamsList) this.#begun++;
    const seconds = watchSeconds(this.#timings, streamsList ? 'busy' : this.#pace, this.#random());
    const { silenceMs, startMs } = this.#timings;
    const round = new WatchRound(this.#monotonic, Math.min(silenceMs, seconds * 1000 + PROOF_MARGIN_MS));
    let distrustEmpty = false;
    const onEvent = (event: WatchEvent): void => {
      if (!gathering) {
        this.#take(event, round);
      } else if (gather(event, this.#intake, this.#where, this.#o.resource)) {
        gathering = false;
        if (this.#intake.isListSuspect) {
          distrustEmpty = true;
          round.stop();
        } else {
          this.#accept(listVersionOf(this.#where, event.object), 'stream');
        }
      }
    };
    const query = watchQuery(this.#o, this.#resume, seconds);
    const request = { ...acceptOf(this.#o.resource, 'one'), path: this.#where.path, query, deadlineMs: startMs };
    try {
      await round.run(this.#o.client, request, seconds, signal, onEvent);
    } catch (e) {
      throw e instanceof SyntaxError ? malformed(this.#where, e.message, e) : e;
    }
    if (distrustEmpty) {
      await this.#listPages(signal, true);
      return 'closed';
    }
    if (gathering) {
      this.#streamLists = false; // ignored the question for initial events: an old or foreign server
      throw malformed(this.#where, 'the streamed list has no end');
    }
    return this.#judge(round);
  }

  /** After a watch that ended without an error: how long may the next one last, and must we list? */
  #judge(round: WatchRound): WatchEnd {
    if (!round.silent) {
      if (!round.lasted()) {
        throw new TransportError({ ...this.#where, kind: 'reset', detail: 'the watch ended before its time' });
      }
      this.#prove();
      this.#idle = !round.proved;
      this.#pace = round.events > 0 ? 'busy' : 'quiet';
      return 'closed';
    }
    if ((this.#pace === 'proof' || this.#pace === 'again') && !round.proved) {
      this.#resume = undefined;
      throw new TransportError({ ...this.#where, kind: 'timeout', detail: 'watches deliver nothing; listing again' });
    }
    this.#pace = 'proof';
    return 'silent';
  }

  #take(event: WatchEvent, round: WatchRound): void {
    if (event.type === 'ERROR') {
      throw watchError(this.#where, event.object);
    }
    if (event.type === 'BOOKMARK') {
      round.proved = true;
      this.#checkOrder(resourceVersionOf(event.object));
      return;
    }
    const raw = checkIdentified(this.#where, this.#o.resource, event.object);
    const version = raw.metadata.resourceVersion;
    const outcome = this.#intake.apply(event.type, raw);
    round.events++;
    round.proved = true;
    this.#o.metrics?.events.inc({ ...this.#labels, outcome });
    if (outcome === 'inferred') {
      const { cluster } = this.#labels;
      throw new DistrustError(
        'disorder',
        `${cluster} said of ${this.#where.path} that what nobody knew was deleted; listing again`,
      );
    }
    this.#checkOrder(version ?? '');
  }

  /** Events of one watch only go forward. What else went missing on the way to one that does not cannot be known. */
  #checkOrder(version: string): void {
    if (this.#history.isBehind(version)) {
      throw new DistrustError(
        'disorder',
        `${this.#labels.cluster} sent watch events of ${this.#where.path} out of order`,
      );
    }
    this.#advance(version);
  }

  #prove(): void {
    this.#provedAt = this.#monotonic();
    this.trouble.over();
    this.#delivered = true;
  }

  #advance(version: string): void {
    this.#prove();
    if (this.#history.advance(version)) {
      this.#resume = version;
    }
  }

  #refused(reason: string): void {
    this.#o.metrics?.refused.inc({ ...this.#labels, reason });
  }

  #ended(end: WatchEnd | 'expired' | 'failed'): void {
    this.#o.metrics?.watches.inc({ ...this.#labels, end });
  }
}
