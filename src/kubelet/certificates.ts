import { createPrivateKey, X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';

/** A key with its certificate; `cert` may be followed by the chain. Both PEM. */
export interface KeyedCertificate {
  readonly cert: string;
  readonly key: string;
}

/**
 * Where a kubelet server's serving certificate comes from. `run` obtains the first one and keeps it fresh until the
 * signal aborts; it never rejects. The server asks `current` before each handshake, so a new one needs no restart and
 * open streams never notice.
 */
export interface ServingCertificates {
  current(): KeyedCertificate;
  run(signal: AbortSignal): Promise<void>;
}

/** How a certificate names the virtual node: what the host's API server dials must be among them. */
export interface NodeAddresses {
  readonly nodeName: string;
  /** IP addresses and DNS names; at least one. */
  readonly addresses: readonly string[];
}

/** Throws when the key does not belong to the certificate or either cannot be parsed. */
export function checkKeyed(keyed: KeyedCertificate): X509Certificate {
  const certificate = new X509Certificate(keyed.cert);
  if (!certificate.checkPrivateKey(createPrivateKey(keyed.key))) {
    throw new Error('the key does not belong to the certificate');
  }
  return certificate;
}

/** Milliseconds since the epoch when 70 % of the certificate's life is over. */
export function renewalTime(certificate: X509Certificate): number {
  const from = Date.parse(certificate.validFrom);
  const to = Date.parse(certificate.validTo);
  return from + (to - from) * 0.7;
}

export function subjectAlternativeNames(addresses: readonly string[]): { type: 'ip' | 'dns'; value: string }[] {
  return addresses.map((value) => ({ type: isIP(value) === 0 ? 'dns' : 'ip', value }));
}
