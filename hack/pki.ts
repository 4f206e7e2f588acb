import 'reflect-metadata';
import * as x509 from '@peculiar/x509';
import { generateKeyPairSync, randomBytes, webcrypto } from 'node:crypto';
import { isIP } from 'node:net';

/** A certificate and its key, PEM. */
export interface KeyPair {
  cert: string;
  key: string;
}

/** A certificate authority that can issue further certificates. */
export interface Authority extends KeyPair {
  readonly issuer: x509.X509Certificate;
  readonly signingKey: webcrypto.CryptoKey;
}

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const SERVER_AUTH = '1.3.6.1.5.5.7.3.1';
const CLIENT_AUTH = '1.3.6.1.5.5.7.3.2';
const DAY = 24 * 3600_000;

/** Self-signed; valid for ten years from an hour ago, so that small clock differences do not matter. */
export async function createAuthority(commonName: string): Promise<Authority> {
  const keys = await newKeys();
  const issuer = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serial(),
    name: [{ CN: [commonName] }],
    ...validity(),
    keys,
    signingAlgorithm: ALGORITHM,
    extensions: [
      new x509.BasicConstraintsExtension(true, undefined, true),
      new x509.KeyUsagesExtension(
        x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign | x509.KeyUsageFlags.digitalSignature,
        true,
      ),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { cert: pem(issuer), key: await keyPem(keys.privateKey), issuer, signingKey: keys.privateKey };
}

/** A client certificate as the API server reads it: CN is the user, every O a group. */
export async function issueClient(
  authority: Authority,
  user: string,
  groups: readonly string[] = [],
): Promise<KeyPair> {
  return issue(authority, user, groups, [CLIENT_AUTH], []);
}

/** A serving certificate for DNS names and IP addresses; `client` makes it good as a client certificate too. */
export async function issueServing(
  authority: Authority,
  commonName: string,
  hosts: readonly string[],
  options: { groups?: readonly string[]; client?: boolean } = {},
): Promise<KeyPair> {
  const usages = options.client === true ? [SERVER_AUTH, CLIENT_AUTH] : [SERVER_AUTH];
  return issue(authority, commonName, options.groups ?? [], usages, hosts);
}

async function issue(
  authority: Authority,
  commonName: string,
  groups: readonly string[],
  usages: string[],
  hosts: readonly string[],
): Promise<KeyPair> {
  const keys = await newKeys();
  const extensions: x509.Extension[] = [
    new x509.BasicConstraintsExtension(false, undefined, true),
    new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature | x509.KeyUsageFlags.keyEncipherment, true),
    new x509.ExtendedKeyUsageExtension(usages),
    await x509.AuthorityKeyIdentifierExtension.create(authority.issuer),
  ];
  if (hosts.length > 0) {
    const names = hosts.map((host) => ({ type: isIP(host) === 0 ? ('dns' as const) : ('ip' as const), value: host }));
    extensions.push(new x509.SubjectAlternativeNameExtension(names));
  }
  const cert = await x509.X509CertificateGenerator.create({
    serialNumber: serial(),
    // One RDN per group: Kubernetes reads every O of the subject.
    subject: [...groups.map((group) => ({ O: [group] })), { CN: [commonName] }],
    issuer: authority.issuer.subjectName,
    ...validity(),
    publicKey: keys.publicKey,
    signingKey: authority.signingKey,
    signingAlgorithm: ALGORITHM,
    extensions,
  });
  return { cert: pem(cert), key: await keyPem(keys.privateKey) };
}

/** The RSA pair that signs and checks service account tokens. */
export function createTokenKeys(): { publicKey: string; privateKey: string } {
  return generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
}

/** A kubeconfig with everything inside, no file paths: fit for a file, an environment or a Secret. */
export function kubeconfigYaml(options: { server: string; ca: string; user: string; client: KeyPair }): string {
  const base64 = (text: string): string => Buffer.from(text).toString('base64');
  return `apiVersion: v1
kind: Config
clusters:
- name: cluster
  cluster:
    server: ${options.server}
    certificate-authority-data: ${base64(options.ca)}
users:
- name: ${JSON.stringify(options.user)}
  user:
    client-certificate-data: ${base64(options.client.cert)}
    client-key-data: ${base64(options.client.key)}
contexts:
- name: default
  context: {cluster: cluster, user: ${JSON.stringify(options.user)}}
current-context: default
`;
}

function newKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, ['sign', 'verify']);
}

function serial(): string {
  const bytes = randomBytes(16);
  // Positive and never with a leading zero byte, whatever the encoder does.
  bytes[0] = ((bytes[0] ?? 0) & 0x3f) | 0x40;
  return bytes.toString('hex');
}

function validity(): { notBefore: Date; notAfter: Date } {
  return { notBefore: new Date(Date.now() - 3600_000), notAfter: new Date(Date.now() + 3650 * DAY) };
}

function pem(certificate: x509.X509Certificate): string {
  return `${certificate.toString('pem').trim()}\n`;
}

async function keyPem(key: webcrypto.CryptoKey): Promise<string> {
  const der = await webcrypto.subtle.exportKey('pkcs8', key);
  return x509.PemConverter.encode(der, 'PRIVATE KEY').trim() + '\n';
}
