import 'reflect-metadata';
import { createHash, X509Certificate } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer, connect as tlsConnect } from 'node:tls';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import * as x509 from '@peculiar/x509';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Authority } from '../../hack/pki.ts';
import { createAuthority, issueServing } from '../../hack/pki.ts';
import { checkKeyed, renewalTime } from '../../src/kube/keyed-certificate.ts';
import { ClientCa } from '../../src/serving/client-ca.ts';
import { CsrCertificates } from '../../src/serving/csr-certificates.ts';
import { FileCertificates } from '../../src/serving/file-certificates.ts';
import { SelfSignedCertificates } from '../../src/serving/self-signed-certificates.ts';
import { SigningHost } from '../fixtures/signing-host.ts';
import { until } from '../kubelet/harness.ts';

const NODE = { nodeName: 'virtual-1', addresses: ['127.0.0.1', 'virtual-1.example'] };
const DAY = 86_400_000;

let lines: Record<string, unknown>[];
let folder: string;
let stop: AbortController;
let running: Promise<void>[];
const logger = pino(
  { level: 'debug' },
  { write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>) },
);

beforeEach(async () => {
  lines = [];
  running = [];
  stop = new AbortController();
  folder = await mkdtemp(join(tmpdir(), 'spillway-certificates-'));
});
afterEach(async () => {
  stop.abort();
  await Promise.all(running);
  await rm(folder, { recursive: true });
});

describe('self-signed', () => {
  test('names the node and its addresses, works as a serving certificate, and says loudly what it is', async () => {
    const certificates = await SelfSignedCertificates.create({ node: NODE, logger, clock: Date.now });
    const pair = certificates.current();
    const certificate = checkKeyed(pair);
    expect(certificate.subject.split('\n').sort()).toEqual(['CN=system:node:virtual-1', 'O=system:nodes']);
    expect(certificate.subjectAltName).toBe('IP Address:127.0.0.1, DNS:virtual-1.example');
    expect(lines).toMatchObject([{ level: 40, node: 'virtual-1' }]);
    expect(String(lines[0]?.['msg'])).toMatch(/^SELF-SIGNED/);
    const server = createServer(pair).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const socket = tlsConnect({ port, host: '127.0.0.1', ca: pair.cert });
    await once(socket, 'secureConnect');
    expect(socket.authorized).toBe(true);
    socket.destroy();
    server.close();
    await once(server, 'close');
  });

  test('is made anew when 70 % of its life are over', async () => {
    let now = Date.now();
    const certificates = await SelfSignedCertificates.create({ node: NODE, logger, clock: () => now });
    const first = certificates.current();
    now += 256 * DAY;
    running.push(certificates.run(stop.signal));
    await until(() => certificates.current() !== first, 'the renewal');
    expect(renewalTime(checkKeyed(certificates.current()))).toBeGreaterThan(now);
  });
});

describe('from files', () => {
  test('are read again when they change; a pair that does not fit is not used', async () => {
    const authority = await createAuthority('ca');
    const [one, two] = [await issueServing(authority, 'a', ['a']), await issueServing(authority, 'b', ['b'])];
    const [certFile, keyFile] = [join(folder, 'tls.crt'), join(folder, 'tls.key')];
    await writeFile(certFile, one.cert);
    await writeFile(keyFile, one.key);
    const certificates = await FileCertificates.open({ certFile, keyFile, logger, periodMs: 5 });
    running.push(certificates.run(stop.signal));
    expect(certificates.current()).toEqual(one);
    await writeFile(certFile, two.cert);
    await until(() => lines.some((line) => String(line['msg']).includes('cannot be used')), 'the complaint');
    expect(certificates.current()).toEqual(one);
    await writeFile(keyFile, two.key);
    await until(() => certificates.current().cert === two.cert, 'the new pair');
    expect(JSON.stringify(lines)).not.toContain('PRIVATE KEY');
  });

  test('that cannot be used at the start are an error', async () => {
    const missing = { certFile: join(folder, 'none'), keyFile: join(folder, 'none'), logger };
    await expect(FileCertificates.open(missing)).rejects.toThrow(/ENOENT/);
  });
});

