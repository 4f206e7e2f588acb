import 'reflect-metadata';
import { randomBytes, webcrypto } from 'node:crypto';
import {
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  Pkcs10CertificateRequestGenerator,
  SubjectAlternativeNameExtension,
  X509CertificateGenerator,
} from '@peculiar/x509';
import type { KeyedCertificate, NodeAddresses } from './certificates.ts';
import { subjectAlternativeNames } from './certificates.ts';

const KEY = { name: 'ECDSA', namedCurve: 'P-256' };
const SIGNING = { name: 'ECDSA', hash: 'SHA-256' };

/** Exactly the subject that the signer kubernetes.io/kubelet-serving requires. */
function subjectOf(node: NodeAddresses): { CN?: string[]; O?: string[] }[] {
  return [{ O: ['system:nodes'] }, { CN: [`system:node:${node.nodeName}`] }];
}

/** A new EC P-256 key (PKCS #8 PEM) and a certificate request (PEM) for it. */
export async function newServingRequest(node: NodeAddresses): Promise<{ key: string; request: string }> {
  const keys = await newKeys();
  const request = await Pkcs10CertificateRequestGenerator.create({
    name: subjectOf(node),
    keys,
    signingAlgorithm: SIGNING,
    extensions: [
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
      new SubjectAlternativeNameExtension(subjectAlternativeNames(node.addresses)),
    ],
  });
  return { key: await privateKeyPem(keys), request: request.toString('pem') };
}

/** A certificate that nobody vouches for; `now` and `lifeMs` in milliseconds. */
export async function selfSigned(node: NodeAddresses, now: number, lifeMs: number): Promise<KeyedCertificate> {
  const keys = await newKeys();
  const certificate = await X509CertificateGenerator.createSelfSigned({
    serialNumber: serialNumber(),
    name: subjectOf(node),
    keys,
    signingAlgorithm: SIGNING,
    // A minute back, for clocks that run a little behind ours.
    notBefore: new Date(now - 60_000),
    notAfter: new Date(now + lifeMs),
    extensions: [
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
      new SubjectAlternativeNameExtension(subjectAlternativeNames(node.addresses)),
    ],
  });
  return { cert: certificate.toString('pem'), key: await privateKeyPem(keys) };
}

/** 128 bits, positive, and without a leading zero byte, which strict readers of DER refuse. */
function serialNumber(): string {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x3f) | 0x40;
  return bytes.toString('hex');
}

async function newKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(KEY, true, ['sign', 'verify']);
}

async function privateKeyPem(keys: webcrypto.CryptoKeyPair): Promise<string> {
  const der = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey)).toString('base64');
  const lines = der.match(/.{1,64}/g) ?? [];
  return `-----BEGIN PRIVATE KEY-----\n${lines.join('\n')}\n-----END PRIVATE KEY-----\n`;
}
