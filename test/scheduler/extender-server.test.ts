import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, type TLSSocket } from 'node:tls';
import { Agent, request } from 'undici';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { afterEach, expect, test } from 'vitest';
import { createAuthority, issueClient, issueServing, type Authority, type KeyPair } from '../../hack/pki.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { ExtenderServer } from '../../src/scheduler/extender-server.ts';
import { evicting, passing } from '../../src/scheduler/extender-wire.ts';
import { schedulerMetrics } from '../../src/scheduler/scheduler-metrics.ts';

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

const pod = { metadata: { name: 'p', namespace: 'n', uid: 'u' }, spec: { containers: [] } };
const question = { Pod: pod, Nodes: null, NodeNames: ['a', 'b'] };

async function serve() {
  const authority = await createAuthority('ours');
  const shown = { serving: await issueServing(authority, 'extender', ['127.0.0.1']), ca: authority.cert };
  let notReady: string | undefined;
  let failing = false;
  let preempting: ((pod: Pod, hungUp: AbortSignal) => Promise<void> | void) | undefined;
  const asked: string[] = [];
  const answer = <T>(verb: string, result: T): T => {
    if (failing) throw new Error('an internal matter');
    asked.push(verb);
    return result;
  };
  const metrics = schedulerMetrics(new Registry());
  const server = new ExtenderServer({
    address: '127.0.0.1',
    port: 0,
    certificate: () => shown.serving,
    clientCa: () => shown.ca,
    clientNames: ['system:kube-scheduler'],
    extender: {
      notReady: () => notReady,
      filter: ({ nodeNames }, verb) =>
        answer(verb, passing(verb === 'filter' ? nodeNames.slice(1) : nodeNames.slice(0, 1))),
      prioritize: ({ nodeNames }) =>
        answer(
          'prioritize',
          nodeNames.map((Host) => ({ Host, Score: 1 })),
        ),
      preempt: async (args, hungUp) => {
        await preempting?.(args.pod, hungUp);
        return answer('preempt', evicting(args.victims));
      },
    },
    metrics,
    logger: pino({ level: 'silent' }),
    clock: Date.now,
  });
  const { port } = await server.listen();
  closing.push(() => server.close(0));
  return {
    authority,
    shown,
    port,
    asked,
    hold: (why: string | undefined) => (notReady = why),
    fail: (now: boolean) => (failing = now),
    /** What happens while a question about victims is answered. */
    meanwhile: (happens: typeof preempting) => (preempting = happens),
    requests: async () =>
      (await metrics.requests.get()).values.map(({ labels, value }) => ({ ...labels, times: value })),
  };
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
    return { code: answer.statusCode, headers: answer.headers, text, json: () => JSON.parse(text) as unknown };
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

const UNKNOWN = { NodeNames: [], FailedAndUnresolvableNodes: {}, Error: expect.stringContaining('certFile') as string };

test('answers nobody else', async () => {
  const { authority, port, asked, requests } = await serve();
  const stranger = await createAuthority('theirs');
  for (const client of [
    undefined,
    await issueClient(authority, 'somebody'),
    await issueClient(stranger, 'system:kube-scheduler'),
  ]) {
    const ask = caller(authority, port, client);
    expect((await ask('/filter', question)).json()).toEqual(UNKNOWN);
    expect((await ask('/confirm', question)).json()).toEqual(UNKNOWN);
    expect((await ask('/prioritize', question)).json()).toEqual([]);
    expect((await ask('/', 'x')).json()).toEqual(UNKNOWN);
    expect((await ask('/filter', question, `Basic ${btoa('any:secret')}`)).json()).toEqual(UNKNOWN);
  }
  expect(asked).toEqual([]);
  expect(await requests()).toContainEqual({ verb: 'filter', result: 'unknownCaller', times: 6 });
});

/** kube-scheduler 1.36, pkg/scheduler/extender.go, send(): the text of FailedScheduling, for whoever may read Events of the pod. */
function failedScheduling(urlPrefix: string, verb: string, answer: { code: number; json: () => unknown }): string {
  if (answer.code !== 200) return `failed ${verb} with extender at URL ${urlPrefix}/${verb}, code ${answer.code}`;
  return (answer.json() as { Error: string }).Error;
}

test('what a scheduler makes of any answer shows tenants a reason, and never the URL that it asks', async () => {
  const { authority, port, hold, fail } = await serve();
  const known = caller(authority, port, await issueClient(authority, 'system:kube-scheduler'));
  const unknown = caller(authority, port);
  const told = async (ask: typeof known, verb: string, body: unknown) =>
    failedScheduling('https://any:SECRET@spillway', verb, await ask(`/${verb}`, body));
  for (const verb of ['filter', 'confirm']) {
    hold(undefined);
    fail(false);
    expect(await told(unknown, verb, question)).toMatch(/needs a client certificate/);
    expect(await told(known, verb, '{')).toMatch(/cannot read the question/);
    expect(await told(known, verb, { ...question, Nodes: 'x'.repeat(9_000_000) })).toMatch(/too large/);
    hold('the caches are not complete yet');
    expect(await told(known, verb, question)).toMatch(/cannot answer yet.*the caches are not complete yet/);
    hold(undefined);
    fail(true);
    expect(await told(known, verb, question)).toBe('Spillway failed to work out an answer; its log says why');
  }
  expect(await told(known, 'fliter', question)).toMatch(/POST of \/filter/);
});

test('shows a new certificate and trusts a new authority without a restart', async () => {
  const { authority, shown, port } = await serve();
  const old = caller(authority, port, await issueClient(authority, 'system:kube-scheduler'));
  expect((await old('/filter', question)).json()).toMatchObject({ NodeNames: ['b'] });
  const next = await createAuthority('next');
  shown.ca = next.cert;
  shown.serving = await issueServing(next, 'extender', ['127.0.0.1']);
  // Even on the connection that is open.
  expect((await old('/filter', question)).json()).toEqual(UNKNOWN);
  const ask = caller(next, port, await issueClient(next, 'system:kube-scheduler'));
  expect((await ask('/filter', question)).json()).toMatchObject({ NodeNames: ['b'] });
});

test('goes on with a caller whose authority stays while others come and go, on the connection that is open', async () => {
  const { authority, shown, port } = await serve();
  const ask = caller(authority, port, await issueClient(authority, 'system:kube-scheduler'));
  const next = await createAuthority('next');
  for (const ca of [authority.cert, authority.cert + next.cert, authority.cert]) {
    shown.ca = ca;
    const answer = await ask('/filter', question);
    expect(answer.json()).toMatchObject({ NodeNames: ['b'] });
    expect(answer.headers['connection']).not.toBe('close');
  }
});

test('answers which pods may be evicted, and with words that are no answer where it cannot', async () => {
  const { authority, port, hold } = await serve();
  const ask = caller(authority, port, await issueClient(authority, 'system:kube-scheduler'));
  const nodes = {
    a: { Pods: [{ UID: 'x' }, { UID: 'y' }], NumPDBViolations: 1 },
    b: { Pods: [], NumPDBViolations: 0 },
  };
  const asked = { Pod: pod, NodeNameToVictims: null, NodeNameToMetaVictims: nodes };
  expect((await ask('/preempt', asked)).json()).toEqual({ NodeNameToMetaVictims: nodes });
  for (const wrong of [{ a: { Pods: [{}] } }, { a: null }, null, 'a', [1]]) {
    expect((await ask('/preempt', { ...asked, NodeNameToMetaVictims: wrong })).json()).toMatch(/^Spillway cannot read/);
  }
  expect((await ask('/preempt', { ...asked, NodeNameToVictims: {} })).json()).toMatch(/nodeCacheCapable: true/);
  hold('not yet');
  expect((await ask('/preempt', asked)).json()).toMatch(/not yet/);
});

test('answers about the victims of as many nodes as a cluster has', async () => {
  const { authority, port } = await serve();
  const ask = caller(authority, port, await issueClient(authority, 'system:kube-scheduler'));
  const Pods = Array.from({ length: 50 }, () => ({ UID: '00000000-0000-4000-8000-000000000000' }));
  const nodes = Array.from({ length: 5_000 }, (_, index) => [`node-${String(index)}`, { Pods, NumPDBViolations: 0 }]);
  const asked = { Pod: pod, NodeNameToMetaVictims: Object.fromEntries(nodes) as unknown };
  expect((await ask('/preempt', asked)).json()).toEqual({ NodeNameToMetaVictims: asked.NodeNameToMetaVictims });
});

/** A connection of kube-scheduler, which has one for each extender. */
async function connection(authority: Authority, port: number): Promise<TLSSocket> {
  const client = await issueClient(authority, 'system:kube-scheduler');
  const socket = connect({ host: '127.0.0.1', port, ca: authority.cert, ...client });
  closing.push(() => Promise.resolve(socket.destroy()));
  socket.on('error', () => undefined);
  await once(socket, 'secureConnect');
  return socket;
}

function askAbout(name: string, socket: TLSSocket): void {
  const victims = { east: { Pods: [{ UID: 'x' }], NumPDBViolations: 0 } };
  const body = JSON.stringify({ Pod: { ...pod, metadata: { ...pod.metadata, name } }, NodeNameToMetaVictims: victims });
  socket.write(
    `POST /preempt HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
}

test('hears that a scheduler did not wait for the answer before it answers the next question', async () => {
  const { authority, port, meanwhile } = await serve();
  const [first, second] = [await connection(authority, port), await connection(authority, port)];
  const happened: string[] = [];
  meanwhile(({ metadata: { name } }, hungUp) => {
    happened.push(`asked about ${name}`);
    hungUp.addEventListener('abort', () => happened.push(`hung up on ${name}`));
    if (name !== 'late') return;
    // Its time is over while this process is busy with the answer, and it goes on to the next extender.
    first.destroy();
    askAbout('next', second);
  });
  askAbout('late', first);
  await once(second, 'data');
  expect(happened).toEqual(['asked about late', 'hung up on late', 'asked about next']);
  second.destroy();
  askAbout('last', await connection(authority, port));
  await expect.poll(() => happened).toContain('asked about last');
  // It had its answer.
  expect(happened).not.toContain('hung up on next');
});

test('hears that a scheduler hung up while the answer takes its time', { timeout: 5_000 }, async () => {
  const { authority, port, meanwhile } = await serve();
  const socket = await connection(authority, port);
  const heard = new Promise<void>((resolve) => {
    meanwhile(async (_, hungUp) => {
      socket.destroy();
      await once(hungUp, 'abort');
      resolve();
    });
  });
  askAbout('early', socket);
  await heard;
});

test('says what is wrong with a question', async () => {
  const { authority, port, asked, requests } = await serve();
  const ask = caller(authority, port, await issueClient(authority, 'system:kube-scheduler'));
  const error = async (body: unknown) => ((await ask('/filter', body)).json() as { Error: string }).Error;
  expect(await error({ Pod: pod, Nodes: { items: [] } })).toContain('nodeCacheCapable: true');
  expect(await error({ NodeNames: [] })).toContain('Pod is missing');
  const misshapen = { ...pod, spec: { ...pod.spec, tolerations: 'all' } };
  expect(await error({ Pod: misshapen, NodeNames: ['a'] })).toContain('Pod: spec.tolerations is not a list');
  expect(asked).toEqual([]);
  expect(await requests()).toEqual([{ verb: 'filter', result: 'invalid', times: 3 }]);
});

test.each(['kube-scheduler.yaml', 'second-scheduler.yaml'])('%s speaks the protocol that is answered', (file) => {
  const text = readFileSync(new URL(`../../manifests/scheduler/${file}`, import.meta.url), 'utf8');
  expect(text).toContain('percentageOfNodesToScore: 100');
  // Else the virtual node that a policy wants may not be asked about on hosts with more than 100 nodes.
  expect(text).toMatch(/- name: DefaultPreemption\n +args:\n +minCandidateNodesPercentage: 100\n/);
  expect(text).not.toMatch(/urlPrefix: .*@/);
  const extenders = text.split('- urlPrefix:').slice(1);
  expect(extenders.length).toBeGreaterThan(0);
  for (const extender of extenders) {
    expect(extender).toContain('nodeCacheCapable: true');
    expect(extender).toMatch(/^ +filterVerb: (?:filter|confirm)$/m);
    // A scheduler evicts what it chose itself unless every extender that is interested in the pod is asked.
    expect(extender).toMatch(/^ +preemptVerb: preempt$/m);
    expect(extender).toMatch(/^ +certFile: /m);
  }
});
