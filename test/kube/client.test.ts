import { afterEach, describe, expect, it } from 'vitest';
import { once } from 'node:events';
import { gzipSync } from 'node:zlib';
import { KubeClient } from '../../src/kube/client.ts';
import { type Credentials } from '../../src/kube/credentials.ts';
import { staticAccess } from '../../src/kube/static-access.ts';
import { ApiError, isTransient, TransportError } from '../../src/kube/errors.ts';
import { CONFIG_MAPS, resourcePath } from '../../src/kube/resource.ts';
import { get, list, remove } from '../../src/kube/verbs.ts';
import { sendJson, startHttpServer, type TestServer } from '../fixtures/http-server.ts';

type Handler = Parameters<typeof startHttpServer>[0];

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()));
});

async function serve(handler: Handler, credentials?: Credentials): Promise<{ server: TestServer; client: KubeClient }> {
  const server = await startHttpServer(handler);
  const access = staticAccess({ endpoint: { server: server.url }, token: 'secret-token' });
  const client = new KubeClient({ cluster: 'test', ...access, ...(credentials === undefined ? {} : { credentials }) });
  closers.push(
    () => client.close(),
    () => server.close(),
  );
  return { server, client };
}

async function failure(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (e) {
    return e;
  }
  throw new Error('expected a failure');
}

const notFound = {
  kind: 'Status',
  status: 'Failure',
  reason: 'NotFound',
  code: 404,
  message: 'configmaps "x" not found',
};

describe('requests', () => {
  it('sends credentials, user agent and query, and returns the JSON', async () => {
    const { server, client } = await serve((req, res) =>
      sendJson(res, 200, { auth: req.headers.authorization, agent: req.headers['user-agent'] }),
    );
    const answer = await client.request({
      path: '/version',
      query: { a: 'x y', b: ['1', '2'], c: undefined, d: true },
    });
    expect(answer).toEqual({ auth: 'Bearer secret-token', agent: 'spillway' });
    expect(server.seen).toEqual(['GET /version?a=x%20y&b=1&b=2&d=true']);
  });

  it('needs no new connection after a deletion with options', async () => {
    const ports = new Set<number | undefined>();
    const { client } = await serve((req, res) => {
      ports.add(req.socket.remotePort);
      sendJson(res, 200, { kind: 'Status', status: 'Success' });
    });
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) {
      await remove(client, CONFIG_MAPS, { namespace: 'x', name }, { uid: name });
    }
    expect(ports.size).toBeLessThanOrEqual(2);
  });

  it('turns a Status into an ApiError without the query in its text', async () => {
    const { client } = await serve((_req, res) => sendJson(res, 404, notFound));
    const error = await failure(
      client.request({ path: '/api/v1/namespaces/a/configmaps/x', query: { command: 'pw' } }),
    );
    expect(error).toBeInstanceOf(ApiError);
    expect(error).toMatchObject({ code: 404, reason: 'NotFound', cluster: 'test', method: 'GET' });
    expect(String(error)).toContain('configmaps "x" not found');
    expect(String(error)).not.toContain('pw');
  });

  it.each([
    ['HTML', (res: Parameters<Handler>[1]) => res.end('<html>login</html>')],
    ['truncated JSON', (res: Parameters<Handler>[1]) => res.end('{"kind":"ConfigMap","meta')],
    ['an empty answer', (res: Parameters<Handler>[1]) => res.end()],
    ['a redirect', (res: Parameters<Handler>[1]) => res.writeHead(302, { location: 'http://127.0.0.1:1/' }).end()],
  ])('calls %s malformed', async (_name, answer) => {
    const { client } = await serve((_req, res) => void answer(res));
    const error = await failure(client.request({ path: '/version', retry: false }));
    expect(error).toBeInstanceOf(TransportError);
    expect(error).toMatchObject({ kind: 'malformed' });
  });

  it('undoes gzip', async () => {
    const { client } = await serve((req, res) => {
      const zip = req.headers['accept-encoding'] === 'gzip';
      res.writeHead(200, { 'content-type': 'application/json', ...(zip ? { 'content-encoding': 'gzip' } : {}) });
      res.end(zip ? gzipSync('{"ok":"ä"}') : '{}');
    });
    expect(await client.request({ path: '/x', gzip: true })).toEqual({ ok: 'ä' });
  });

  it('does not unpack a bomb', async () => {
    const bomb = gzipSync(Buffer.alloc(257 * 1024 * 1024));
    const { client } = await serve((_req, res) => void res.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb));
    expect(await failure(client.request({ path: '/x', gzip: true, retry: false }))).toMatchObject({
      kind: 'malformed',
    });
  });

  it('gives up at the deadline and when the caller says so', async () => {
    const { client } = await serve(() => undefined);
    const started = performance.now();
    expect(await failure(client.request({ path: '/slow', deadlineMs: 200 }))).toMatchObject({ kind: 'timeout' });
    expect(performance.now() - started).toBeLessThan(2000);
    const signal = AbortSignal.timeout(50);
    const aborted = await failure(client.request({ path: '/slow', signal }));
    expect(aborted).toMatchObject({ kind: 'aborted' });
    expect(isTransient(aborted)).toBe(false);
  });

  it('keeps the deadline for requests that wait for a free connection', async () => {
    const { client } = await serve(() => undefined);
    const failures = await Promise.all(
      Array.from({ length: 20 }, () => failure(client.request({ path: '/slow', deadlineMs: 200 }))),
    );
    for (const error of failures) {
      expect(error).toMatchObject({ kind: 'timeout' });
    }
  });

  it('says who refused when nobody listens', async () => {
    const { server, client } = await serve(() => undefined);
    await server.close();
    expect(await failure(client.request({ path: '/x', deadlineMs: 1000 }))).toMatchObject({ kind: 'refused' });
  });

  it('does not let watches starve calls', async () => {
    const { client } = await serve((req, res) => {
      if (req.url === '/watch') {
        res.writeHead(200).flushHeaders();
      } else {
        sendJson(res, 200, { ok: true });
      }
    });
    const stop = new AbortController();
    const watches = Array.from({ length: 40 }, () =>
      failure(client.receive({ path: '/watch', signal: stop.signal }, () => undefined)),
    );
    expect(await client.request({ path: '/x', deadlineMs: 2000 })).toEqual({ ok: true });
    stop.abort();
    for (const error of await Promise.all(watches)) {
      expect(error).toMatchObject({ kind: 'aborted' });
    }
  });
});

