import type { IncomingMessage } from 'node:http';
import type { TLSSocket } from 'node:tls';

export interface CallerCheckOptions {
  /** Common names of client certificates that may ask; the certificate itself was verified by the handshake. */
  clientNames: readonly string[];
  /** Wall clock in ms. */
  clock: () => number;
}

/**
 * Who may ask: a scheduler with a client certificate of a trusted authority and one of the names. No other proof counts: the only
 * secret that kube-scheduler could send stands in the URL of its configuration, which it writes into Events and its log.
 */
export class CallerCheck {
  readonly #o: CallerCheckOptions;

  constructor(options: CallerCheckOptions) {
    this.#o = options;
  }

  /** `certificateCounts`: the certificate was verified against the authorities that are in force now. */
  allows(request: IncomingMessage, certificateCounts: boolean): boolean {
    const socket = request.socket as TLSSocket;
    if (!certificateCounts || !socket.authorized) return false;
    const { subject, valid_to: validTo } = socket.getPeerCertificate();
    // The connection may be older than the end of the certificate.
    return this.#o.clientNames.includes(String(subject?.CN)) && this.#o.clock() <= Date.parse(validTo);
  }
}
