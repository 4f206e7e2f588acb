import dns from 'node:dns';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { request, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { inspect } from 'node:util';
import { pino } from 'pino';
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { createAuthority, issueClient, issueServing, type Authority } from '../../hack/pki.ts';
import { until } from '../../hack/until.ts';
import { KubeClient } from '../../src/kube/client.ts';
import { hostAccess } from '../../src/kube/credentials.ts';
import { CredentialsError, describeError, isTransient, TransportError } from '../../src/kube/errors.ts';
import { memberAccess } from '../../src/kube/member-access.ts';
import { parseProxyUrl, proxyInWords, proxyUrl } from '../../src/kube/proxy.ts';
import { probeFailure } from '../../src/members/probe-failure.ts';
import { RotatingAccess } from '../../src/members/rotating-access.ts';
import { ForwardProxy, type ForwardProxyOptions, type Refusal } from '../fixtures/forward-proxy.ts';
import { sendJson, startHttpServer, type TestServer } from '../fixtures/http-server.ts';

const SECRET = 'p@ss:wörd/%';
const USER = { name: 'spill way', password: SECRET };
const ADDRESS = 'api.private:6443';

let authority: Authority;
let other: Authority;
const closers: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  authority = await createAuthority('members');
  other = await createAuthority('others');
});
afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()));
});

/** An API server, of a name that only proxies know, that echoes, streams and upgrades. */
async function apiServer(signer = authority): Promise<TestServer> {
  const { cert, key } = await issueServing(signer, 'api', ['api.private']);
  const server = await startHttpServer(
    (req, res) => {
      if (req.url?.startsWith('/stream') === true) {
        res.writeHead(200);
        res.write('first ');
        res.end('last');
      } else sendJson(res, 200, { user: req.headers.authorization, via: req.headers['proxy-authorization'] ?? null });
    },
    { cert, key },
  );
  server.server.on('upgrade', (_req: IncomingMessage, socket: Duplex) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: echo\r\n\r\n');
    socket.pipe(socket);
  });
  closers.push(() => server.close());
  return server;
}

async function proxyTo(server: { url: string }, options: ForwardProxyOptions = {}): Promise<ForwardProxy> {
  const proxy = await ForwardProxy.start({ names: { [ADDRESS]: server.url }, ...options });
  closers.push(() => proxy.close());
  return proxy;
}

function kubeconfig(proxyUrl: string | undefined, cluster: object = {}): string {
  return JSON.stringify({
    clusters: [
      {
        name: 'c',
        cluster: {
          server: `https://${ADDRESS}`,
          'certificate-authority-data': Buffer.from(authority.cert).toString('base64'),
          'proxy-url': proxyUrl,
          ...cluster,
        },
      },
    ],
    users: [{ name: 'u', user: { token: 'tok' } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  });
}

function clientOf(proxyUrl: string, cluster: object = {}): KubeClient {
  const client = new KubeClient({ cluster: 'east', ...memberAccess(kubeconfig(proxyUrl, cluster)) });
  closers.push(() => client.close());
  return client;
}

async function failure(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (e) {
    return e;
  }
  throw new Error('expected a failure');
}

/** All that a log, a condition or a dump of the error could show. */
function allWords(error: unknown): string {
  const lines: string[] = [];
  pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) }).error({ err: error });
  return [inspect(error, { depth: 10, showHidden: true }), describeError(error), ...lines].join('\n');
}

