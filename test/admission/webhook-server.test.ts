import { createAuthority, issueClient } from '../../hack/pki.ts';
import { request as httpsRequest } from 'node:https';
import { createConnection, type Socket } from 'node:net';
import { connect, type TLSSocket } from 'node:tls';
import pino from 'pino';
import { Registry } from 'prom-client';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { admissionMetrics } from '../../src/admission/metrics.ts';
import { WebhookServer } from '../../src/admission/webhook-server.ts';
import { issueServingCertificate, newAuthority } from '../../src/kube/certificate-authority.ts';
import type { KeyedCertificate } from '../../src/kube/keyed-certificate.ts';

const DAY = 24 * 3_600_000;
const NAMES = ['localhost', '127.0.0.1'];

let ca: string;
let certificate: KeyedCertificate;
let next: KeyedCertificate;
let server: WebhookServer;
let registry: Registry;
let port: number;

beforeEach(async () => {
  const authority = await newAuthority('test-ca', Date.now(), DAY);
  ca = authority.cert;
  certificate = await issueServingCertificate(authority, NAMES, Date.now(), DAY);
  next = await issueServingCertificate(authority, NAMES, Date.now(), DAY);
  registry = new Registry();
  server = start();
  ({ port } = await server.listen());
});
afterEach(() => server.close(0));

function start(clientCa?: () => string): WebhookServer {
  return new WebhookServer({
    address: '127.0.0.1',
    port: 0,
    certificate: () => certificate,
    clientCa,
    settings: {
      schedulerName: undefined,
      isVirtualNode: () => false,
      splitConstraints: false,
      outages: { toleration: 'Forever', admissionSeconds: 300 },
    },
    metrics: admissionMetrics(registry),
    logger: pino({ level: 'silent' }),
  });
}

async function post(
  path: string,
  body: string,
  client?: KeyedCertificate,
): Promise<{ status: number | undefined; text: string }> {
  return await new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port, path, method: 'POST', ca, agent: false, ...client };
    const request = httpsRequest({ ...options, headers: { 'content-length': Buffer.byteLength(body) } }, (answer) => {
      let text = '';
      answer.setEncoding('utf8');
      answer.on('data', (chunk: string) => (text += chunk));
      answer.on('end', () => resolve({ status: answer.statusCode, text }));
    });
    request.on('error', reject);
    request.end(body);
  });
}

function review(request: object): string {
  return JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request });
}

