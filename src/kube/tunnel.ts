import { rootCertificates } from 'node:tls';
import { request, STATUS_CODES, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { SocksClient } from 'socks';
import { cleanText } from './clean-text.ts';
import { proxyInWords, type Proxy } from './proxy.ts';

/** Of the answer to CONNECT, in bytes. */
const LARGEST_HEAD = 65_536;
/** Of a proxy's own words. */
const LONGEST_WORDS = 200;

/** The proxy, and not the server behind it, is the trouble, or what it says of that server. Never holds the proxy's password. */
export class ProxyError extends Error {
  override readonly name = 'ProxyError';
  readonly code = 'ERR_PROXY';

  constructor(proxy: Proxy, what: string) {
    super(`the proxy ${proxyInWords(proxy)} ${cleanText(what, LONGEST_WORDS)}`);
  }
}

/**
 * The certificates by which a proxy that is spoken to by TLS is known: the public ones that Node.js brings, not those of
 * the machine, and what the kubeconfig trusts.
 */
export function proxyAuthorities(ca: string | undefined): string[] {
  return [...rootCertificates, ...(ca === undefined ? [] : [ca])];
}

/**
 * Asks the proxy at the other end of `socket`, which is connected, for the way to a server. The same socket leads there
 * afterwards. Rejects with {@link ProxyError}; destroying the socket ends it.
 */
export async function openTunnel(socket: Socket, proxy: Proxy, target: { host: string; port: number }): Promise<void> {
  await (proxy.protocol === 'socks5' ? askSocks(socket, proxy, target) : askConnect(socket, proxy, target));
}

function askConnect(socket: Socket, proxy: Proxy, { host, port }: { host: string; port: number }): Promise<void> {
  const authority = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  const { user } = proxy;
  const secret = user === undefined ? undefined : Buffer.from(`${user.name}:${user.password}`).toString('base64');
  return new Promise((resolve, reject) => {
    const sent = request({
      createConnection: () => socket,
      method: 'CONNECT',
      path: authority,
      headers: { host: authority, ...(secret === undefined ? {} : { 'proxy-authorization': `Basic ${secret}` }) },
      maxHeaderSize: LARGEST_HEAD,
    });
    sent.on('error', (error) => reject(new ProxyError(proxy, `closed the connection: ${error.message}`)));
    sent.once('connect', (answer: IncomingMessage, _socket: Socket, head: Buffer) => {
      const { statusCode: code = 0 } = answer;
      if (code < 200 || code > 299) {
        reject(new ProxyError(proxy, refusalWords(code)));
        return;
      }
      if (head.length > 0) socket.unshift(head);
      resolve();
    });
    sent.end();
  });
}

function refusalWords(code: number): string {
  const words = `${code} ${STATUS_CODES[code] ?? ''}`.trim();
  if (code === 407) return `wants another user or password: ${words}`;
  return code >= 500 ? `does not reach the API server: ${words}` : `refuses to lead to the API server: ${words}`;
}

async function askSocks(socket: Socket, proxy: Proxy, destination: { host: string; port: number }): Promise<void> {
  const { host, port, user } = proxy;
  try {
    await SocksClient.createConnection({
      command: 'connect',
      existing_socket: socket,
      destination,
      proxy: { type: 5, host, port, ...(user === undefined ? {} : { userId: user.name, password: user.password }) },
    });
  } catch (error) {
    // Not as its cause: it carries the password.
    throw new ProxyError(proxy, `refuses: ${error instanceof Error ? error.message : 'no reason is known'}`);
  }
}
