import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { connect as tlsConnect } from 'node:tls';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Authority } from '../../hack/pki.ts';
import { createAuthority, issueClient, issueServing } from '../../hack/pki.ts';
import { ApiError, TransportError } from '../../src/kube/errors.ts';
import type { Keys, Kubelet } from './harness.ts';
import {
  ask,
  directoryOf,
  fixedCertificates,
  makeKeys,
  open,
  podNamed,
  readAll,
  startKubelet,
  StubMember,
  until,
  upgradeText,
} from './harness.ts';

const EVERY_ROUTE = [
  'GET /healthz',
  'GET /healthz/ping',
  'GET /pods',
  'GET /runningpods/',
  'GET /metrics',
  'GET /metrics/resource',
  'GET /stats/summary',
  'GET /configz',
  'GET /logs/',
  'GET /debug/pprof/heap',
  'GET /containerLogs/ns/web/c',
  'POST /exec/ns/web/c?command=a&output=1',
  'GET /exec/ns/web/c?command=a&output=1',
  'POST /attach/ns/web/c?output=1',
  'POST /portForward/ns/web',
  'POST /run/ns/web/c?cmd=id',
  'GET /unknown',
  'GET /',
  'GET /..%2f..',
  'PUT /pods',
  'OPTIONS /healthz',
];

let keys: Keys;
let otherCa: Authority;
let member: StubMember;
let kubelet: Kubelet;
let pods: ReturnType<typeof directoryOf>;

beforeAll(async () => {
  keys = await makeKeys();
  otherCa = await createAuthority('other-ca');
});
beforeEach(async () => {
  member = await StubMember.start();
  const done = podNamed('done');
  done.status = { phase: 'Succeeded' };
  pods = directoryOf([podNamed('web', 'c', { initContainers: [{ name: 'init' }] }), done], member.client);
  kubelet = await startKubelet(keys, pods);
});
afterEach(async () => {
  await kubelet.server.close(0);
  await member.stop();
});

/** The status line of an upgrade request's answer. */
async function upgrade(method: string, url: string, client: typeof keys.admin | undefined): Promise<number> {
  const socket = await open(kubelet.port, keys, client, upgradeText(method, url));
  const text = (await readAll(socket)).toString();
  socket.destroy();
  return Number(text.split(' ')[1]);
}

test('a port that is taken is refused, and the next one tried serves as well', async () => {
  const second = await startKubelet(keys, pods, {}, async (server) => {
    await expect(server.listen(kubelet.port)).rejects.toMatchObject({ code: 'EADDRINUSE' });
    await expect(server.listen(kubelet.port)).rejects.toMatchObject({ code: 'EADDRINUSE' });
    return await server.listen(0);
  });
  expect(second.port).not.toBe(kubelet.port);
  for (const { port } of [kubelet, second]) {
    expect((await ask(port, keys, { path: '/healthz', client: keys.admin })).code).toBe(200);
  }
  await second.server.close(0);
  await expect(ask(second.port, keys, { path: '/healthz', client: keys.admin })).rejects.toThrow(/ECONNREFUSED/);
});