describe.each(['http', 'socks5', 'socks5h'] as const)('a cluster behind a proxy of %s', (scheme) => {
  it.each([{}, { user: USER }])(
    'gets each kind of request through it, by a name that only the proxy knows: %o',
    async (o) => {
      const proxy = await proxyTo(await apiServer(), o);
      const client = clientOf(proxy.url(scheme));
      // Its user is for the proxy alone.
      expect(await client.request({ path: '/call' })).toEqual({ user: 'Bearer tok', via: null });
      const watched: string[] = [];
      await client.receive({ path: '/stream' }, (chunk) => watched.push(chunk.toString()));
      expect(watched.join('')).toBe('first last');
      for (const framed of [false, true]) {
        const { body } = await client.stream({ path: '/stream', framed });
        const pieces: Buffer[] = [];
        for await (const piece of body as AsyncIterable<Buffer>) pieces.push(piece);
        expect(Buffer.concat(pieces).toString()).toContain('last');
      }
      const { socket, host, headers } = await client.dial();
      const upgraded = request({
        createConnection: () => socket,
        headers: { ...headers, host, connection: 'Upgrade', upgrade: 'echo' },
      });
      upgraded.end();
      const [, stream] = (await once(upgraded, 'upgrade')) as [unknown, Duplex];
      stream.write('hello');
      expect(String(await once(stream, 'data'))).toBe('hello');
      stream.destroy();
      expect(proxy.asked).toEqual(Array.from({ length: 5 }, () => ADDRESS));
      expect(proxy.connections).toBe(5);
    },
  );

  it('keeps its connections for the next requests, and makes new ones when they are cut', async () => {
    const proxy = await proxyTo(await apiServer());
    const client = clientOf(proxy.url(scheme));
    for (let at = 0; at < 9; at++) await client.request({ path: '/call' });
    // One may still be busy with the last answer when the next request comes.
    expect(proxy.connections).toBeLessThanOrEqual(2);
    const before = proxy.connections;
    proxy.cut();
    await client.request({ path: '/call' });
    expect(proxy.connections).toBe(before + 1);
  });

  it('is not believed by whom the proxy vouches for', async () => {
    const proxy = await proxyTo(await apiServer(other));
    const error = await failure(clientOf(proxy.url(scheme)).request({ path: '/call' }));
    expect(error).toMatchObject({ kind: 'tls' });
    expect(proxy.asked).toEqual([ADDRESS]);
  });

  const REFUSALS: [string, Refusal, RegExp][] = [
    ['403', { http: 403, socks: 2 }, /refuses/],
    ['503', { http: 503, socks: 4 }, /does not reach the API server: 503|refuses: .*HostUnreachable/],
    ['nothing', 'close', /closed the connection|refuses: Socket closed/],
  ];
  it.each(REFUSALS)(
    'is unreachable, and asked for again, while the proxy answers %s',
    async (_what, refusal, words) => {
      const proxy = await proxyTo(await apiServer(), { user: USER });
      proxy.refusal = refusal;
      const client = clientOf(proxy.url(scheme));
      const error = await failure(client.request({ path: '/call' }));
      expect(proxy.connections).toBe(4);
      for (const one of [error, await failure(client.dial()), await failure(client.stream({ path: '/stream' }))]) {
        expect(one).toBeInstanceOf(TransportError);
        expect(one).toMatchObject({ kind: 'proxy', detail: expect.stringMatching(words) as string });
        expect(isTransient(one)).toBe(true);
        expect(probeFailure(one)).toMatchObject({ reason: 'ProxyFailed' });
        expect(allWords(one)).not.toContain(SECRET);
        expect(allWords(one)).not.toContain(encodeURIComponent(SECRET));
        expect(allWords(one)).not.toContain(Buffer.from(`${USER.name}:${SECRET}`).toString('base64'));
      }
      proxy.refusal = undefined;
      expect(await client.request({ path: '/call' })).toMatchObject({ user: 'Bearer tok' });
    },
  );

  it('is unreachable while the proxy does not take its user, or is not there', async () => {
    const proxy = await proxyTo(await apiServer(), { user: USER });
    const wrong = clientOf(proxy.url(scheme).replace(/:[^:@]*@/, ':wrong@'));
    const refused = await failure(wrong.request({ path: '/call', retry: false }));
    expect(refused).toMatchObject({ kind: 'proxy', detail: expect.stringMatching(/407|Authentication/) as string });
    const url = proxy.url(scheme);
    await proxy.close();
    closers.pop();
    const gone = await failure(clientOf(url).request({ path: '/call', retry: false }));
    expect(gone).toMatchObject({ kind: 'proxy', detail: expect.stringContaining('cannot be reached') as string });
    expect(describeError(gone)).toContain(proxyInWords(parseProxyUrl(url)));
    expect(allWords(gone)).not.toContain(encodeURIComponent(SECRET));
  });

  it('does not wait for a silent proxy longer than the caller', async () => {
    const proxy = await proxyTo(await apiServer());
    proxy.refusal = 'hang';
    const client = clientOf(proxy.url(scheme));
    expect(await failure(client.request({ path: '/call', deadlineMs: 100 }))).toMatchObject({ kind: 'timeout' });
    const stop = new AbortController();
    const dialing = failure(client.dial(stop.signal));
    await until('it was asked', () => proxy.connections === 2);
    stop.abort();
    expect(await dialing).toMatchObject({ kind: 'aborted' });
  });
});

