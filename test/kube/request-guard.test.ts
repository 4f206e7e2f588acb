import type { ServerResponse } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { KubeClient } from '../../src/kube/client.ts';
import { type Credentials } from '../../src/kube/credentials.ts';
import { staticAccess } from '../../src/kube/static-access.ts';
import { sendJson, startHttpServer } from '../fixtures/http-server.ts';
import { eventually } from '../fixtures/followed-collection.ts';

class LostError extends Error {}

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()));
});

/** A client whose guard refuses once `lost` says so; the server takes requests and answers when told. */
async function fenced(o: { connections?: number; credentials?: Credentials } = {}) {
  const open: ServerResponse[] = [];
  const arrived: string[] = [];
  const server = await startHttpServer((req, res) => {
    arrived.push(`${req.method} ${req.url}`);
    open.push(res);
  });
  const state = { lost: false };
  const client = new KubeClient({
    cluster: 'east',
    ...staticAccess({ endpoint: { server: server.url } }),
    ...o,
    guard: () => {
      if (state.lost) throw new LostError('lost');
    },
  });
  closers.push(
    () => client.close(),
    () => server.close(),
  );
  return { client, server, open, arrived, state };
}

const post = (client: KubeClient, path = '/x') => client.request({ method: 'POST', path, body: {} });
const outcome = (promise: Promise<unknown>): Promise<unknown> => promise.catch((error: unknown) => error);

describe('the guard of a client', () => {
  it('keeps back what waited for a connection while the guard changed its mind, and no other', async () => {
    const { client, open, arrived, state } = await fenced({ connections: 4 });
    const writes = Array.from({ length: 12 }, (_, i) => outcome(post(client, `/${i}`)));
    await eventually(
      () => arrived.length === 4,
      () => arrived,
    );
    state.lost = true;
    const read = client.request({ path: '/read' });
    for (const response of open.splice(0)) sendJson(response, 200, {});
    await eventually(
      () => open.length === 1,
      () => arrived,
    );
    for (const response of open.splice(0)) sendJson(response, 200, {});
    await read;
    const results = await Promise.all(writes);
    expect(arrived).toHaveLength(5);
    expect(results.filter((result) => result instanceof LostError)).toHaveLength(8);
    // The connections are as good as before.
    state.lost = false;
    const late = post(client, '/late');
    await eventually(
      () => open.length === 1,
      () => arrived,
    );
    for (const response of open.splice(0)) sendJson(response, 200, { late: true });
    expect(await late).toEqual({ late: true });
  });

  it('is asked again for another try', async () => {
    const { client, open, arrived, state } = await fenced();
    const write = outcome(post(client));
    await eventually(
      () => open.length === 1,
      () => arrived,
    );
    state.lost = true;
    for (const response of open.splice(0)) sendJson(response, 429, {}, { 'retry-after': '0' });
    expect(await write).toBeInstanceOf(LostError);
    expect(arrived).toHaveLength(1);
  });

  it('is asked again after credentials were renewed', async () => {
    const state = { lost: () => {} };
    const credentials: Credentials = {
      headers: (force) => {
        if (force === true) state.lost();
        return Promise.resolve({ authorization: force === true ? 'new' : 'old' });
      },
      fingerprint: () => '',
      tls: () => ({}),
    };
    const { client, open, arrived, state: fence } = await fenced({ credentials });
    state.lost = () => {
      fence.lost = true;
    };
    const write = outcome(post(client));
    await eventually(
      () => open.length === 1,
      () => arrived,
    );
    for (const response of open.splice(0)) sendJson(response, 401, {});
    expect(await write).toBeInstanceOf(LostError);
    expect(arrived).toHaveLength(1);
  });

  it('is asked again when a connection to be upgraded is there', async () => {
    const { client, state } = await fenced();
    const dialed = outcome(client.dial());
    // The first question is asked before anything waits for the network.
    await Promise.resolve();
    await Promise.resolve();
    state.lost = true;
    expect(await dialed).toBeInstanceOf(LostError);
  });
});
