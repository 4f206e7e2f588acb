import { X509Certificate } from 'node:crypto';
import type { Access } from './access.ts';
import { CredentialsError } from './errors.ts';
import { isKeyPair } from './key-pair.ts';
import { checkServer, decodeData, nonEmpty, proxyOf, readKubeconfig } from './kubeconfig.ts';
import { staticAccess } from './static-access.ts';

/** Why each field may not come from a Secret: it would make this process run, read or trust something. */
const REFUSED_CLUSTER: Record<string, [reason: string, why: string]> = {
  'certificate-authority': ['FilePathRefused', 'a file path; put the bytes in certificate-authority-data'],
  'insecure-skip-tls-verify': ['InsecureRefused', 'it would send credentials to anyone who answers'],
};
const REFUSED_USER: Record<string, [reason: string, why: string]> = {
  exec: ['ExecPluginRefused', 'it would run a command in this process; use a token or a client certificate'],
  'auth-provider': [
    'AuthProviderRefused',
    'it would run a command or log in elsewhere; use a token or a client certificate',
  ],
  'client-certificate': ['FilePathRefused', 'a file path; put the bytes in client-certificate-data'],
  'client-key': ['FilePathRefused', 'a file path; put the bytes in client-key-data'],
  tokenFile: ['FilePathRefused', 'a file path; put the token in token'],
  username: ['BasicAuthRefused', 'API servers have no basic authentication any more'],
  password: ['BasicAuthRefused', 'API servers have no basic authentication any more'],
  as: ['ImpersonationRefused', 'give the user itself the rights that are needed'],
  'as-uid': ['ImpersonationRefused', 'give the user itself the rights that are needed'],
  'as-groups': ['ImpersonationRefused', 'give the user itself the rights that are needed'],
  'as-user-extra': ['ImpersonationRefused', 'give the user itself the rights that are needed'],
};
const KNOWN_CLUSTER = new Set([
  'server',
  'certificate-authority-data',
  'tls-server-name',
  'proxy-url',
  'disable-compression',
  'extensions',
]);
const KNOWN_USER = new Set(['client-certificate-data', 'client-key-data', 'token', 'extensions']);

/**
 * Access from a kubeconfig that someone else wrote (a Secret). Only data is taken: no commands, no file paths, no
 * unverified TLS. `renewed`: a token that takes the place of the one in it. Throws {@link CredentialsError} whose message
 * names the field and says why; it never quotes values.
 */
export function memberAccess(kubeconfigText: string, renewed?: string): Access {
  const { cluster, user } = readKubeconfig(kubeconfigText);
  checkFields('cluster', cluster, REFUSED_CLUSTER, KNOWN_CLUSTER);
  checkFields('user', user, REFUSED_USER, KNOWN_USER);
  const server = checkServer(cluster.server, false);
  const ca = decodeData('certificate-authority-data', cluster['certificate-authority-data']);
  if (ca === undefined) {
    throw new CredentialsError(
      'MissingCertificateAuthority',
      "cluster.certificate-authority-data is missing: without it the member's API server cannot be told from another",
    );
  }
  checkCertificateAuthority(ca);
  const cert = decodeData('client-certificate-data', user['client-certificate-data']);
  const key = decodeData('client-key-data', user['client-key-data']);
  const token = nonEmpty(renewed ?? user.token)?.trim();
  checkIdentity(cert, key, token);
  return staticAccess({
    endpoint: { server, ca, serverName: nonEmpty(cluster['tls-server-name']), proxy: proxyOf(cluster) },
    token,
    cert,
    key,
  });
}

function checkFields(
  of: 'cluster' | 'user',
  fields: Record<string, unknown>,
  refused: Record<string, [reason: string, why: string]>,
  known: ReadonlySet<string>,
): void {
  for (const [field, value] of Object.entries(fields)) {
    if (value === null || value === '' || value === false || known.has(field)) {
      continue;
    }
    const rule = Object.hasOwn(refused, field) ? refused[field] : undefined;
    const [reason, why] = rule ?? ['UnknownFieldRefused', 'this field is not known here, so it cannot be honoured'];
    throw new CredentialsError(reason, `${of}.${field} is not accepted in a member's kubeconfig: ${why}`);
  }
}

function checkCertificateAuthority(pem: string): void {
  const certificates = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  if (certificates.length === 0 || !certificates.every((certificate) => isCertificate(certificate))) {
    throw new CredentialsError(
      'InvalidCertificateAuthority',
      'cluster.certificate-authority-data does not hold PEM certificates',
    );
  }
}

function checkIdentity(cert: string | undefined, key: string | undefined, token: string | undefined): void {
  if (cert === undefined && key === undefined) {
    if (token === undefined || token === '') {
      throw new CredentialsError('NoCredentials', 'the user has neither a token nor a client certificate');
    }
    // A header value: anything else would be refused by every request later, with a stranger message.
    if (!/^[\x21-\x7e]+$/.test(token)) {
      throw new CredentialsError('InvalidToken', 'user.token holds characters that no token has');
    }
    return;
  }
  if (cert === undefined || key === undefined) {
    const missing = cert === undefined ? 'client-certificate-data' : 'client-key-data';
    throw new CredentialsError('InvalidClientCertificate', `user.${missing} is missing`);
  }
  if (!isKeyPair(cert, key)) {
    throw new CredentialsError(
      'InvalidClientCertificate',
      'user.client-certificate-data and user.client-key-data are not a certificate and its key in PEM',
    );
  }
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).raw.length > 0;
  } catch {
    return false;
  }
}
