import 'reflect-metadata';
import { webcrypto } from 'node:crypto';
import { isIP } from 'node:net';
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  type Extension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509';
import { KEY, newKeys, privateKeyPem, serialNumber, SIGNING } from './certificate-key.ts';
import type { KeyedCertificate } from './keyed-certificate.ts';

/** For clocks that run a little behind ours; as long as Kubernetes' own signers allow for. */
const EARLIER_MS = 5 * 60_000;

/** A new authority that vouches for itself; `now` and `lifeMs` in milliseconds. */
export async function newAuthority(commonName: string, now: number, lifeMs: number): Promise<KeyedCertificate> {
  const keys = await newKeys();
  const certificate = await X509CertificateGenerator.createSelfSigned({
    serialNumber: serialNumber(),
    name: [{ CN: [commonName] }],
    keys,
    signingAlgorithm: SIGNING,
    notBefore: new Date(now - EARLIER_MS),
    notAfter: new Date(now + lifeMs),
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign, true),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { cert: certificate.toString('pem'), key: await privateKeyPem(keys) };
}

/**
 * A serving certificate of an authority (its own certificate first in `authority.cert`) for DNS names and IP addresses. It
 * never outlives the authority.
 */
export async function issueServingCertificate(
  authority: KeyedCertificate,
  names: readonly string[],
  now: number,
  lifeMs: number,
): Promise<KeyedCertificate> {
  const alternatives = names.map((value) => ({ type: isIP(value) === 0 ? ('dns' as const) : ('ip' as const), value }));
  return await issue(authority, names[0]?.slice(0, 64) ?? '', now, lifeMs, [
    new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
    new SubjectAlternativeNameExtension(alternatives),
  ]);
}

/** A client certificate of an authority for a user of that name, likewise. */
export async function issueClientCertificate(
  authority: KeyedCertificate,
  user: string,
  now: number,
  lifeMs: number,
): Promise<KeyedCertificate> {
  return await issue(authority, user, now, lifeMs, [new ExtendedKeyUsageExtension([ExtendedKeyUsage.clientAuth])]);
}

async function issue(
  authority: KeyedCertificate,
  commonName: string,
  now: number,
  lifeMs: number,
  extensions: readonly Extension[],
): Promise<KeyedCertificate> {
  const issuer = new X509Certificate(authority.cert);
  const keys = await newKeys();
  const certificate = await X509CertificateGenerator.create({
    serialNumber: serialNumber(),
    subject: [{ CN: [commonName] }],
    issuer: issuer.subjectName,
    publicKey: keys.publicKey,
    signingKey: await importKey(authority.key),
    signingAlgorithm: SIGNING,
    notBefore: new Date(now - EARLIER_MS),
    notAfter: new Date(Math.min(now + lifeMs, issuer.notAfter.getTime())),
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      ...extensions,
      await AuthorityKeyIdentifierExtension.create(issuer),
    ],
  });
  return { cert: certificate.toString('pem'), key: await privateKeyPem(keys) };
}

async function importKey(pem: string): Promise<webcrypto.CryptoKey> {
  const der = Buffer.from(pem.replaceAll(/-----[^-]+-----|\s/g, ''), 'base64');
  return await webcrypto.subtle.importKey('pkcs8', der, KEY, false, ['sign']);
}
