import 'reflect-metadata';
import { randomBytes, webcrypto } from 'node:crypto';
import { type Extension, Pkcs10CertificateRequestGenerator } from '@peculiar/x509';

export const KEY = { name: 'ECDSA', namedCurve: 'P-256' };
export const SIGNING = { name: 'ECDSA', hash: 'SHA-256' };

/** A new private key (PKCS #8 PEM) and a certificate request (PEM) that it signed. */
export interface KeyedRequest {
  readonly key: string;
  readonly request: string;
}

/** Exactly the subject that Kubernetes' signers for nodes require. */
export function nodeSubject(nodeName: string): { CN?: string[]; O?: string[] }[] {
  return [{ O: ['system:nodes'] }, { CN: [`system:node:${nodeName}`] }];
}

/** A request in the name of a node, for a new EC P-256 key. */
export async function newNodeRequest(nodeName: string, extensions: Extension[] = []): Promise<KeyedRequest> {
  const keys = await newKeys();
  const request = await Pkcs10CertificateRequestGenerator.create({
    name: nodeSubject(nodeName),
    keys,
    signingAlgorithm: SIGNING,
    extensions,
  });
  return { key: await privateKeyPem(keys), request: request.toString('pem') };
}

export async function newKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(KEY, true, ['sign', 'verify']);
}

export async function privateKeyPem(keys: webcrypto.CryptoKeyPair): Promise<string> {
  const der = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey)).toString('base64');
  const lines = der.match(/.{1,64}/g) ?? [];
  return `-----BEGIN PRIVATE KEY-----\n${lines.join('\n')}\n-----END PRIVATE KEY-----\n`;
}

/** 128 bits, positive, and without a leading zero byte, which strict readers of DER refuse. */
export function serialNumber(): string {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x3f) | 0x40;
  return bytes.toString('hex');
}
