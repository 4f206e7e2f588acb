import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { issueClientCertificate, issueServingCertificate, newAuthority } from '../kube/certificate-authority.ts';
import { checkKeyed, type KeyedCertificate, renewalTime } from '../kube/keyed-certificate.ts';

/** What replicas share: the authority with its key, and the serving certificate it gave. All PEM. */
export interface StoredCertificates {
  /** The newest authority first, then former ones that are still valid: whoever verifies trusts all of them. */
  readonly bundle: string;
  readonly authorityKey: string;
  readonly serving: KeyedCertificate;
}

const YEAR_MS = 365 * 24 * 3_600_000;
const AUTHORITY_LIFE_MS = 10 * YEAR_MS;
/** Of what an authority issues. */
const LEAF_LIFE_MS = YEAR_MS;

/** What the certificates are for. */
export interface Purpose {
  /** Common name of the authority. */
  readonly authority: string;
  /** DNS names and addresses under which the port is called. */
  readonly names: readonly string[];
}

/**
 * What should be stored, given what is: the same object when all is well. Serving certificates are renewed at 70 % of their
 * life and when they lack a name; authorities at 70 % of theirs, while the former one stays trusted as long as anything it
 * signed can be in use. What cannot be read counts as absent, and what is not valid yet is not used: a replica whose clock
 * had jumped ahead made it.
 */
export async function dueCertificates(
  stored: StoredCertificates | undefined,
  { authority, names }: Purpose,
  now: number,
): Promise<StoredCertificates> {
  const known = readable(stored) ? stored : undefined;
  const kept = known === undefined ? [] : certificatesIn(known.bundle).filter((pem) => expiry(pem) > now);
  const [current] = kept;
  const fresh =
    known === undefined || current === undefined || !isCurrent(new X509Certificate(current), now)
      ? await newAuthority(authority, now, AUTHORITY_LIFE_MS)
      : { cert: current, key: known.authorityKey };
  const bundle = [...new Set([fresh.cert, ...kept])].map((pem) => `${pem.trim()}\n`).join('');
  const serving =
    known !== undefined && isGood(known.serving, bundle, names, now)
      ? known.serving
      : await issueServingCertificate(fresh, names, now, LEAF_LIFE_MS);
  if (known !== undefined && bundle === known.bundle && serving === known.serving) return known;
  return { bundle, authorityKey: fresh.key, serving };
}

/**
 * The client certificate of a user that is to be shown to the port of `stored`, given the one there is: the same object when
 * that one is good. It is renewed at 70 % of its life, when it is not valid yet, and when nobody trusts its authority any more.
 */
export async function dueClientCertificate(
  client: KeyedCertificate | undefined,
  { bundle, authorityKey }: StoredCertificates,
  user: string,
  now: number,
): Promise<KeyedCertificate> {
  if (client !== undefined && isUsable(client)) {
    const certificate = new X509Certificate(client.cert);
    const names = certificate.subject.split('\n');
    if (names.includes(`CN=${user}`) && isTrusted(certificate, bundle, now) && isCurrent(certificate, now))
      return client;
  }
  const [cert = ''] = certificatesIn(bundle);
  return await issueClientCertificate({ cert, key: authorityKey }, user, now, LEAF_LIFE_MS);
}

function isUsable(pair: KeyedCertificate): boolean {
  try {
    checkKeyed(pair);
    return true;
  } catch {
    return false;
  }
}

/** By an authority that is valid itself by now: whoever verifies looks at both. */
function isTrusted(certificate: X509Certificate, bundle: string, now: number): boolean {
  return certificatesIn(bundle)
    .map((pem) => new X509Certificate(pem))
    .some((authority) => hasBegun(authority, now) && certificate.verify(authority.publicKey));
}

/** Valid already, and not to be renewed yet. */
function isCurrent(certificate: X509Certificate, now: number): boolean {
  return hasBegun(certificate, now) && renewalTime(certificate) > now;
}

/** Those made here begin five minutes before they are made, so that a little between two clocks does not matter. */
function hasBegun(certificate: X509Certificate, now: number): boolean {
  return Date.parse(certificate.validFrom) <= now;
}

function readable(stored: StoredCertificates | undefined): stored is StoredCertificates {
  if (stored === undefined) return false;
  const [authority = ''] = certificatesIn(stored.bundle);
  return isUsable({ cert: authority, key: stored.authorityKey }) && isUsable(stored.serving);
}

function isGood(serving: KeyedCertificate, bundle: string, names: readonly string[], now: number): boolean {
  const certificate = new X509Certificate(serving.cert);
  const named = names.every((name) =>
    isIP(name) === 0 ? certificate.checkHost(name) !== undefined : certificate.checkIP(name) !== undefined,
  );
  return isTrusted(certificate, bundle, now) && named && isCurrent(certificate, now);
}

function expiry(pem: string): number {
  return Date.parse(new X509Certificate(pem).validTo);
}

function certificatesIn(bundle: string): string[] {
  return bundle.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
}