describe('who may come in', () => {
  test.each(EVERY_ROUTE)('nobody anonymous: %s', async (line) => {
    const [method = '', path = ''] = line.split(' ');
    expect((await ask(kubelet.port, keys, { method, path })).code).toBe(401);
    expect(await upgrade(method, path, undefined)).toBe(401);
    expect(kubelet.host.asked).toEqual([]);
    expect(member.heads).toEqual([]);
  });

  test.each(EVERY_ROUTE)('nobody without rights: %s', async (line) => {
    const [method = '', path = ''] = line.split(' ');
    kubelet.host.may = () => false;
    const answer = await ask(kubelet.port, keys, { method, path, client: keys.admin });
    expect(answer.code).toBe(403);
    expect(answer.text).toContain('Forbidden (user=kube-apiserver-kubelet-client');
    expect(await upgrade(method, path, keys.admin)).toBe(403);
    expect(member.heads).toEqual([]);
  });

  test.each(EVERY_ROUTE)('nobody while the host cannot be asked: %s', async (line) => {
    const [method = '', path = ''] = line.split(' ');
    kubelet.host.broken = true;
    const expected = method === 'OPTIONS' ? 403 : 503;
    expect((await ask(kubelet.port, keys, { method, path, client: keys.admin })).code).toBe(expected);
    expect(await upgrade(method, path, keys.admin)).toBe(expected);
    expect(member.heads).toEqual([]);
  });

  test('common name is the user, organisations are groups', async () => {
    const client = await issueClient(keys.authority, 'alice', ['dev', 'ops']);
    await ask(kubelet.port, keys, { path: '/healthz', client });
    expect(kubelet.host.asked[0]?.spec).toMatchObject({
      user: 'alice',
      groups: ['dev', 'ops', 'system:authenticated'],
      resourceAttributes: { verb: 'get', resource: 'nodes', subresource: 'healthz', name: 'virtual-1' },
    });
  });

  test('a certificate of another authority is nobody, whatever it says', async () => {
    const stranger = await issueClient(otherCa, 'kube-apiserver-kubelet-client', ['system:masters']);
    expect((await ask(kubelet.port, keys, { path: '/healthz', client: stranger })).code).toBe(401);
  });

  test('a serving certificate is no client certificate', async () => {
    const serving = await issueServing(keys.authority, 'kube-apiserver-kubelet-client', ['127.0.0.1']);
    expect((await ask(kubelet.port, keys, { path: '/healthz', client: serving })).code).toBe(401);
  });

  test('without any client authority no certificate is trusted, public ones included', async () => {
    const none = await startKubelet(keys, pods, { clientCa: () => undefined });
    expect((await ask(none.port, keys, { path: '/healthz', client: keys.admin })).code).toBe(401);
    const token = { authorization: 'Bearer good' };
    expect((await ask(none.port, keys, { path: '/healthz', client: keys.admin, headers: token })).code).toBe(200);
    await none.server.close(0);
  });

  test('an expired certificate is nobody', async () => {
    const later = await startKubelet(keys, pods, { clock: () => Date.now() + 20 * 365 * 86_400_000 });
    expect((await ask(later.port, keys, { path: '/healthz', client: keys.admin })).code).toBe(401);
    await later.server.close(0);
  });

  test('a bearer token is reviewed once in two minutes; a bad one is nobody; it never appears in a log', async () => {
    let [now, setBackMs] = [1, 0];
    const clocks = { monotonic: () => now, clock: () => Date.now() - setBackMs };
    const timed = await startKubelet(keys, pods, clocks);
    const get = (token: string): ReturnType<typeof ask> =>
      ask(timed.port, keys, { path: '/metrics', headers: { authorization: `Bearer ${token}` } });
    const reviews = (): number => timed.host.asked.filter((one) => one.path.endsWith('/tokenreviews')).length;
    expect((await get('good')).code).toBe(200);
    expect((await get('good')).code).toBe(200);
    expect(reviews()).toBe(1);
    expect(timed.host.asked[1]?.spec).toMatchObject({
      user: 'system:serviceaccount:kube-system:metrics-server',
      groups: ['system:serviceaccounts', 'system:authenticated'],
    });
    now += 121_000;
    setBackMs = 1_800_000;
    expect((await get('good')).code).toBe(200);
    expect(reviews()).toBe(2);
    expect((await get('canary-token')).code).toBe(401);
    expect(JSON.stringify(timed.lines)).not.toContain('canary-token');
    for (const header of ['Basic Z29vZA==', 'Bearer', 'good', 'Bearer a b', 'Bearer good\tx']) {
      const answer = await ask(timed.port, keys, { path: '/healthz', headers: { authorization: header } });
      expect(answer.code).toBe(401);
    }
    timed.host.broken = true;
    expect((await get('another')).code).toBe(503);
    await timed.server.close(0);
  });

  test('running something takes the right to create, also as a WebSocket GET', async () => {
    kubelet.host.may = (_user, _subresource, verb) => verb === 'get';
    expect(await upgrade('GET', '/exec/ns/web/c?command=a&output=1', keys.admin)).toBe(403);
    expect(await upgrade('GET', '/attach/ns/web/c?output=1', keys.admin)).toBe(403);
    expect(await upgrade('GET', '/portForward/ns/web?port=80', keys.admin)).toBe(403);
    expect((await ask(kubelet.port, keys, { path: '/pods', client: keys.admin })).code).toBe(200);
  });

  test('refusals are counted', async () => {
    await ask(kubelet.port, keys, { path: '/healthz' });
    kubelet.host.may = () => false;
    await ask(kubelet.port, keys, { path: '/healthz', client: keys.admin });
    const metrics = await kubelet.registry.metrics();
    expect(metrics).toContain('spillway_kubelet_denied_total{reason="unauthenticated"} 1');
    expect(metrics).toContain('spillway_kubelet_denied_total{reason="forbidden"} 1');
    expect(metrics).toContain('spillway_kubelet_requests_total{route="healthz",code="401"} 1');
  });
});

