import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

/** Keys of one run of the server: both are random. */
export interface Keys {
  /** Stands in the address that people open. */
  token: string;
  /** What a browser gets in exchange. */
  cookie: string;
  /** Cookies are the same for all ports of an address, so the port is in the name. */
  port: number;
}

/** `enter`: has the token and gets the cookie. `pass`: has the cookie. */
export type Access = 'enter' | 'pass' | { refused: number; says: string };

/** Who may ask at all, from what the request says of itself: method, address and headers. */
export function accessOf(
  { method, url, headers }: { method: string | undefined; url: URL | undefined; headers: IncomingHttpHeaders },
  { token, cookie, port }: Keys,
): Access {
  const hosts = [`127.0.0.1:${port}`, `localhost:${port}`];
  // A name of somebody else's that leads here (DNS rebinding) is not ours.
  if (url === undefined || !hosts.includes(headers.host ?? '')) {
    return { refused: 421, says: `This is served as http://127.0.0.1:${port} only.` };
  }
  if (method !== 'GET') return { refused: 405, says: 'Only GET is served: this page changes nothing.' };
  const given = url.searchParams.get('token');
  if (url.pathname === '/' && given !== null) {
    return isSame(given, token) ? 'enter' : { refused: 403, says: `The token is wrong. ${OPEN}` };
  }
  const { origin } = headers;
  const site = headers['sec-fetch-site'];
  const isForeign =
    (origin !== undefined && !hosts.some((host) => origin === `http://${host}`)) ||
    (site !== undefined && site !== 'same-origin' && site !== 'none');
  if (isForeign) return { refused: 403, says: 'Other pages may not ask.' };
  return isSame(cookieOf(headers.cookie ?? '', cookieName(port)), cookie) ? 'pass' : { refused: 403, says: OPEN };
}

const OPEN = 'Open the address that kubectl spillway ui printed, with all that stands in it.';

function cookieName(port: number): string {
  return `spillway-ui-${port}`;
}

/** Scripts cannot read it, and other sites cannot make the browser send it. It ends with the browser. */
export function setCookie({ cookie, port }: Keys): string {
  return `${cookieName(port)}=${cookie}; Path=/; HttpOnly; SameSite=Strict`;
}

function cookieOf(header: string, name: string): string {
  const pairs = header.split(';').map((pair) => pair.trim());
  return pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1) ?? '';
}

/** In the same time whatever is given, so that nobody learns a key letter by letter. */
function isSame(given: string, key: string): boolean {
  const hash = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(hash(given), hash(key));
}
