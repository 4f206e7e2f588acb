import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect, createServer, type TLSSocket } from 'node:tls';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { createAuthority, createTokenKeys, issueClient, issueServing, kubeconfigYaml } from '../../hack/pki.ts';

test('a client certificate carries user and groups as Kubernetes reads them', async () => {
  const authority = await createAuthority('test-ca');
  const pair = await issueClient(authority, 'system:node:n1', ['system:nodes', 'second']);
  const cert = new X509Certificate(pair.cert);
  expect(cert.subject.split('\n')).toEqual(['O=system:nodes', 'O=second', 'CN=system:node:n1']);
  expect(cert.checkIssued(new X509Certificate(authority.cert))).toBe(true);
  expect(cert.verify(new X509Certificate(authority.cert).publicKey)).toBe(true);
  expect(cert.ca).toBe(false);
  expect(cert.keyUsage).toEqual(['1.3.6.1.5.5.7.3.2']);
  expect(cert.checkPrivateKey(createPrivateKey(pair.key))).toBe(true);
  expect(new Date(cert.validFrom).getTime()).toBeLessThan(Date.now());
});

test('certificates of another authority are not trusted', async () => {
  const [one, other] = await Promise.all([createAuthority('same-name'), createAuthority('same-name')]);
  const cert = new X509Certificate((await issueClient(one, 'u')).cert);
  expect(cert.verify(new X509Certificate(other.cert).publicKey)).toBe(false);
});

test('serving certificates hold for their names and addresses only', async () => {
  const authority = await createAuthority('test-ca');
  const serving = await issueServing(authority, 'server', ['10.1.2.3', 'api.example', '127.0.0.1']);
  const cert = new X509Certificate(serving.cert);
  expect(cert.checkIP('10.1.2.3')).toBe('10.1.2.3');
  expect(cert.checkIP('10.1.2.4')).toBeUndefined();
  expect(cert.checkHost('api.example')).toBe('api.example');
  expect(cert.checkHost('other.example')).toBeUndefined();
});

test('server and client know each other over TLS', async () => {
  const authority = await createAuthority('test-ca');
  const serving = await issueServing(authority, 'server', ['127.0.0.1']);
  const client = await issueClient(authority, 'alice', ['team']);
  const server = createServer({ ...serving, ca: authority.cert, requestCert: true, rejectUnauthorized: true });
  try {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const accepted = once(server, 'secureConnection') as Promise<[TLSSocket]>;
    const { port } = server.address() as AddressInfo;
    const socket = connect({ host: '127.0.0.1', port, ca: authority.cert, ...client });
    await once(socket, 'secureConnect');
    const [seen] = await accepted;
    expect(seen.authorized).toBe(true);
    expect(seen.getPeerCertificate().subject).toMatchObject({ CN: 'alice', O: 'team' });
    socket.destroy();
    seen.destroy();
  } finally {
    server.close();
  }
});

test('the token keys are one RSA pair', () => {
  const { publicKey, privateKey } = createTokenKeys();
  const derived = createPublicKey(createPrivateKey(privateKey)).export({ type: 'spki', format: 'pem' });
  expect(derived).toBe(publicKey);
});

test('a kubeconfig survives odd user names and has everything inside', async () => {
  const authority = await createAuthority('test-ca');
  const client = await issueClient(authority, 'a: "b"');
  const text = kubeconfigYaml({ server: 'https://127.0.0.1:1', ca: authority.cert, user: 'a: "b"', client });
  const config = parse(text) as {
    clusters: { cluster: Record<string, string> }[];
    users: { name: string; user: Record<string, string> }[];
    contexts: { context: { user: string } }[];
  };
  expect(config.users[0]?.name).toBe('a: "b"');
  expect(config.contexts[0]?.context.user).toBe('a: "b"');
  expect(Buffer.from(config.users[0]?.user['client-key-data'] ?? '', 'base64').toString()).toBe(client.key);
  expect(Object.keys(config.clusters[0]?.cluster ?? {}).toSorted()).toEqual(['certificate-authority-data', 'server']);
});