describe('changes while serving', () => {
  test('a client authority that is replaced: new connections at once, open ones on their next request', async () => {
    let bundle = keys.authority.cert;
    const rotating = await startKubelet(keys, pods, { clientCa: () => bundle });
    const newcomer = await issueClient(otherCa, 'new-admin');
    const code = async (client: typeof keys.admin): Promise<number> =>
      (await ask(rotating.port, keys, { path: '/healthz', client })).code;
    const kept = await open(rotating.port, keys, keys.admin, '');
    const again = async (): Promise<string> => {
      kept.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
      const [chunk] = (await once(kept, 'data')) as [Buffer];
      return chunk.toString().split('\r\n')[0] ?? '';
    };
    expect(await again()).toContain('200');
    expect(await code(newcomer)).toBe(401);

    bundle = `${keys.authority.cert}${otherCa.cert}`;
    expect(await code(newcomer)).toBe(200);
    expect(await again()).toContain('200');

    bundle = otherCa.cert;
    expect(await code(newcomer)).toBe(200);
    expect(await code(keys.admin)).toBe(401);
    expect(await again()).toContain('401');

    bundle = 'not a certificate';
    expect(await code(newcomer)).toBe(200);
    expect(await code(keys.admin)).toBe(401);
    expect(JSON.stringify(rotating.lines)).toContain('the one before stays in force');
    kept.destroy();
    await rotating.server.close(0);
  });

  test('a new serving certificate is shown to the next connection; an open stream goes on', async () => {
    const certificates = fixedCertificates(keys.serving);
    const renewing = await startKubelet(keys, pods, { certificates });
    member.script = (socket) => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: SPDY/3.1\r\nConnection: Upgrade\r\n\r\n');
      socket.pipe(socket);
      socket.resume();
    };
    const text = upgradeText('POST', '/exec/ns/web/c?command=a&output=1');
    const stream = await open(renewing.port, keys, keys.admin, text);
    await once(stream, 'data');
    const serialOf = async (): Promise<string> => {
      const socket = await open(renewing.port, keys, keys.admin, '');
      const { serialNumber } = socket.getPeerCertificate();
      socket.destroy();
      return serialNumber;
    };
    const first = await serialOf();
    certificates.pair = await issueServing(keys.authority, 'system:node:virtual-1', ['127.0.0.1']);
    const second = await serialOf();
    expect(second).not.toBe(first);
    certificates.pair = { cert: keys.serving.cert, key: keys.admin.key };
    expect(await serialOf()).toBe(second);
    stream.write('still here');
    expect(String(((await once(stream, 'data')) as [Buffer])[0])).toBe('still here');
    stream.destroy();
    await renewing.server.close(0);
  });

  test('nothing older than TLS 1.2, no HTTP/2', async () => {
    const old = tlsConnect({
      port: kubelet.port,
      host: '127.0.0.1',
      ca: keys.authority.cert,
      minVersion: 'TLSv1',
      maxVersion: 'TLSv1.1',
      ciphers: 'DEFAULT@SECLEVEL=0',
    });
    await expect(once(old, 'secureConnect')).rejects.toThrow(/alert|protocol/i);
    const h2 = tlsConnect({
      port: kubelet.port,
      host: '127.0.0.1',
      ca: keys.authority.cert,
      ALPNProtocols: ['h2', 'http/1.1'],
    });
    await once(h2, 'secureConnect');
    expect(h2.alpnProtocol).toBe('http/1.1');
    h2.destroy();
  });
});

