import { createInterface } from 'node:readline';
import { Agent, request } from 'undici';
import type { KeyPair } from './pki.ts';

/** How to reach a cluster's API as one user: everything PEM, nothing in files. */
export interface ApiAccess {
  /** https://ADDRESS:PORT */
  server: string;
  ca: string;
  cert: string;
  key: string;
}

/** One line of a watch. */
export interface WatchEvent {
  type: string;
  object: { metadata: { resourceVersion: string } };
}

/** A small JSON client for setting clusters up; the program itself has src/kube. */
export class Api {
  readonly access: ApiAccess;
  #agent: Agent;

  constructor(server: string, ca: string, client: KeyPair) {
    this.access = { server, ca, cert: client.cert, key: client.key };
    this.#agent = new Agent({
      connect: { ca, cert: client.cert, key: client.key, timeout: 2_000 },
      headersTimeout: 15_000,
      bodyTimeout: 15_000,
    });
  }

  /** @throws for any answer of 400 and above, with the server's own words. */
  async call(method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, body?: unknown): Promise<unknown> {
    const answer = await request(`${this.access.server}${path}`, {
      method,
      dispatcher: this.#agent,
      headers:
        body === undefined
          ? {}
          : { 'content-type': method === 'PATCH' ? 'application/merge-patch+json' : 'application/json' },
      body: body === undefined ? null : JSON.stringify(body),
    });
    const text = await answer.body.text();
    if (answer.statusCode >= 400) throw new ApiStatusError(answer.statusCode, method, path, text);
    return text.startsWith('{') ? (JSON.parse(text) as unknown) : text;
  }

  /** Creates an object; one that is already there is left as it is. */
  async ensure(path: string, body: unknown): Promise<void> {
    try {
      await this.call('POST', path, body);
    } catch (error) {
      if (!(error instanceof ApiStatusError && error.code === 409)) throw error;
    }
  }

  /**
   * Hands on every object of a collection, and then every change, until the signal aborts. A watch that the server ends, as it does with
   * those that read too slowly, goes on where it was.
   * @throws when the server does not know any more what came since.
   */
  async follow(path: string, signal: AbortSignal, seen: (event: WatchEvent) => void): Promise<void> {
    const list = (await this.call('GET', path)) as {
      metadata: { resourceVersion: string };
      items: WatchEvent['object'][];
    };
    for (const object of list.items) seen({ type: 'ADDED', object });
    let { resourceVersion } = list.metadata;
    while (!signal.aborted) {
      try {
        resourceVersion = await this.#watch(path, resourceVersion, signal, seen);
      } catch (error) {
        if (signal.aborted) return;
        throw error;
      }
    }
  }

  /** One watch until its end; answers with the version of the last event. */
  async #watch(
    path: string,
    resourceVersion: string,
    signal: AbortSignal,
    seen: (event: WatchEvent) => void,
  ): Promise<string> {
    const query = `watch=true&allowWatchBookmarks=true&timeoutSeconds=3600&resourceVersion=${resourceVersion}`;
    const { statusCode, body } = await request(`${this.access.server}${path}?${query}`, {
      dispatcher: this.#agent,
      bodyTimeout: 0,
      signal,
    });
    if (statusCode >= 400) throw new ApiStatusError(statusCode, 'GET', path, await body.text());
    let last = resourceVersion;
    for await (const line of createInterface({ input: body })) {
      const event = JSON.parse(line) as WatchEvent;
      if (event.type === 'ERROR') throw new Error(`the watch of ${path} was refused: ${line.slice(0, 500)}`);
      last = event.object.metadata.resourceVersion;
      if (event.type !== 'BOOKMARK') seen(event);
    }
    return last;
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }
}

class ApiStatusError extends Error {
  readonly code: number;

  constructor(code: number, method: string, path: string, text: string) {
    super(`${method} ${path}: HTTP ${code}: ${text.slice(0, 500)}`);
    this.code = code;
  }
}