describe('from the signer kubernetes.io/kubelet-serving', () => {
  let authority: Authority;
  let host: SigningHost;
  let now: number;

  beforeEach(async () => {
    authority = await createAuthority('kubelet-ca');
    host = new SigningHost(authority);
    now = Date.now();
  });

  async function start(): Promise<CsrCertificates> {
    const certificates = await CsrCertificates.create({ host, node: NODE, logger, clock: () => now, firstPollMs: 2 });
    running.push(certificates.run(stop.signal));
    return certificates;
  }

  const names = (): string[] => [...host.requests.keys()];

  test('the request is what the signer takes; the certificate is used as soon as it is issued', async () => {
    const certificates = await start();
    expect(checkKeyed(certificates.current()).subject).toContain('system:node:virtual-1');
    await until(() => names().length === 1, 'the request');
    const spec = host.requests.get(names()[0] ?? '')?.spec;
    expect(spec).toMatchObject({
      signerName: 'kubernetes.io/kubelet-serving',
      usages: ['digital signature', 'server auth'],
    });
    const request = new x509.Pkcs10CertificateRequest(Buffer.from(String(spec?.['request']), 'base64').toString());
    expect(request.subjectName.toString()).toBe('O=system:nodes, CN=system:node:virtual-1');
    const san = request.extensions.find((extension) => extension instanceof x509.SubjectAlternativeNameExtension);
    expect(san?.names.toJSON()).toEqual([
      { type: 'ip', value: '127.0.0.1' },
      { type: 'dns', value: 'virtual-1.example' },
    ]);
    expect(certificates.issued).toBe(false);
    await host.approve(names()[0] ?? '');
    await until(() => certificates.issued, 'the certificate');
    const issued = new X509Certificate(certificates.current().cert);
    expect(issued.verify(new X509Certificate(authority.cert).publicKey)).toBe(true);
    checkKeyed(certificates.current());
    expect(JSON.stringify(lines)).toContain('kubectl certificate approve spillway-virtual-1-0');
    expect(JSON.stringify(lines)).not.toContain('PRIVATE KEY');
  });

  test('is renewed with a new key at 70 % of its life, and stays in use until then', async () => {
    host.lifeMs = 1500;
    const certificates = await start();
    await until(() => names().length === 1, 'the request');
    await host.approve(names()[0] ?? '');
    await until(() => certificates.issued, 'the certificate');
    const first = certificates.current();
    now = renewalTime(checkKeyed(first)) - 60;
    await until(() => names().length === 1 && certificates.current() === first, 'nothing yet');
    now += 61;
    await until(() => names().length === 2, 'the second request');
    expect(certificates.current()).toBe(first);
    host.lifeMs = DAY;
    await host.approve(names()[1] ?? '');
    await until(() => certificates.current() !== first, 'the renewal');
    const digest = (text: string): string => createHash('sha256').update(text).digest('hex');
    expect(digest(certificates.current().key)).not.toBe(digest(first.key));
  });

  test('a denied or deleted request, and a host that cannot be reached, are tried again', async () => {
    host.broken = 2;
    const certificates = await start();
    await until(() => names().length === 1, 'the request');
    host.broken = 3;
    host.deny(names()[0] ?? '');
    await until(() => names().length === 2, 'the second request');
    expect(JSON.stringify(lines)).toContain('was denied: not this node');
    host.requests.delete(names()[1] ?? '');
    await until(() => names().length === 2, 'the third request');
    await host.approve(names()[1] ?? '');
    await until(() => certificates.issued, 'the certificate');
  });

  test('a signer whose clock is far behind is not asked over and over', async () => {
    host.lifeMs = -500;
    await start();
    for (let asked = 1; asked <= 3; asked++) {
      await until(() => names().length === asked, 'a request');
      await host.approve(names()[asked - 1] ?? '');
    }
    await until(() => JSON.stringify(lines).includes('does the clock here differ'), 'the complaint');
    const waits = lines.flatMap((line) => (typeof line['retryInMs'] === 'number' ? [line['retryInMs']] : []));
    expect(waits.slice(0, 2)).toEqual([2, 4]);
  });

  test('ends at once when told to', async () => {
    await start();
    await until(() => names().length === 1, 'the request');
    stop.abort();
    await Promise.all(running);
  });
});

describe('the client authorities', () => {
  const ca = (text: string): Record<string, unknown> => ({ data: { 'client-ca-file': text } });

  test('come from the ConfigMap that the API server publishes', async () => {
    let asked = '';
    const host = {
      request: <T>(r: { path: string }): Promise<T> => {
        asked = r.path;
        return Promise.resolve(ca('bundle') as T);
      },
    };
    const bundle = ClientCa.fromHost(host, logger);
    expect(bundle.current()).toBeUndefined();
    await bundle.load(stop.signal);
    expect(bundle.current()).toBe('bundle');
    expect(asked).toBe('/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication');
  });

  test('what was read stays while the source fails, and the failure is said once', async () => {
    let answer = (): Promise<unknown> => Promise.resolve(ca('first'));
    let reads = 0;
    const host = {
      request: <T>(): Promise<T> => {
        reads += 1;
        return answer() as Promise<T>;
      },
    };
    const bundle = ClientCa.fromHost(host, logger, { periodMs: 2, retryMs: 2 });
    running.push(bundle.run(stop.signal));
    await until(() => bundle.current() === 'first', 'the first read');
    answer = () => Promise.reject(new Error('refused'));
    const failedFrom = reads;
    await until(() => reads > failedFrom + 3, 'failures');
    expect(bundle.current()).toBe('first');
    expect(lines.filter((line) => line['level'] === 40)).toHaveLength(1);
    answer = () => Promise.resolve({ data: {} });
    const emptyFrom = reads;
    await until(() => reads > emptyFrom + 3, 'empty answers');
    expect(bundle.current()).toBe('first');
    answer = () => Promise.resolve(ca('second'));
    await until(() => bundle.current() === 'second', 'the new bundle');
  });

  test('or from a file', async () => {
    const file = join(folder, 'ca.crt');
    await writeFile(file, 'from file');
    const bundle = ClientCa.fromFile(file, logger, { periodMs: 2, retryMs: 2 });
    running.push(bundle.run(stop.signal));
    await until(() => bundle.current() === 'from file', 'the first read');
    await writeFile(file, 'changed');
    await until(() => bundle.current() === 'changed', 'the change');
  });
});