describe('plain routes', () => {
  const get = (path: string): ReturnType<typeof ask> => ask(kubelet.port, keys, { path, client: keys.admin });

  test('healthz, metrics, and what is not served', async () => {
    expect(await get('/healthz')).toMatchObject({ code: 200, text: 'ok' });
    const metrics = await get('/metrics');
    expect(metrics.type).toContain('text/plain');
    expect(metrics.text).toContain('# TYPE spillway_kubelet_requests_total counter');
    for (const path of ['/stats/summary', '/metrics/resource', '/configz', '/logs/', '/debug/pprof/', '/x']) {
      expect((await get(path)).code).toBe(404);
    }
    expect((await get('/exec/ns/web/c?command=a&output=1')).text).toBe('Upgrade request required');
    expect((await ask(kubelet.port, keys, { path: '/pods', method: 'POST', client: keys.admin })).code).toBe(405);
  });

  test('pods and running pods are lists of host pods', async () => {
    const names = async (path: string): Promise<unknown> => {
      const answer = await get(path);
      const list = JSON.parse(answer.text) as { kind: string; items: { metadata: { name: string } }[] };
      expect(answer.type).toBe('application/json');
      expect(list.kind).toBe('PodList');
      return list.items.map((pod) => pod.metadata.name);
    };
    expect(await names('/pods')).toEqual(['web', 'done']);
    expect(await names('/runningpods/')).toEqual(['web']);
  });

  test('thousands of pods', async () => {
    const many = directoryOf(
      Array.from({ length: 3000 }, (_, i) => podNamed(`p-${i}`)),
      member.client,
    );
    const big = await startKubelet(keys, many);
    const answer = await ask(big.port, keys, { path: '/pods', client: keys.admin });
    expect((JSON.parse(answer.text) as { items: unknown[] }).items).toHaveLength(3000);
    await big.server.close(0);
  });
});

describe('logs', () => {
  const get = (path: string): ReturnType<typeof ask> => ask(kubelet.port, keys, { path, client: keys.admin });

  test('the member is asked in its own terms and its text comes back', async () => {
    let asked: unknown;
    member.logs = (request) => {
      asked = { path: request.path, query: request.query };
      const body = new PassThrough();
      body.end('line 1\nline 2\n');
      return Promise.resolve({ body });
    };
    const answer = await get('/containerLogs/ns/web/init?tailLines=0&follow=true&timestamps=true');
    expect(answer).toMatchObject({ code: 200, text: 'line 1\nline 2\n', type: 'text/plain; charset=utf-8' });
    expect(asked).toEqual({
      path: '/api/v1/namespaces/member-ns/pods/web/log',
      query: { container: 'init', tailLines: '0', follow: 'true', timestamps: 'true' },
    });
  });

  test('each piece goes out when it comes, the head before the first; a caller who leaves ends the member’s stream', async () => {
    const body = new PassThrough();
    member.logs = () => Promise.resolve({ body });
    const caller = await open(
      kubelet.port,
      keys,
      keys.admin,
      'GET /containerLogs/ns/web/c?follow=true HTTP/1.1\r\nHost: x\r\n\r\n',
    );
    expect(String(((await once(caller, 'data')) as [Buffer])[0])).toMatch(/^HTTP\/1.1 200 OK\r\n/);
    body.write('one');
    expect(String(((await once(caller, 'data')) as [Buffer])[0])).toContain('one');
    body.write('two');
    expect(String(((await once(caller, 'data')) as [Buffer])[0])).toContain('two');
    expect(await kubelet.registry.metrics()).toContain('spillway_kubelet_open_streams{route="containerLogs"} 1');
    caller.destroy();
    await until(() => body.destroyed, 'the member’s stream to be ended');
  });

  test('a caller who leaves before the member answered ends the attempt', async () => {
    let aborted = false;
    member.logs = ({ signal }) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          aborted = true;
          reject(new Error('aborted'));
        });
      });
    const text = 'GET /containerLogs/ns/web/c HTTP/1.1\r\nHost: x\r\n\r\n';
    const caller = await open(kubelet.port, keys, keys.admin, text);
    await until(() => kubelet.host.asked.length > 0, 'the request to arrive');
    caller.destroy();
    await until(() => aborted, 'the attempt to end');
  });

  test('a member’s stream that breaks breaks the answer', async () => {
    const body = new PassThrough();
    member.logs = () => {
      body.write('half');
      setTimeout(() => body.destroy(new Error('reset')), 50);
      return Promise.resolve({ body });
    };
    await expect(get('/containerLogs/ns/web/c')).rejects.toThrow(/aborted|hang up/);
  });

  test('a slow reader stops the member’s stream', async () => {
    const body = new PassThrough();
    let offered = 0;
    const piece = Buffer.alloc(65_536, 'x');
    const offer = (): void => {
      while (offered < 64 * 1_048_576) {
        offered += piece.length;
        if (!body.write(piece)) {
          body.once('drain', offer);
          return;
        }
      }
      body.end();
    };
    member.logs = () => {
      offer();
      return Promise.resolve({ body });
    };
    const text = 'GET /containerLogs/ns/web/c HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';
    const caller = await open(kubelet.port, keys, keys.admin, text);
    let last = -1;
    await until(async () => {
      const still = offered === last;
      last = offered;
      await new Promise((resolve) => setTimeout(resolve, 100));
      return still;
    }, 'the writer to stand still');
    expect(offered).toBeLessThan(24 * 1_048_576);
    expect((await readAll(caller)).length).toBeGreaterThan(64 * 1_048_576);
  });

  const status = (code: number, reason: string, message: string): ApiError =>
    new ApiError({
      cluster: 'east',
      method: 'GET',
      path: '/x',
      code,
      status: { kind: 'Status', reason, message, code },
    });

  test.each([
    [
      'the kubelet’s own words',
      status(400, 'BadRequest', 'container "c" in pod "web" is waiting to start: ContainerCreating'),
      400,
      'container "c" in pod "web" is waiting to start: ContainerCreating',
    ],
    ['a missing pod', status(404, 'NotFound', 'pods "web" not found'), 404, 'pods "web" not found'],
    [
      'an internal error, which the host’s API server will name so again',
      status(500, 'InternalError', 'Internal error occurred: no such file'),
      500,
      'no such file',
    ],
    ['no rights', status(403, 'Forbidden', 'pods "web" is forbidden: no'), 403, 'pods "web" is forbidden: no'],
    [
      'bad credentials of ours',
      status(401, 'Unauthorized', 'Unauthorized'),
      500,
      'cluster east refused the credentials',
    ],
    [
      'no connection',
      new TransportError({ cluster: 'east', kind: 'refused', method: 'GET', path: '/x', detail: 'connection refused' }),
      500,
      'cluster east: connection refused (transient)',
    ],
  ])('a refusal of the member: %s', async (_what, error, code, words) => {
    member.logs = () => Promise.reject(error);
    const answer = await get('/containerLogs/ns/web/c');
    expect(answer.code).toBe(code);
    expect(answer.text).toContain(words);
  });

  test.each([
    ['/containerLogs/ns/none/c', 404, 'pod "none" does not exist'],
    ['/containerLogs/ns/web/none', 404, 'container "none" not found in pod "web"'],
    ['/containerLogs/ns/web/c?tailLines=-1', 422, '{"message": "Invalid request."}'],
    ['/containerLogs/ns/web/c?sinceTime=x', 400, '{"message": "Unable to decode query."}'],
  ])('%s', async (path, code, text) => {
    expect(await get(path)).toMatchObject({ code, text });
  });

  test('a member that is known to be unreachable: the words reach the user', async () => {
    pods.unavailable = 'cluster east has not answered for 40 s';
    expect(await get('/containerLogs/ns/web/c')).toMatchObject({
      code: 500,
      text: 'pod ns/web cannot be reached: cluster east has not answered for 40 s (the pod itself is not touched)',
    });
  });
});

