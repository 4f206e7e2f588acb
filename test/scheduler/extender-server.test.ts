import { readFileSync } from 'node:fs';
import { Agent, request } from 'undici';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { afterEach, expect, test } from 'vitest';
import { createAuthority, issueClient, issueServing, type Authority, type KeyPair } from '../../hack/pki.ts';
import { ExtenderServer } from '../../src/scheduler/extender-server.ts';
import { passing } from '../../src/scheduler/extender-wire.ts';
import { schedulerMetrics } from '../../src/scheduler/scheduler-metrics.ts';

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

const pod = { metadata: { name: 'p', namespace: 'n', uid: 'u' }, spec: { containers: [] } };
const question = { Pod: pod, Nodes: null, NodeNames: ['a', 'b'] };

async function serve(o: { token?: string } = {}) {
  const authority = await createAuthority('ours');
  const shown = { serving: await issueServing(authority, 'extender', ['127.0.0.1']), ca: authority.cert };
  let notReady: string | undefined;
  const server = new ExtenderServer({
    address: '127.0.0.1',
    port: 0,
    certificate: () => shown.serving,
    clientCa: () => shown.ca,
    clientNames: ['system:kube-scheduler'],
    token: () => o.token,
    extender: {
      notReady: () => notReady,
      filter: ({ nodeNames }) => passing(nodeNames.slice(1)),
      confirm: ({ nodeNames }) => passing(nodeNames.slice(0, 1)),
      prioritize: ({ nodeNames }) => nodeNames.map((Host) => ({ Host, Score: 1 })),
    },
    metrics: schedulerMetrics(new Registry()),
    logger: pino({ level: 'silent' }),
    clock: Date.now,
  });
  const { port } = await server.listen();
  closing.push(() => server.close(0));
  return { authority, shown, port, hold: (why: string | undefined) => (notReady = why) };
}

function caller(authority: Authority, port: number, client?: KeyPair) {
  const connect = { ca: authority.cert, ...client };
  const agent = new Agent({ connect });
  closing.push(() => agent.destroy());
  return async (path: string, body: unknown, authorization?: string) => {
    const answer = await request(`https://127.0.0.1:${port}${path}`, {
      method: 'POST',
      dispatcher: agent,
      headers: { 'content-type': 'application/json', ...(authorization === undefined ? {} : { authorization }) },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
    const text = await answer.body.text();
    return { code: answer.statusCode, text, json: () => JSON.parse(text) as unknown };
  };
}

test('answers a scheduler with the right certificate, in the words of the protocol', async () => {
  const { authority, port } = await serve();
  const ask = caller(authority, port, await issueClient(authority, 'system:kube-scheduler'));
  expect((await ask('/filter', question)).json()).toEqual({
    NodeNames: ['b'],
    FailedAndUnresolvableNodes: {},
    Error: '',
  });
  expect((await ask('/confirm', question)).json()).toMatchObject({ NodeNames: ['a'] });
  expect((await ask('/prioritize', question)).json()).toEqual([
    { Host: 'a', Score: 1 },
    { Host: 'b', Score: 1 },
  ]);
});

test('answers nobody else', async () => {
  const { authority, port } = await serve({ token: 'secret' });
  const stranger = await createAuthority('theirs');
  for (const client of [
    undefined,
    await issueClient(authority, 'somebody'),
    await issueClient(stranger, 'system:kube-scheduler'),
  ]) {
    const ask = caller(authority, port, client);
    expect((await ask('/filter', question)).code).toBe(401);
    expect((await ask('/prioritize', question)).code).toBe(401);
    expect((await ask('/', 'x')).code).toBe(401);
    expect((await ask('/filter', question, 'Bearer wrong')).code).toBe(401);
    expect((await ask('/filter', question, 'Bearer secret')).code).toBe(200);
    // The only way for kube-scheduler to send a secret: https://any:secret@host in its configuration.
    expect((await ask('/filter', question, `Basic ${btoa('any:secret')}`)).code).toBe(200);
    expect((await ask('/filter', question, `Basic ${btoa('secret:')}`)).code).toBe(401);
  }
});

test('without a token no token is good', async () => {
  const { authority, port } = await serve();
  const ask = caller(authority, port);
  for (const authorization of ['Bearer ', 'Bearer undefined', `Basic ${btoa('any:')}`]) {
    expect((await ask('/filter', question, authorization)).code).toBe(401);
  }
});

test('shows a new certificate and trusts a new authority without a restart', async () => {
  const { authority, shown, port } = await serve();
  const old = caller(authority, port, await issueClient(authority, 'system:kube-scheduler'));
  expect((await old('/filter', question)).code).toBe(200);
  const next = await createAuthority('next');
  shown.ca = next.cert;
  shown.serving = await issueServing(next, 'extender', ['127.0.0.1']);
  // Even on the connection that is open.
  expect((await old('/filter', question)).code).toBe(401);
  const ask = caller(next, port, await issueClient(next, 'system:kube-scheduler'));
  expect((await ask('/filter', question)).code).toBe(200);
});

test('says what is wrong with a question, and when it cannot answer yet', async () => {
  const { authority, port, hold } = await serve();
  const ask = caller(authority, port, await issueClient(authority, 'system:kube-scheduler'));
  expect(await ask('/filter', '{')).toMatchObject({ code: 400 });
  expect(await ask('/filter', { Pod: pod, Nodes: { items: [] } })).toMatchObject({
    code: 400,
    text: expect.stringContaining('nodeCacheCapable: true') as string,
  });
  expect(await ask('/filter', { NodeNames: [] })).toMatchObject({ code: 400 });
  hold('the caches are not complete yet');
  expect(await ask('/filter', question)).toMatchObject({ code: 503, text: 'the caches are not complete yet\n' });
});

test('the manifest speaks the protocol that is answered', () => {
  const text = readFileSync(new URL('../../manifests/scheduler/kube-scheduler.yaml', import.meta.url), 'utf8');
  expect(text).toContain('nodeCacheCapable: true');
  expect(text).toContain('percentageOfNodesToScore: 100');
});
