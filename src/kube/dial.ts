import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls, type SecureContext, type TLSSocket } from 'node:tls';
import { childSignal } from './child-signal.ts';
import { CancelledError, DeadlineError } from './exchange.ts';
import { proxyInWords, type Proxy } from './proxy.ts';
import { rootCause } from './transport-failure.ts';
import { openTunnel, ProxyError } from './tunnel.ts';

const CONNECT_TIMEOUT_MS = 10_000;
/** For the way through a proxy: less than what a probe of a member waits by default, so that this one tells of the proxy. */
const PROXY_TIMEOUT_MS = 4_000;
const TCP_KEEP_ALIVE_MS = 15_000;
/** What is read at once where there is no TLS, whose records are shorter, in bytes: undici's own choice. */
const PIECE_BYTES = 65_536;

/** Options for tls.connect; empty for plain http. */
export interface TlsSettings {
  secureContext?: SecureContext;
  rejectUnauthorized?: boolean;
  ALPNProtocols?: string[];
  servername?: string;
}

/** Where an API server is, how it is known, and the way there. */
export interface Route {
  /** `https://host:port` or `http://host:port`. */
  readonly origin: string;
  /** Of the API server, whatever lies on the way to it. */
  readonly tls: TlsSettings;
  /** Undefined: straight. */
  readonly proxy?: { readonly at: Proxy; readonly secureContext: SecureContext | undefined } | undefined;
}

/**
 * The newest TLS session that a server gave for each identity: the next connection resumes it, which saves both sides
 * the signatures. Other settings (a rotated certificate or CA) begin anew.
 */
const sessions = new WeakMap<TlsSettings, Buffer>();

/**
 * A fresh connection to an API server, TLS (verified, HTTP/1.1 by ALPN) or plain by its scheme, with Nagle's algorithm off
 * and TCP keep-alive on. All connections to clusters begin here, those of undici as well. Rejects with the socket's own error,
 * or {@link ProxyError}, after at most ten seconds, four of them for a proxy.
 */
export async function dialServer(route: Route, signal?: AbortSignal): Promise<Socket> {
  const stop = new AbortController();
  const onAbort = (): void => stop.abort(new CancelledError('the caller stopped waiting'));
  const through = route.proxy === undefined ? '' : ` through the proxy ${proxyInWords(route.proxy.at)}`;
  const timer = setTimeout(() => {
    stop.abort(new DeadlineError(`no connection${through} within ${CONNECT_TIMEOUT_MS} ms`));
  }, CONNECT_TIMEOUT_MS);
  signal?.addEventListener('abort', onAbort, { once: true });
  if (signal?.aborted === true) onAbort();
  try {
    return await connected(route, stop.signal);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', onAbort);
  }
}

async function connected({ origin, tls, proxy }: Route, signal: AbortSignal): Promise<Socket> {
  const url = new URL(origin);
  const secure = url.protocol === 'https:';
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const port = url.port === '' ? (secure ? 443 : 80) : Number(url.port);
  signal.throwIfAborted();
  const tunnel = proxy === undefined ? undefined : await tunnelled(proxy, { host, port }, signal);
  if (!secure) return tunnel ?? (await untilOpen(plainSocket(host, port), 'connect', signal));
  return await untilOpen(dialTls(tls, { host, port, ...(tunnel && { socket: tunnel }) }), 'secureConnect', signal);
}

/** A connection that a proxy has led to the server. */
async function tunnelled(
  proxy: NonNullable<Route['proxy']>,
  target: { host: string; port: number },
  signal: AbortSignal,
): Promise<Socket> {
  const late = childSignal(signal);
  const timer = setTimeout(() => {
    late.abort(new ProxyError(proxy.at, `has not led to the API server within ${PROXY_TIMEOUT_MS} ms`));
  }, PROXY_TIMEOUT_MS);
  try {
    return await led(proxy, target, late.signal);
  } finally {
    clearTimeout(timer);
    late.release();
  }
}

async function led(
  { at, secureContext }: NonNullable<Route['proxy']>,
  target: { host: string; port: number },
  signal: AbortSignal,
): Promise<Socket> {
  const { host, port, secure } = at;
  const name = isIP(host) === 0 ? { servername: host } : {};
  let socket: Socket;
  try {
    socket = secure
      ? await untilOpen(connectTls({ host, port, secureContext, ...name }), 'secureConnect', signal)
      : await untilOpen(plainSocket(host, port), 'connect', signal);
  } catch (error) {
    signal.throwIfAborted();
    const root = rootCause(error);
    throw new ProxyError(at, `cannot be reached: ${root instanceof Error ? root.message : String(root)}`);
  }
  // The TLS connection inside of it has errors of its own.
  socket.on('error', () => undefined);
  const cut = (): void => void socket.destroy();
  signal.addEventListener('abort', cut, { once: true });
  try {
    await openTunnel(socket, at, target);
    signal.throwIfAborted();
    return socket;
  } catch (error) {
    socket.destroy();
    signal.throwIfAborted();
    throw error;
  } finally {
    signal.removeEventListener('abort', cut);
  }
}

/** The same socket, once it can be used. */
function untilOpen<T extends Socket>(socket: T, event: 'connect' | 'secureConnect', signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const settle = (): void => {
      signal.removeEventListener('abort', onAbort);
      socket.off('error', fail);
      socket.off('close', onClose);
    };
    const fail = (error: Error): void => {
      settle();
      socket.on('error', () => undefined); // a late error of a socket nobody uses any more
      socket.destroy();
      reject(error);
    };
    const onClose = (): void => fail(Object.assign(new Error('closed during the handshake'), { code: 'ECONNRESET' }));
    const onAbort = (): void => fail(signal.reason as Error);
    signal.addEventListener('abort', onAbort, { once: true });
    socket.on('error', fail);
    socket.on('close', onClose);
    socket.once(event, () => {
      settle();
      socket.setNoDelay(true);
      socket.setKeepAlive(true, TCP_KEEP_ALIVE_MS);
      resolve(socket);
    });
  });
}

function plainSocket(host: string, port: number): Socket {
  const options = { host, port, highWaterMark: PIECE_BYTES };
  return connectTcp(options);
}

function dialTls(tls: TlsSettings, to: { host: string; port: number; socket?: Socket }): TLSSocket {
  const session = sessions.get(tls);
  const socket = connectTls({ ...tls, ...to, ...(session === undefined ? {} : { session }) });
  socket.on('session', (fresh) => sessions.set(tls, fresh));
  return socket;
}

/** Asks whether the connection may be used; one that may not is closed and the refusal thrown on. */
export function askOrDestroy(socket: Socket, mayUse: (() => void) | undefined): void {
  try {
    mayUse?.();
  } catch (refusal) {
    socket.destroy();
    throw refusal;
  }
}
