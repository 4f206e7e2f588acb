import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { ClusterEndpoint, Credentials } from './access.ts';
import { AnswerRoom } from './answer-room.ts';
import { decodeText } from './body-text.ts';
import type { CacheShare } from './cache-room.ts';
import type { ClientMetrics } from './client-metrics.ts';
import { monotonic } from './clock.ts';
import { askOrDestroy, dialServer } from './dial.ts';
import { CredentialsError, isUnauthorized, ApiError, type TransportError } from './errors.ts';
import { CancelledError, DeadlineError, exchange, type Answer, type Outgoing } from './exchange.ts';
import { stringifyJson } from './json.ts';
import { decompress, parseAnswer, refusal, type Where } from './response-body.ts';
import { LARGEST_REFUSAL, openFramed, readFramed, readUpTo } from './framed-stream.ts';
import { openStream } from './stream-exchange.ts';
import { withQuery, type KubeRequest, type StreamResponse } from './request.ts';
import { retryDelayMs, tellingError } from './retry-policy.ts';
import { transportError } from './transport-failure.ts';
import { Transport } from './transport.ts';

export type { KubeRequest, Query, StreamResponse } from './request.ts';

const DEFAULT_DEADLINE_MS = 30_000;
const DEFAULT_CONNECTIONS = 16;
/** Those who want new connections within this time want the same ones, in ms. */
const TOGETHER_MS = 1_000;

export interface KubeClientOptions {
  /** The cluster's name in errors, logs and metrics. */
  cluster: string;
  endpoint: ClusterEndpoint;
  credentials: Credentials;
  /** Default `spillway`. */
  userAgent?: string;
  /** Connections for short requests; default 16. Streams have their own. */
  connections?: number;
  /** The memory for caches; default: not bounded, for a cluster that is trusted. */
  caches?: CacheShare | undefined;
  logger?: Logger;
  metrics?: ClientMetrics | undefined;
  /**
   * Asked before anything but a read is sent, and before a connection is upgraded; throws to refuse it. Asked again at each
   * try, at the moment when a connection takes the request: much may have happened while it waited for one.
   */
  guard?: RequestGuard;
  /** Rejects while another cluster answers in the place of this one; see {@link KubeClient.confirmCluster}. */
  confirmCluster?: () => Promise<void>;
}

/** `body` is what will be sent as JSON. An upgrade of a connection counts as CONNECT. */
export type RequestGuard = (request: { method: string; path: string; body?: unknown }) => void;

/** A connection ready for an HTTP/1.1 upgrade. */
export interface DialedServer {
  socket: Socket;
  /** Value for the Host header. */
  host: string;
  /** To be put before every path; '' for most servers. */
  pathPrefix: string;
  /** Credentials for the request. */
  headers: Record<string, string>;
}

/**
 * Speaks to one API server with one identity. Rejects with ApiError (the server refused), TransportError (no usable
 * answer) or CredentialsError (we cannot prove who we are). After a 401 the credentials are looked at once more.
 */
export class KubeClient {
  readonly cluster: string;
  readonly server: string;
  /** What the server has shown not to know; shared by everyone who uses this client. */
  readonly capabilities = { watchList: true };
  /** Bounds what unfinished answers take. */
  readonly answers = new AnswerRoom();
  /** What caches of this cluster may take; undefined: as much as there is. */
  readonly caches: CacheShare | undefined;
  readonly #credentials: Credentials;
  readonly #transport: Transport;
  readonly #userAgent: string;
  readonly #logger: Logger | undefined;
  readonly #metrics: ClientMetrics | undefined;
  readonly #guard: RequestGuard | undefined;
  readonly #confirmCluster: (() => Promise<void>) | undefined;
  readonly #streaming = new Set<Readable>();
  /** Monotonic ms. */
  #reconnectedAt = Number.NEGATIVE_INFINITY;
  #plainHeaders: { from: Record<string, string>; list: string[] } | undefined;

  constructor(o: KubeClientOptions) {
    this.cluster = o.cluster;
    this.server = o.endpoint.server;
    this.#credentials = o.credentials;
    this.#transport = new Transport(o.endpoint, o.credentials, o.connections ?? DEFAULT_CONNECTIONS);
    this.#userAgent = o.userAgent ?? 'spillway';
    this.#logger = o.logger;
    this.#metrics = o.metrics;
    this.#guard = o.guard;
    this.#confirmCluster = o.confirmCluster;
    this.caches = o.caches;
  }