describe('streams', () => {
  it('hand out the body as it comes, and end with the signal', async () => {
    const { client } = await serve((_req, res) => {
      res.writeHead(200, { 'content-type': 'text/plain' });
      res.write('first');
    });
    const stop = new AbortController();
    const { status, headers, body } = await client.stream({ path: '/log', deadlineMs: 1_000, signal: stop.signal });
    expect(status).toBe(200);
    expect(headers['content-type']).toBe('text/plain');
    const [first] = (await once(body, 'data')) as [Buffer];
    expect(first.toString()).toBe('first');
    const error = once(body, 'error');
    stop.abort();
    expect((await error)[0]).toBeInstanceOf(Error);
    expect(body.destroyed).toBe(true);
  });

  it('have a deadline for their start and refuse as calls do', async () => {
    const { client } = await serve((req, res) => {
      if (req.url !== '/hang') {
        sendJson(res, 404, notFound);
      }
    });
    expect(await failure(client.stream({ path: '/hang', deadlineMs: 100 }))).toMatchObject({ kind: 'timeout' });
    expect(await failure(client.stream({ path: '/hang', signal: AbortSignal.abort() }))).toMatchObject({
      kind: 'aborted',
    });
    expect(await failure(client.stream({ path: '/x' }))).toMatchObject({ code: 404, reason: 'NotFound' });
    expect(await failure(client.receive({ path: '/x' }, () => undefined))).toMatchObject({ code: 404 });
    expect(await failure(client.receive({ path: '/hang', deadlineMs: 100 }, () => undefined))).toMatchObject({
      kind: 'timeout',
    });
  });

  it('break with the client', async () => {
    const { client } = await serve((_req, res) => void res.writeHead(200).write('x'));
    const watch = failure(client.receive({ path: '/watch' }, () => undefined));
    const call = failure(client.request({ path: '/endless' }));
    await client.close();
    expect(await watch).toBeInstanceOf(TransportError);
    expect(await call).toBeInstanceOf(TransportError);
    expect(await failure(client.request({ path: '/x' }))).toMatchObject({ kind: 'aborted' });
  });
});

