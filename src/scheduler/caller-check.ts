import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { TLSSocket } from 'node:tls';

export interface CallerCheckOptions {
  /** Common names of client certificates that may ask; the certificate itself was verified by the handshake. */
  clientNames: readonly string[];
  /** The secret that a caller without a certificate must know; undefined: there is none. Asked for each request. */
  token: () => string | undefined;
  /** Wall clock in ms. */
  clock: () => number;
}

const BEARER = /^bearer +(\S+) *$/i;
const BASIC = /^basic +([A-Za-z0-9+/=]+) *$/i;

/**
 * Who may ask: a scheduler with a client certificate of a trusted authority and one of the names, or one that knows the
 * token, as a bearer token or as the password in the URL of its configuration (kube-scheduler can send no other).
 */
export class CallerCheck {
  readonly #o: CallerCheckOptions;

  constructor(options: CallerCheckOptions) {
    this.#o = options;
  }

  /** `certificateCounts`: the certificate was verified against the authorities that are in force now. */
  allows(request: IncomingMessage, certificateCounts: boolean): boolean {
    if (certificateCounts && this.#hasCertificate(request.socket as TLSSocket)) return true;
    return this.#hasToken(request.headers.authorization);
  }

  #hasCertificate(socket: TLSSocket): boolean {
    if (!socket.authorized) return false;
    const { subject, valid_to: validTo } = socket.getPeerCertificate();
    // The connection may be older than the end of the certificate.
    return this.#o.clientNames.includes(String(subject?.CN)) && this.#o.clock() <= Date.parse(validTo);
  }

  #hasToken(header: string | undefined): boolean {
    const token = this.#o.token();
    if (token === undefined || token === '' || header === undefined) return false;
    const bearer = BEARER.exec(header)?.[1];
    if (bearer !== undefined) return isSame(bearer, token);
    const basic = BASIC.exec(header)?.[1];
    if (basic === undefined) return false;
    const text = Buffer.from(basic, 'base64').toString('utf8');
    return isSame(text.slice(text.indexOf(':') + 1), token);
  }
}

/** Takes the same time whatever the difference. */
function isSame(a: string, b: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}
