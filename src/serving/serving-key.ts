import 'reflect-metadata';
import {
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  type Extension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  X509CertificateGenerator,
} from '@peculiar/x509';
import {
  type KeyedRequest,
  newKeys,
  newNodeRequest,
  nodeSubject,
  privateKeyPem,
  serialNumber,
  SIGNING,
} from '../kube/certificate-key.ts';
import type { KeyedCertificate } from '../kube/keyed-certificate.ts';
import type { NodeAddresses } from './certificates.ts';
import { subjectAlternativeNames } from './certificates.ts';

/** A new EC P-256 key (PKCS #8 PEM) and a certificate request (PEM) for it. */
export async function newServingRequest(node: NodeAddresses): Promise<KeyedRequest> {
  return await newNodeRequest(node.nodeName, extensionsOf(node));
}

/** A certificate that nobody vouches for; `now` and `lifeMs` in milliseconds. */
export async function selfSigned(node: NodeAddresses, now: number, lifeMs: number): Promise<KeyedCertificate> {
  const keys = await newKeys();
  const certificate = await X509CertificateGenerator.createSelfSigned({
    serialNumber: serialNumber(),
    name: nodeSubject(node.nodeName),
    keys,
    signingAlgorithm: SIGNING,
    // A minute back, for clocks that run a little behind ours.
    notBefore: new Date(now - 60_000),
    notAfter: new Date(now + lifeMs),
    extensions: extensionsOf(node),
  });
  return { cert: certificate.toString('pem'), key: await privateKeyPem(keys) };
}

function extensionsOf(node: NodeAddresses): Extension[] {
  return [
    new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
    new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
    new SubjectAlternativeNameExtension(subjectAlternativeNames(node.addresses)),
  ];
}