describe('retries', () => {
  it('repeats a GET after a reset and a 503, and honours Retry-After', async () => {
    const times: number[] = [];
    const { client } = await serve((req, res) => {
      times.push(performance.now());
      if (times.length === 1) {
        req.socket.destroy();
      } else if (times.length === 2) {
        sendJson(res, 503, {});
      } else if (times.length === 3) {
        sendJson(res, 429, {}, { 'retry-after': '1' });
      } else {
        sendJson(res, 200, { ok: true });
      }
    });
    expect(await client.request({ path: '/x' })).toEqual({ ok: true });
    expect(times).toHaveLength(4);
    expect(Number(times[3]) - Number(times[2])).toBeGreaterThan(990);
  });

  it('repeats a POST only after 429 with Retry-After', async () => {
    const codes = [429, 200, 500, 429];
    const headers: Record<string, string>[] = [{ 'retry-after': '0' }];
    const { server, client } = await serve((_req, res) => {
      const at = server.seen.length - 1;
      sendJson(res, codes[at] ?? 200, {}, headers[at] ?? {});
    });
    await client.request({ method: 'POST', path: '/x', body: {} });
    expect(server.seen).toHaveLength(2);
    expect(await failure(client.request({ method: 'POST', path: '/x', body: {} }))).toMatchObject({ code: 500 });
    expect(await failure(client.request({ method: 'POST', path: '/x', body: {} }))).toMatchObject({ code: 429 });
    expect(server.seen).toHaveLength(4);
  });

  it('does not wait beyond its deadline for Retry-After', async () => {
    const { client } = await serve((_req, res) => sendJson(res, 429, {}, { 'retry-after': '60' }));
    const error = await failure(client.request({ path: '/x', deadlineMs: 500 }));
    expect(error).toMatchObject({ code: 429, retryAfterMs: 30_000 });
  });

  it('asks for fresh credentials once after 401', async () => {
    let token = 'old';
    let forced = 0;
    const credentials: Credentials = {
      headers: (force) => {
        if (force === true) {
          forced++;
          token = 'new';
        }
        return Promise.resolve({ authorization: token });
      },
      tls: () => ({}),
      fingerprint: () => '',
    };
    const { server, client } = await serve((req, res) => {
      const ok = req.headers.authorization === 'new' && req.url !== '/never';
      sendJson(res, ok ? 200 : 401, { ok });
    }, credentials);
    expect(await client.request({ method: 'POST', path: '/x', body: {} })).toEqual({ ok: true });
    expect(forced).toBe(1);
    expect(await failure(client.request({ path: '/never' }))).toMatchObject({ code: 401 });
    expect(server.seen.filter((line) => line.includes('/never'))).toHaveLength(1);
  });
});

describe('verbs', () => {
  const path = resourcePath(CONFIG_MAPS, 'a');
  const object = (name: string) => ({ metadata: { name, namespace: 'a', uid: `uid-${name}` } });

  it('pages through a list and fills in the kind', async () => {
    const { server, client } = await serve((req, res) => {
      const second = String(req.url).includes('continue=next');
      sendJson(res, 200, {
        kind: 'ConfigMapList',
        apiVersion: 'v1',
        metadata: { resourceVersion: '7', ...(second ? {} : { continue: 'next' }) },
        items: [object(second ? 'two' : 'one')],
      });
    });
    const { items, resourceVersion } = await list(client, CONFIG_MAPS, { namespace: 'a', limit: 1 });
    expect(items.map((item) => [item.metadata.name, item.kind])).toEqual([
      ['one', 'ConfigMap'],
      ['two', 'ConfigMap'],
    ]);
    expect(resourceVersion).toBe('7');
    expect(server.seen).toEqual([`GET ${path}?limit=1`, `GET ${path}?limit=1&continue=next`]);
  });

  it.each([
    ['{}', {}],
    ['a Status', { kind: 'Status', metadata: {} }],
    ['another kind', { kind: 'SecretList', metadata: { resourceVersion: '1' }, items: [] }],
    ['no items', { kind: 'ConfigMapList', metadata: { resourceVersion: '1' } }],
    ['no resourceVersion', { kind: 'ConfigMapList', metadata: {}, items: [] }],
    ['a nameless item', { kind: 'ConfigMapList', metadata: { resourceVersion: '1' }, items: [{ metadata: {} }] }],
  ])('never takes %s for a list', async (_name, answer) => {
    const { client } = await serve((_req, res) => sendJson(res, 200, answer));
    expect(await failure(list(client, CONFIG_MAPS, { retry: false }))).toMatchObject({ kind: 'malformed' });
  });

  it('never takes {} or another object for the one asked for', async () => {
    let answer: unknown = {};
    const { client } = await serve((_req, res) => sendJson(res, 200, answer));
    const ref = { namespace: 'a', name: 'x' };
    expect(await failure(get(client, CONFIG_MAPS, ref, { retry: false }))).toMatchObject({ kind: 'malformed' });
    answer = object('y');
    expect(await failure(get(client, CONFIG_MAPS, ref, { retry: false }))).toMatchObject({ kind: 'malformed' });
    answer = {};
    expect(await failure(remove(client, CONFIG_MAPS, ref))).toMatchObject({ kind: 'malformed' });
  });

  it('sends preconditions with a delete', async () => {
    const bodies: string[] = [];
    const { client } = await serve((_req, res, body) => {
      bodies.push(body);
      sendJson(res, 200, { kind: 'Status', status: 'Success' });
    });
    await remove(client, CONFIG_MAPS, { namespace: 'a', name: 'x' }, { uid: 'u1', gracePeriodSeconds: 0 });
    expect(JSON.parse(String(bodies[0]))).toEqual({
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      gracePeriodSeconds: 0,
      preconditions: { uid: 'u1' },
    });
  });
});
