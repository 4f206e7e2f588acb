import { isIP } from 'node:net';
import { createSecureContext } from 'node:tls';
import { callbackify } from 'node:util';
import { Pool, type buildConnector } from 'undici';
import type { ClusterEndpoint, Credentials } from './access.ts';
import { dialServer, type Route, type TlsSettings } from './dial.ts';
import { CancelledError } from './exchange.ts';
import { proxyAuthorities } from './tunnel.ts';

/** Below the API server's own idle limit (90 s), so that it never closes under a request that we just sent. */
const IDLE_TIMEOUT_MS = 60_000;

interface Pools {
  /** Short requests share these connections. */
  calls: Pool;
  /** Each watch or log stream has a connection of its own, so streams and calls never wait for each other. */
  streams: Pool;
  /** For connections beside them. */
  route: Route;
  fingerprint: string;
  ca: string | undefined;
}

/**
 * The connections to one API server with one identity: HTTP/1.1 with keep-alive. When the bytes of a certificate or CA
 * change, new requests go over new connections and the old ones end with the requests that they carry.
 */
export class Transport {
  readonly origin: string;
  readonly pathPrefix: string;
  readonly #endpoint: ClusterEndpoint;
  readonly #credentials: Credentials;
  readonly #connections: number;
  readonly #retired = new Set<Pools>();
  #pools: Pools | undefined;
  #closed = false;

  constructor(endpoint: ClusterEndpoint, credentials: Credentials, connections: number) {
    const url = new URL(endpoint.server);
    this.origin = url.origin;
    this.pathPrefix = url.pathname.replace(/\/+$/, '');
    this.#endpoint = endpoint;
    this.#credentials = credentials;
    this.#connections = connections;
  }

  /** Call after `credentials.headers()`: that is when rotated material is noticed. Throws on unusable PEM. */
  pools(): Pools {
    if (this.#closed) {
      throw new CancelledError('this client is closed');
    }
    const current = this.#pools;
    const fingerprint = this.#credentials.fingerprint();
    const ca = this.#endpoint.ca;
    if (current !== undefined && current.fingerprint === fingerprint && current.ca === ca) {
      return current;
    }
    const next = this.#open(fingerprint, ca);
    if (current !== undefined) {
      void this.#retire(current);
    }
    this.#pools = next;
    return next;
  }

  /** Breaks what is still running and waits until every connection is closed. */
  async close(): Promise<void> {
    this.#closed = true;
    const open = [...this.#retired, ...(this.#pools === undefined ? [] : [this.#pools])];
    this.#pools = undefined;
    await Promise.all(open.flatMap((pools) => [pools.calls.destroy(), pools.streams.destroy()]));
  }

  /** Breaks what is still running; the next request opens new connections. */
  async reconnect(): Promise<void> {
    const current = this.#pools;
    this.#pools = undefined;
    await Promise.all([current?.calls.destroy(), current?.streams.destroy()]);
  }

  #open(fingerprint: string, ca: string | undefined): Pools {
    const { cert, key } = this.#credentials.tls();
    const { hostname } = new URL(this.origin);
    const host = hostname.replace(/^\[|\]$/g, '');
    const serverName = this.#endpoint.serverName ?? (isIP(host) === 0 ? host : undefined);
    const tls: TlsSettings = this.origin.startsWith('https:')
      ? {
          // Parsing the CA bundle takes a millisecond: once here instead of once a connection.
          secureContext: createSecureContext({ ca, cert, key, minVersion: 'TLSv1.2' }),
          rejectUnauthorized: this.#endpoint.insecureSkipTlsVerify !== true,
          ALPNProtocols: ['http/1.1'],
          ...(serverName === undefined ? {} : { servername: serverName }),
        }
      : {};
    const { proxy } = this.#endpoint;
    const route: Route = {
      origin: this.origin,
      tls,
      proxy: proxy && {
        at: proxy,
        secureContext: proxy.secure
          ? createSecureContext({ ca: proxyAuthorities(ca), minVersion: 'TLSv1.2' })
          : undefined,
      },
    };
    const options = {
      pipelining: 1,
      keepAliveTimeout: IDLE_TIMEOUT_MS,
      keepAliveMaxTimeout: IDLE_TIMEOUT_MS,
      headersTimeout: 0, // deadlines are kept by each exchange
      bodyTimeout: 0,
      allowH2: false,
      connect: connectorOf(route),
    };
    return {
      calls: new Pool(this.origin, { ...options, connections: this.#connections }),
      streams: new Pool(this.origin, { ...options, connections: null }),
      route,
      fingerprint,
      ca,
    };
  }

  async #retire(pools: Pools): Promise<void> {
    this.#retired.add(pools);
    await Promise.all([pools.calls.close(), pools.streams.close()]);
    this.#retired.delete(pools);
  }
}

/** What undici calls for a connection. */
function connectorOf(route: Route): buildConnector.connector {
  const dial = callbackify(async () => await dialServer(route));
  return (_options, done) => {
    dial((error: Error | null, socket) => (error === null ? done(null, socket) : done(error, null)));
  };
}
