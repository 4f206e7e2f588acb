import { Pool, type Dispatcher } from 'undici';

/** How to reach an API server as one user, all PEM. */
export interface PlainAccess {
  server: string;
  ca: string;
  cert: string;
  key: string;
}

/** An answer of 400 and above. */
export class RefusedError extends Error {
  readonly code: number;

  constructor(code: number, method: string, path: string, text: string) {
    super(`${method} ${path}: HTTP ${code}: ${text.slice(0, 300)}`);
    this.code = code;
  }
}

/**
 * An API server as seen through undici and nothing else: no retries, no checks, no lossless numbers. The yardstick
 * that the program's own client is held against.
 */
export class PlainApi {
  readonly #requests: Pool;
  readonly #watches: Pool;

  /** `connections`: how many requests are under way at most; watches come on top. */
  constructor(access: PlainAccess, connections: number) {
    const connect = { ca: access.ca, cert: access.cert, key: access.key };
    this.#requests = new Pool(access.server, { connect, connections, headersTimeout: 60_000, bodyTimeout: 60_000 });
    this.#watches = new Pool(access.server, { connect, headersTimeout: 60_000, bodyTimeout: 0 });
  }

  async getJson<T>(path: string): Promise<T> {
    const answer = await this.#send('GET', path);
    return (await answer.body.json()) as T;
  }

  /** Sends a change; the answer is read and thrown away. */
  async change(
    method: 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    path: string,
    body: unknown,
    contentType = 'application/json',
  ): Promise<void> {
    const answer = await this.#send(method, path, { contentType, text: JSON.stringify(body) });
    await answer.body.dump({ limit: 1 << 20 });
  }

  /**
   * Watches a collection until the signal aborts: calls `onEvent` for the bytes of each event line. `path` carries the
   * selectors; what exists already is not reported. A watch that ends is taken up again where it stopped.
   */
  async watch(path: string, signal: AbortSignal, onEvent: (line: Buffer) => void, onStart: () => void): Promise<void> {
    const more = path.includes('?') ? '&' : '?';
    const list = await this.getJson<{ metadata: { resourceVersion: string } }>(`${path}${more}limit=1`);
    let version = list.metadata.resourceVersion;
    let started = false;
    while (!signal.aborted) {
      const url = `${path}${more}watch=1&allowWatchBookmarks=1&resourceVersion=${version}`;
      try {
        const answer = await this.#watches.request({ method: 'GET', path: url, signal });
        if (answer.statusCode !== 200) throw new RefusedError(answer.statusCode, 'GET', url, await answer.body.text());
        if (!started) onStart();
        started = true;
        let rest: Buffer | undefined;
        for await (const chunk of answer.body as AsyncIterable<Buffer>) {
          rest = eachLine(rest, chunk, (line) => {
            version = textAfter(line, '"resourceVersion":"') ?? version;
            if (!line.includes(BOOKMARK)) onEvent(line);
          });
        }
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof RefusedError) throw error;
      }
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.#requests.destroy(), this.#watches.destroy()]);
  }

  async #send(
    method: Dispatcher.HttpMethod,
    path: string,
    body?: { contentType: string; text: string },
  ): Promise<Dispatcher.ResponseData> {
    const answer = await this.#requests.request({
      method,
      path,
      headers: body === undefined ? {} : { 'content-type': body.contentType },
      body: body?.text ?? null,
    });
    if (answer.statusCode >= 400) throw new RefusedError(answer.statusCode, method, path, await answer.body.text());
    return answer;
  }
}

const BOOKMARK = '{"type":"BOOKMARK"';

/** Calls `onLine` for every whole line; @returns the unfinished rest. */
export function eachLine(rest: Buffer | undefined, chunk: Buffer, onLine: (line: Buffer) => void): Buffer | undefined {
  let data = rest === undefined ? chunk : Buffer.concat([rest, chunk]);
  // Only the new bytes can hold a line's end.
  let from = rest?.length ?? 0;
  for (;;) {
    const end = data.indexOf(10, from);
    if (end < 0) return data.length === 0 ? undefined : data;
    if (end > 0) onLine(data.subarray(0, end));
    data = data.subarray(end + 1);
    from = 0;
  }
}

/**
 * The text between the first `mark` and the next quotation mark, without parsing. The API server writes metadata first
 * and `name` as its first field, so this finds an event's own name and version at a fraction of the cost.
 */
export function textAfter(line: Buffer, mark: string): string | undefined {
  const at = line.indexOf(mark);
  if (at < 0) return undefined;
  const from = at + mark.length;
  return line.toString('latin1', from, line.indexOf(34, from));
}
