import { createPrivateKey, X509Certificate } from 'node:crypto';

/** A key with its certificate; `cert` may be followed by the chain. Both PEM. */
export interface KeyedCertificate {
  readonly cert: string;
  readonly key: string;
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