describe('hostile callers', () => {
  test('malformed HTTP, endless headers and half a request do no harm', async () => {
    const endless = `GET / HTTP/1.1\r\n${`a: ${'b'.repeat(1000)}\r\n`.repeat(3000)}`;
    for (const text of ['\0\0\0\0', 'GET\r\n\r\n', endless, 'CONNECT a:1 HTTP/1.1\r\n\r\n']) {
      const socket = await open(kubelet.port, keys, undefined, text);
      socket.on('error', () => undefined);
      const answer = await readAll(socket).catch(() => Buffer.alloc(0));
      expect(answer.toString()).toMatch(/^$|^HTTP\/1.1 4\d\d/);
      socket.destroy();
    }
    expect((await ask(kubelet.port, keys, { path: '/healthz', client: keys.admin })).code).toBe(200);
  });

  test('an upgrade behind an unanswered request closes the connection', async () => {
    member.logs = ({ signal }) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(new Error('aborted')));
      });
    const both = `GET /containerLogs/ns/web/c HTTP/1.1\r\nHost: x\r\n\r\n${upgradeText('POST', '/exec/ns/web/c?command=a&output=1')}`;
    const socket = await open(kubelet.port, keys, keys.admin, both);
    expect((await readAll(socket)).toString()).toBe('');
    expect(member.heads).toEqual([]);
    socket.destroy();
  });

  test('callers without a certificate cannot take every connection', async () => {
    const strangers = await Promise.all(Array.from({ length: 80 }, () => open(kubelet.port, keys, undefined, '')));
    await until(
      () => strangers.filter((socket) => socket.readableEnded || socket.destroyed).length === 16,
      'the surplus to be closed',
    );
    expect((await ask(kubelet.port, keys, { path: '/healthz', client: keys.admin })).code).toBe(200);
    for (const socket of strangers) {
      socket.destroy();
    }
  });
});
