import type { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { pipeline } from 'node:stream/promises';
import { Writable } from 'node:stream';
import { ApiError, isForbidden } from '../../kube/errors.ts';
import { NODES, resourcePath } from '../../kube/resource.ts';
import { parseJson } from '../../kube/json.ts';
import { LineSplitter } from './line-splitter.ts';

/** What reading usage needs of a member's client; KubeClient has it. */
export interface UsageClient {
  readonly cluster: string;
  stream(request: {
    path: string;
    query?: Record<string, string>;
    accept: string;
    gzip: boolean;
    deadlineMs: number;
    signal: AbortSignal;
  }): Promise<{ headers: Record<string, string | string[] | undefined>; body: Readable }>;
  request(request: {
    path: string;
    query?: Record<string, string>;
    gzip: boolean;
    retry: boolean;
    deadlineMs: number;
    signal: AbortSignal;
  }): Promise<unknown>;
}

/** The member will not tell, and asking again soon makes no sense. */
export class UsageRefused extends Error {
  override readonly name = 'UsageRefused';
}

/** More than any kubelet says: a broken or hostile one must not fill our memory. */
const MAX_BYTES = 128 * 1024 * 1024;
const MAX_JSON_BYTES = 32 * 1024 * 1024;
/**
 * What a kubelet answers to paths that it does not serve, or an API server that has no such node, or one whose address it
 * does not connect to (400).
 */
const NOT_SERVED = new Set([400, 401, 403, 404, 405, 501]);
/** How long a right that is missing is not tried, in ms. */
const FORBIDDEN_MS = 60_000;

/**
 * Reads from the kubelets of a member through its API server (nodes/NAME/proxy), which asks for `get` on `nodes/proxy`.
 * Without that right every read is refused at once, and the right is tried again once a minute.
 */
export class MemberKubelets {
  readonly #client: UsageClient;
  readonly #monotonic: () => number;
  #forbiddenUntil = 0;

  constructor(client: UsageClient, monotonic: () => number) {
    this.#client = client;
    this.#monotonic = monotonic;
  }

  /** Hands on a text line by line as it comes. Rejects with UsageRefused, or with what went wrong. */
  async lines(node: string, path: string, onLine: (line: string) => void, signal: AbortSignal): Promise<void> {
    const splitter = new LineSplitter(onLine);
    await this.#read(node, path, {}, MAX_BYTES, (chunk) => splitter.push(chunk), signal);
    splitter.end();
  }

  /** A JSON answer, numbers as in {@link parseJson}. Rejects like {@link lines}. */
  async json(node: string, path: string, query: Record<string, string>, signal: AbortSignal): Promise<unknown> {
    const chunks: Buffer[] = [];
    await this.#read(node, path, query, MAX_JSON_BYTES, (chunk) => void chunks.push(chunk), signal);
    return parseJson(Buffer.concat(chunks).toString());
  }

  async #read(
    node: string,
    path: string,
    query: Record<string, string>,
    maxBytes: number,
    onData: (chunk: Buffer) => void,
    signal: AbortSignal,
  ): Promise<void> {
    if (this.#monotonic() < this.#forbiddenUntil) throw new UsageRefused('the credentials may not get nodes/proxy');
    const request = {
      path: resourcePath(NODES, undefined, node, `proxy${path}`),
      query,
      // kwok refuses to choose; a kubelet's answer to this is plain text.
      accept: '*/*',
      gzip: true,
      deadlineMs: 30_000,
      signal,
    };
    const { headers, body } = await this.#client.stream(request).catch((error: unknown) => {
      throw this.#refusal(error);
    });
    const sink = new Counting(maxBytes, onData);
    if (headers['content-encoding'] === 'gzip') await pipeline(body, createGunzip(), sink, { signal });
    else await pipeline(body, sink, { signal });
  }

  #refusal(error: unknown): unknown {
    if (!(error instanceof ApiError) || !NOT_SERVED.has(error.code)) return error;
    // The API server itself says why in a Status; a kubelet speaks plain text, and only for itself.
    if (isForbidden(error) && error.reason === 'Forbidden') this.#forbiddenUntil = this.#monotonic() + FORBIDDEN_MS;
    return new UsageRefused(error.message, { cause: error });
  }
}

/** Takes what comes up to a limit. */
class Counting extends Writable {
  readonly #maxBytes: number;
  readonly #onData: (chunk: Buffer) => void;
  #bytes = 0;

  constructor(maxBytes: number, onData: (chunk: Buffer) => void) {
    super();
    this.#maxBytes = maxBytes;
    this.#onData = onData;
  }

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error) => void): void {
    this.#bytes += chunk.length;
    try {
      if (this.#bytes > this.#maxBytes) throw new Error(`the answer is larger than ${this.#maxBytes} bytes`);
      this.#onData(chunk);
      done();
    } catch (error) {
      done(error instanceof Error ? error : new Error(String(error)));
    }
  }
}
