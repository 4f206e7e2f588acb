import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { CancelledError, DeadlineError } from './exchange.ts';
import type { TlsSettings } from './transport.ts';

const CONNECT_TIMEOUT_MS = 10_000;
const TCP_KEEP_ALIVE_MS = 15_000;

/**
 * The newest TLS session that a server gave for each identity: the next connection resumes it, which saves both sides
 * the signatures. Other settings (a rotated certificate or CA) begin anew.
 */
const sessions = new WeakMap<TlsSettings, Buffer>();

/**
 * A fresh connection to `origin`, TLS (verified, HTTP/1.1 by ALPN) or plain by its scheme, with Nagle's algorithm off
 * and TCP keep-alive on. Rejects with the socket's own error after at most ten seconds.
 */
export function dialServer(origin: string, tls: TlsSettings, signal?: AbortSignal): Promise<Socket> {
  const url = new URL(origin);
  const secure = url.protocol === 'https:';
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const port = url.port === '' ? (secure ? 443 : 80) : Number(url.port);
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) {
      reject(new CancelledError('the caller stopped waiting'));
      return;
    }
    const socket: Socket = secure ? dialTls(tls, host, port) : connectTcp({ host, port });
    const settle = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
      socket.off('error', onError);
      socket.off('close', onClose);
    };
    const fail = (error: Error): void => {
      settle();
      socket.on('error', () => undefined); // a late error of a socket nobody uses any more
      socket.destroy();
      reject(error);
    };
    const onError = (error: Error): void => fail(error);
    const onClose = (): void => fail(Object.assign(new Error('closed during the handshake'), { code: 'ECONNRESET' }));
    const onAbort = (): void => fail(new CancelledError('the caller stopped waiting'));
    const timer = setTimeout(() => {
      fail(new DeadlineError(`no connection within ${CONNECT_TIMEOUT_MS} ms`));
    }, CONNECT_TIMEOUT_MS);
    signal?.addEventListener('abort', onAbort, { once: true });
    socket.on('error', onError);
    socket.on('close', onClose);
    socket.once(secure ? 'secureConnect' : 'connect', () => {
      settle();
      socket.setNoDelay(true);
      socket.setKeepAlive(true, TCP_KEEP_ALIVE_MS);
      resolve(socket);
    });
  });
}

function dialTls(tls: TlsSettings, host: string, port: number): TLSSocket {
  const session = sessions.get(tls);
  const socket = connectTls({ ...tls, host, port, ...(session === undefined ? {} : { session }) });
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