  /** The answer's JSON. `T` is the caller's claim; verbs.ts checks what matters of it. */
  async request<T = unknown>(r: KubeRequest): Promise<T> {
    const { managedFields = true } = r;
    return (await this.#retried(r, (where, body) => parseAnswer(where, body, managedFields))) as T;
  }

  /** The answer's text. */
  text(r: KubeRequest): Promise<string> {
    return this.#retried({ accept: '*/*', ...r }, (_where, body) => decodeText(body));
  }

  /**
   * An answer whose body is read as it comes, without an end to its time. It has a connection of its own. Not retried,
   * except after 401.
   */
  async stream(r: KubeRequest): Promise<StreamResponse> {
    const where = this.#where(r);
    const answer = await this.#authorized(r, where, async (headers, timeoutMs) => {
      const started = monotonic();
      const fence = this.#fence(r, where);
      const stop = new AbortController();
      const timer = setTimeout(() => stop.abort(new DeadlineError(`nothing within ${timeoutMs} ms`)), timeoutMs);
      const onAbort = (): void => stop.abort(new CancelledError('the caller stopped waiting'));
      r.signal?.addEventListener('abort', onAbort, { once: true });
      if (r.signal?.aborted === true) {
        onAbort();
      }
      const release = (): void => r.signal?.removeEventListener('abort', onAbort);
      try {
        const opened = await this.#openStream(r, headers, stop.signal, fence?.ask);
        const { status, headers: about, body } = opened;
        this.#observe(where, String(status), started);
        if (status >= 300) {
          throw refusal(where, status, about, await opened.whole());
        }
        this.#streaming.add(body);
        body.once('close', () => {
          this.#streaming.delete(body);
          release();
        });
        return { status, headers: about, body, framing: opened.framing };
      } catch (e) {
        release();
        throw fence?.refusal ?? this.#failure(where, e, started);
      } finally {
        clearTimeout(timer);
      }
    });
    return answer;
  }

  async #openStream(
    r: KubeRequest,
    headers: Record<string, string>,
    signal: AbortSignal,
    beforeSend: (() => void) | undefined,
  ): Promise<StreamResponse & { whole: () => Promise<Buffer> }> {
    const { route } = this.#transport.pools();
    const outgoing = this.#outgoing(r, headers);
    if (r.framed === true) {
      const answer = await openFramed(route, outgoing, signal);
      return { ...answer, status: answer.statusCode, whole: async () => await readFramed(answer) };
    }
    const body = await openStream(route, outgoing, signal, beforeSend);
    return {
      status: body.statusCode ?? 0,
      headers: body.headers,
      body,
      whole: async () => await readUpTo(body, LARGEST_REFUSAL),
    };
  }

  /**
   * Hands the body to `onData` piece by piece as it arrives and resolves when the server ends it: what a watch needs,
   * without a stream in between. Not retried, except after 401.
   */
  async receive(r: KubeRequest, onData: (chunk: Buffer) => void, onStart?: () => void): Promise<void> {
    const where = this.#where(r);
    await this.#authorized(r, where, async (headers, timeoutMs) => {
      const started = monotonic();
      const answer = await this.#exchanged(r, where, started, (beforeSend) =>
        exchange(this.#transport.pools().streams, this.#outgoing(r, headers), {
          timeoutMs,
          signal: r.signal,
          beforeSend,
          room: this.answers,
          onData,
          onStart: () => {
            this.#observe(where, '200', started);
            onStart?.();
          },
        }),
      );
      if (answer.status !== 200) {
        this.#observe(where, String(answer.status), started);
        throw refusal(where, answer.status, answer.headers, answer.body);
      }
    });
  }

  /** A raw connection to the server plus credentials, for requests that upgrade it. The caller owns the socket. */
  async dial(signal?: AbortSignal): Promise<DialedServer> {
    const headers = await this.#credentials.headers();
    const { host } = new URL(this.#transport.origin);
    const where = { cluster: this.cluster, method: 'CONNECT', path: '/' };
    this.#guard?.(where);
    let socket: Socket;
    try {
      socket = await dialServer(this.#transport.pools().route, signal);
    } catch (e) {
      throw transportError(where, e);
    }
    askOrDestroy(socket, () => this.#guard?.(where));
    return { socket, host, pathPrefix: this.#transport.pathPrefix, headers };
  }

  /** To be asked before a list is believed, and after a failure: rejects when another cluster answers by now. */
  async confirmCluster(): Promise<void> {
    await this.#confirmCluster?.();
  }

  /** Breaks what is under way; what is asked later goes over new connections. Those who ask within the same second share that. */
  async reconnect(): Promise<void> {
    const now = monotonic();
    if (now - this.#reconnectedAt < TOGETHER_MS) return;
    this.#reconnectedAt = now;
    for (const body of this.#streaming) body.destroy();
    await this.#transport.reconnect();
  }

  /** Breaks what is under way. Requests made later fail. */
  async close(): Promise<void> {
    for (const body of this.#streaming) body.destroy();
    await this.#transport.close();
  }

  async #retried<T>(r: KubeRequest, read: (where: Where, body: Buffer) => T): Promise<T> {
    const where = this.#where(r);
    const safe = r.retry ?? where.method === 'GET';
    const deadline = monotonic() + (r.deadlineMs ?? DEFAULT_DEADLINE_MS);
    let before: unknown;
    for (let attempt = 0; ; attempt++) {
      try {
        return read(where, await this.#once(r, where, deadline));
      } catch (error) {
        const remainingMs = deadline - monotonic();
        const delay =
          r.retry === false ? undefined : retryDelayMs({ error, attempt, safe, remainingMs, random: Math.random() });
        if (delay === undefined) {
          throw tellingError(error, before);
        }
        before = error;
        this.#logger?.debug({ ...where, attempt, delay, err: error }, 'trying again');
        await this.#pause(where, delay, r.signal);
      }
    }
  }

  async #once(r: KubeRequest, where: Where, deadline: number): Promise<Buffer> {
    const answer = await this.#authorized(
      r,
      where,
      async (headers, timeoutMs) => {
        const started = monotonic();
        const got = await this.#exchanged(r, where, started, (beforeSend) =>
          exchange(this.#transport.pools().calls, this.#outgoing(r, headers), {
            timeoutMs,
            signal: r.signal,
            beforeSend,
            room: this.answers,
          }),
        );
        this.#observe(where, String(got.status), started);
        if (got.status < 200 || got.status >= 300) {
          throw refusal(where, got.status, got.headers, await decompress(where, got.headers, got.body));
        }
        return got;
      },
      deadline,
    );
    return answer.headers['content-encoding'] === undefined
      ? answer.body
      : decompress(where, answer.headers, answer.body);
  }

  /** Runs `send` with credentials; after 401 asks for fresh ones and runs it once more if they differ. */
  async #authorized<T>(
    r: KubeRequest,
    where: Where,
    send: (headers: Record<string, string>, timeoutMs: number) => Promise<T>,
    deadline = monotonic() + (r.deadlineMs ?? DEFAULT_DEADLINE_MS),
  ): Promise<T> {
    const headers = await this.#credentials.headers();
    const fingerprint = this.#credentials.fingerprint();
    // Here already, so that a refusal need not wait for a connection.
    if (where.method !== 'GET') this.#guard?.({ ...where, body: r.body });
    try {
      return await send(headers, Math.max(1, deadline - monotonic()));
    } catch (e) {
      if (!isUnauthorized(e)) {
        throw e;
      }
      const fresh = await this.#credentials.headers(true);
      const changed = this.#credentials.fingerprint() !== fingerprint || !sameHeaders(headers, fresh);
      if (!changed) {
        throw e;
      }
      this.#logger?.info({ cluster: this.cluster, path: where.path }, 'credentials were renewed after a 401');
      return send(fresh, Math.max(1, deadline - monotonic()));
    }
  }

  #outgoing(r: KubeRequest, credentials: Record<string, string>): Outgoing {
    let headers = this.#plainHeaders;
    if (headers?.from !== credentials) {
      headers = { from: credentials, list: ['user-agent', this.#userAgent, ...Object.entries(credentials).flat()] };
      this.#plainHeaders = headers;
    }
    const list = [...headers.list, 'accept', r.accept ?? 'application/json'];
    if (r.gzip === true) {
      list.push('accept-encoding', 'gzip');
    }
    let body: string | Buffer | null = null;
    if (r.body !== undefined) {
      body = typeof r.body === 'string' || Buffer.isBuffer(r.body) ? r.body : stringifyJson(r.body);
      list.push('content-type', r.contentType ?? 'application/json');
    }
    const path = this.#transport.pathPrefix + withQuery(r.path, r.query);
    return { method: r.method ?? 'GET', path, headers: list, body, reset: false };
  }

  async #exchanged(
    r: KubeRequest,
    where: Where,
    started: number,
    run: (beforeSend: (() => void) | undefined) => Promise<Answer>,
  ): Promise<Answer> {
    const fence = this.#fence(r, where);
    try {
      return await run(fence?.ask);
    } catch (e) {
      throw fence?.refusal ?? this.#failure(where, e, started);
    }
  }

  /** Asks the guard and keeps its refusal apart from what the transport makes of it; undefined where nobody is asked. */
  #fence(r: KubeRequest, where: Where): { ask: () => void; refusal?: unknown } | undefined {
    const guard = this.#guard;
    if (guard === undefined || where.method === 'GET') return undefined;
    const fence: { ask: () => void; refusal?: unknown } = {
      ask: () => {
        try {
          guard({ ...where, body: r.body });
        } catch (refusal) {
          fence.refusal = refusal;
          throw refusal;
        }
      },
    };
    return fence;
  }

  #failure(where: Where, error: unknown, started: number): ApiError | TransportError | CredentialsError {
    if (error instanceof ApiError || error instanceof CredentialsError) {
      return error;
    }
    const failure = transportError(where, error);
    this.#observe(where, failure.kind, started);
    return failure;
  }

  #observe(where: Where, code: string, started: number): void {
    this.#metrics?.observe({ ...where, code, seconds: (monotonic() - started) / 1000 });
  }

  async #pause(where: Where, ms: number, signal: AbortSignal | undefined): Promise<void> {
    try {
      await sleep(ms, undefined, signal === undefined ? {} : { signal });
    } catch (e) {
      throw transportError(where, e);
    }
  }

  #where(r: KubeRequest): Where {
    return { cluster: this.cluster, method: r.method ?? 'GET', path: r.path };
  }
}

function sameHeaders(a: Record<string, string>, b: Record<string, string>): boolean {
  const names = Object.keys(a);
  return a === b || (names.length === Object.keys(b).length && names.every((name) => a[name] === b[name]));
}
