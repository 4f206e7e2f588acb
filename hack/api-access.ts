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