async function patchOf(path: string, request: object): Promise<unknown> {
  const { status, text } = await post(path, review({ uid: 'u', operation: 'CREATE', namespace: 'shop', ...request }));
  expect(status).toBe(200);
  const { apiVersion, kind, response } = JSON.parse(text) as { [field: string]: unknown; response: { patch?: string } };
  expect({ apiVersion, kind }).toEqual({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview' });
  expect(response).toMatchObject({ uid: 'u', allowed: true });
  const { patch } = response;
  return patch === undefined ? undefined : (JSON.parse(Buffer.from(patch, 'base64').toString()) as unknown);
}

const pod = { metadata: { name: 'web' }, spec: { containers: [] } };

describe('the webhook', () => {
  it('changes pods of namespaces that burst, and no others', async () => {
    expect(await patchOf('/pods/bursting', { object: pod })).toMatchObject([{ op: 'add', path: '/spec/tolerations' }]);
    expect(await patchOf('/pods/asking', { object: pod })).toBeUndefined();
    const asking = { ...pod, spec: { nodeSelector: { 'spillway.dev/member': 'east' } } };
    expect(await patchOf('/pods/asking', { object: asking })).toMatchObject([{ path: '/spec/tolerations' }]);
  });

  it('leaves the namespaces of the cluster itself and other operations alone', async () => {
    expect(await patchOf('/pods/bursting', { object: pod, namespace: 'kube-system' })).toBeUndefined();
    expect(await patchOf('/pods/bursting', { object: pod, operation: 'UPDATE' })).toBeUndefined();
    expect(await patchOf('/pods/bursting', { object: null })).toBeUndefined();
  });

  it.each([
    ['no JSON', '{'],
    [
      'an older version',
      JSON.stringify({ apiVersion: 'admission.k8s.io/v1beta1', kind: 'AdmissionReview', request: {} }),
    ],
    ['no request', JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview' })],
  ])('says what is wrong with %s', async (_what, body) => {
    const { status, text } = await post('/pods/bursting', body);
    expect(status).toBe(400);
    expect(text).not.toMatch(/\n\s+at /);
    expect(await registry.metrics()).toContain('spillway_admission_reviews_total{outcome="malformed"} 1');
  });

  it('reads no more than a review can have, and says beforehand what it will not read', async () => {
    const long = await post('/pods/bursting', JSON.stringify({ padding: 'x'.repeat(5 * 1024 * 1024) }));
    expect([long.status, long.text]).toEqual([413, expect.stringContaining('too much for a review')]);
    const unknown = await raw('transfer-encoding: chunked');
    expect(unknown).toMatch(/^HTTP\/1\.1 411 /);
    expect(await registry.metrics()).toContain('spillway_admission_reviews_total{outcome="refused"} 2');
  });

  it('reads no more than so many bytes at the same time, and goes on when they are read', async () => {
    const half = await Promise.all(Array.from({ length: 8 }, () => begun(4 * 1024 * 1024)));
    expect((await post('/pods/bursting', review({}))).status).toBe(503);
    for (const socket of half) socket.destroy();
    await expect.poll(async () => (await post('/pods/bursting', review({}))).status).not.toBe(503);
  });

  it('has no connection for more than so many', async () => {
    const sockets = new Set<Socket>();
    const fill = (): void => {
      while (sockets.size < 512) {
        const socket = createConnection({ host: '127.0.0.1', port });
        sockets.add(socket.on('error', () => undefined).once('close', () => sockets.delete(socket)));
      }
    };
    const asked = async (): Promise<string> => {
      fill();
      return await post('/', '').then(
        () => 'answered',
        () => 'refused',
      );
    };
    // The kernel takes connections before the server does, and the server ends those that do not go on.
    await expect.poll(asked, { timeout: 50_000 }).toBe('refused');
    for (const socket of sockets) socket.destroy();
    await expect.poll(async () => (await post('/', '').catch(() => undefined))?.status).toBe(404);
  }, 60_000);

  it('ends a connection that says nothing', async () => {
    const socket = await handshake();
    socket.resume();
    await new Promise((resolve) => socket.once('close', resolve));
  }, 30_000);

  it('answers only who shows a certificate of the CA for clients, where there is one', async () => {
    await server.close(0);
    registry = new Registry();
    const clients = await createAuthority('clients');
    const client = await issueClient(clients, 'kube-apiserver');
    let trusted = clients.cert;
    server = start(() => trusted);
    ({ port } = await server.listen());
    await expect(post('/pods/asking', review({}))).rejects.toThrow();
    expect((await post('/', '', client)).status).toBe(404);
    // Another certificate of the server changes nothing about that.
    certificate = next;
    const stranger = await issueClient(await createAuthority('clients'), 'kube-apiserver');
    await expect(post('/pods/asking', review({}), stranger)).rejects.toThrow();
    expect((await post('/', '', client)).status).toBe(404);
    // Another CA does, without a restart.
    const others = await createAuthority('others');
    trusted = others.cert;
    await expect(post('/pods/asking', review({}), client)).rejects.toThrow();
    expect((await post('/', '', await issueClient(others, 'kube-apiserver'))).status).toBe(404);
  });

  it('knows no other paths', async () => {
    expect((await post('/', review({}))).status).toBe(404);
  });

  it('shows a new certificate at the next handshake, and keeps open connections', async () => {
    const open = await handshake();
    expect(open.getPeerX509Certificate()?.toString()).toContain(body(certificate.cert));
    certificate = next;
    const second = await handshake();
    expect(second.getPeerX509Certificate()?.toString()).toContain(body(next.cert));
    expect(open.destroyed).toBe(false);
    open.destroy();
    second.destroy();
  });

  it('keeps the certificate it has when the next one does not belong to its key, or is none', async () => {
    const shown = certificate.cert;
    for (const unusable of [
      { cert: next.cert, key: certificate.key },
      { cert: 'cut off', key: next.key },
    ]) {
      certificate = unusable;
      const socket = await handshake();
      expect(socket.getPeerX509Certificate()?.toString()).toContain(body(shown));
      socket.destroy();
    }
    certificate = next;
    const mended = await handshake();
    expect(mended.getPeerX509Certificate()?.toString()).toContain(body(next.cert));
    mended.destroy();
  });
});

async function handshake(): Promise<TLSSocket> {
  return await new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, ca }, () => resolve(socket));
    socket.on('error', reject);
  });
}

/** The answer to a request of which only the headers are sent. */
async function raw(header: string): Promise<string> {
  const socket = await handshake();
  socket.write(`POST /pods/asking HTTP/1.1\r\nhost: x\r\n${header}\r\n\r\n`);
  const answer = await new Promise<Buffer>((resolve) => socket.once('data', resolve));
  socket.destroy();
  return answer.toString();
}

/** A review whose headers and first bytes have arrived. */
async function begun(length: number): Promise<TLSSocket> {
  const socket = await handshake();
  const head = `POST /pods/asking HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: ${length}\r\n\r\n{`;
  socket.write(head);
  await new Promise((resolve) => socket.once('data', resolve));
  return socket;
}

function body(pem: string): string {
  return pem.split('\n')[1] ?? 'nothing';
}
