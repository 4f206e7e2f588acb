import { request as httpsRequest } from 'node:https';
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
  server = new WebhookServer({
    address: '127.0.0.1',
    port: 0,
    certificate: () => certificate,
    settings: { schedulerName: undefined, isVirtualNode: () => false, splitConstraints: false },
    metrics: admissionMetrics(registry),
    logger: pino({ level: 'silent' }),
  });
  ({ port } = await server.listen());
});
afterEach(() => server.close(0));

async function post(path: string, body: string): Promise<{ status: number | undefined; text: string }> {
  return await new Promise((resolve, reject) => {
    const request = httpsRequest({ host: '127.0.0.1', port, path, method: 'POST', ca, agent: false }, (answer) => {
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
    ['too much', JSON.stringify({ padding: 'x'.repeat(9 * 1024 * 1024) })],
  ])('says what is wrong with %s', async (_what, body) => {
    const { status, text } = await post('/pods/bursting', body);
    expect(status).toBe(400);
    expect(text).not.toMatch(/\n\s+at /);
    expect(await registry.metrics()).toContain('spillway_admission_reviews_total{outcome="malformed"} 1');
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

function body(pem: string): string {
  return pem.split('\n')[1] ?? 'nothing';
}