it('a proxy that takes connections and stays silent is named by a probe, which gives up after 5 s and tries again until then', async () => {
  const proxy = await proxyTo(await apiServer());
  proxy.refusal = 'hang';
  const error = await failure(clientOf(proxy.url('http')).request({ path: '/call', deadlineMs: 5_000 }));
  const detail = expect.stringContaining('has not led to the API server within 4000 ms') as string;
  expect(error).toMatchObject({ kind: 'proxy', detail });
  expect(proxy.connections).toBe(2);
});

it('a proxy with addresses of both kinds is said why it cannot be reached', async () => {
  const proxy = await proxyTo(await apiServer());
  const url = proxy.url('http').replace('127.0.0.1', 'proxy.example');
  await proxy.close();
  closers.pop();
  const addresses = [
    { address: '127.0.0.1', family: 4 },
    { address: '::1', family: 6 },
  ];
  type Found = (error: null, addresses: object[]) => void;
  const lookup = vi
    .spyOn(dns, 'lookup')
    .mockImplementation(((_name: string, _how: object, found: Found) => found(null, addresses)) as typeof dns.lookup);
  const error = await failure(clientOf(url).request({ path: '/call', retry: false }));
  expect(lookup).toHaveBeenCalled();
  lookup.mockRestore();
  expect(error).toMatchObject({ detail: expect.stringMatching(/cannot be reached: connect E[A-Z]+ /) as string });
});

describe('a proxy that is spoken to by TLS', () => {
  it('is known by the authorities of the kubeconfig, and gets no client certificate of ours', async () => {
    const { cert, key } = await issueServing(authority, 'proxy', ['127.0.0.1']);
    const proxy = await proxyTo(await apiServer(), { tls: { cert, key }, user: USER });
    expect(await clientOf(proxy.url('https')).request({ path: '/call' })).toMatchObject({ user: 'Bearer tok' });
    expect(proxy.asked).toEqual([ADDRESS]);
  });

  it('is not told its user when it is another one', async () => {
    const { cert, key } = await issueServing(other, 'proxy', ['127.0.0.1']);
    const proxy = await proxyTo(await apiServer(), { tls: { cert, key }, user: USER });
    const error = await failure(clientOf(proxy.url('https')).request({ path: '/call', retry: false }));
    expect(error).toMatchObject({ kind: 'proxy', detail: expect.stringContaining('cannot be reached') as string });
    expect(proxy.connections).toBe(0);
  });
});

describe('what answers in the place of a proxy', () => {
  let server: Server;

  async function answering(bytes: string): Promise<string> {
    server = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', () => socket.end(bytes));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    closers.push(async () => await new Promise((resolve) => server.close(resolve)));
    return `127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  it.each([
    ['http', 'SSH-2.0-OpenSSH_9.6\r\n'],
    ['http', `HTTP/1.1 200 ok\r\nx: ${'a'.repeat(100_000)}\r\n\r\n`],
    ['http', `HTTP/1.1 403 \u001b[31m${SECRET}\r\n\r\n`],
    ['socks5', 'HTTP/1.1 400 Bad Request\r\n\r\n'],
    ['socks5', '\u0005\u00ff'],
    ['socks5', '\u0005\u0007'],
  ])('is an error like any other: %s %j', async (scheme, bytes) => {
    const client = clientOf(`${scheme}://${await answering(bytes)}`);
    const error = await failure(client.request({ path: '/call', retry: false }));
    expect(error).toMatchObject({ kind: 'proxy' });
    expect(describeError(error)).not.toContain('\u001b');
  });
});

describe('proxy-url', () => {
  it.each([
    ['http://p', 'http://p:80'],
    ['https://user:pw@p.example:8443/', 'https://p.example:8443'],
    ['socks5://[::1]', 'socks5://[::1]:1080'],
    ['socks5h://u:p@p:9', 'socks5://p:9'],
  ])('%s leads to %s', (url, words) => expect(proxyInWords(parseProxyUrl(url))).toBe(words));

  it('takes apart a user with any characters', () => {
    const url = `http://${encodeURIComponent(USER.name)}:${encodeURIComponent(SECRET)}@p`;
    expect(parseProxyUrl(url).user).toEqual(USER);
    expect(parseProxyUrl(proxyUrl(parseProxyUrl(url)))).toEqual(parseProxyUrl(url));
  });

  it.each([
    'ftp://u:s3cret@p',
    'socks4://u:s3cret@p',
    'u:s3cret@p:3128',
    'http://u:s3cret%zz@p',
    `http://u:s3cret${'x'.repeat(255)}@p`,
    'http://:s3cret@p',
    'http://u:s3cret@p/path',
    'http://u:s3cret@p?q',
    'socks5://u:s3cret@',
    'constructor:s3cret',
  ])('is refused by one error that names the field, and not what it says: %s', async (url) => {
    const dir = await mkdtemp(join(tmpdir(), 'proxy-url-'));
    const file = join(dir, 'config');
    writeFileSync(file, kubeconfig(url));
    const errors = [
      await failure((async () => await Promise.resolve(memberAccess(kubeconfig(url))))()),
      await failure(hostAccess({ kubeconfig: file })),
    ];
    await rm(dir, { recursive: true });
    for (const error of errors) {
      expect(error).toBeInstanceOf(CredentialsError);
      expect(error).toMatchObject({
        reason: 'InvalidProxy',
        message: expect.stringContaining('cluster.proxy-url') as string,
      });
      expect(allWords(error)).not.toContain('s3cret');
    }
  });

  it('counts in the kubeconfig of a person, with a client certificate and with a credential plugin', async () => {
    const proxy = await proxyTo(await apiServer(), { user: USER });
    const dir = await mkdtemp(join(tmpdir(), 'proxy-url-'));
    closers.push(() => rm(dir, { recursive: true }));
    const { cert, key } = await issueClient(authority, 'alice', []);
    const info = join(dir, 'info');
    const exec = {
      apiVersion: 'client.authentication.k8s.io/v1',
      command: process.execPath,
      args: [
        '-e',
        `fs.writeFileSync(${JSON.stringify(info)}, process.env.KUBERNETES_EXEC_INFO); console.log(JSON.stringify({status:{token:'plugged'}}))`,
      ],
      provideClusterInfo: true,
      interactiveMode: 'Never',
    };
    const base64 = (text: string): string => Buffer.from(text).toString('base64');
    const users = [{ 'client-certificate-data': base64(cert), 'client-key-data': base64(key) }, { exec }];
    for (const [at, user] of users.entries()) {
      const file = join(dir, `config-${at}`);
      const text = JSON.parse(kubeconfig(proxy.url('http'))) as { users: { user: object }[] };
      text.users = [{ ...text.users[0], user }];
      writeFileSync(file, JSON.stringify(text));
      const client = new KubeClient({ cluster: 'host', ...(await hostAccess({ kubeconfig: file })) });
      closers.push(() => client.close());
      const { user: told } = await client.request<{ user?: string }>({ path: '/call' });
      expect(told).toBe([undefined, 'Bearer plugged'][at]);
    }
    expect(proxy.asked).toEqual([ADDRESS, ADDRESS]);
    expect(readFileSync(info, 'utf8')).toContain('"proxy-url":"http://');
  });

  it('is part of the address of a member: its connections begin anew when it changes', () => {
    const rotating = RotatingAccess.of(memberAccess(kubeconfig('http://a')));
    expect(rotating.endpoint.proxy?.host).toBe('a');
    expect(rotating.use(memberAccess(kubeconfig('http://a/')))).toBe(true);
    expect(rotating.use(memberAccess(kubeconfig('http://b')))).toBe(false);
    expect(rotating.use(memberAccess(kubeconfig(undefined)))).toBe(false);
  });
});
