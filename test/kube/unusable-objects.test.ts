import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { KubeClient } from '../../src/kube/client.ts';
import { staticAccess } from '../../src/kube/static-access.ts';
import { CONFIG_MAPS, PODS } from '../../src/kube/resource.ts';
import { create, get, list } from '../../src/kube/verbs.ts';
import { CollectionServer } from '../fixtures/collection-server.ts';
import { eventually, follow, type Followed } from '../fixtures/followed-collection.ts';
import { sendJson, startHttpServer } from '../fixtures/http-server.ts';

/** What no string is made of. */
const HOSTILE = { toString: null };

let server: CollectionServer;
const closers: (() => Promise<unknown>)[] = [];
beforeEach(async () => {
  server = await CollectionServer.start();
});
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
  await server.close();
});

async function synced(options: Parameters<typeof follow>[1] = {}): Promise<Followed> {
  const followed = follow(staticAccess({ endpoint: { server: server.http.url } }), options);
  closers.push(() => followed.stop());
  await followed.informer.whenSynced(AbortSignal.timeout(5_000));
  return followed;
}

/** Until the cache has taken in what was put last. */
async function caughtUp(followed: Followed): Promise<void> {
  server.put('beacon', String(server.version));
  const version = String(server.version);
  await eventually(
    () => followed.informer.get('default/beacon')?.metadata.resourceVersion === version,
    () => followed.log,
  );
}

describe.each([
  ['streamed', true],
  ['paged', false],
])('an object that is not what the API promises, with %s lists', (_name, watchList) => {
  beforeEach(() => {
    server.watchList = watchList;
  });

  it('keeps its former state, whether an event or a list brings it, and all others go on', async () => {
    server.put('a');
    server.put('b');
    const followed = await synced();
    server.put('a', 'changed', { labels: { app: HOSTILE } });
    await caughtUp(followed);
    expect(followed.informer.get('default/a')).toMatchObject({ metadata: { resourceVersion: '101' } });
    expect(followed.informer.leftOut).toBe(
      '1 of its configmaps is left out as no valid object, such as default/a (metadata.labels.app is not a string); what was known stays',
    );
    // A list says the same.
    server.compacted = server.version;
    server.http.server.closeAllConnections();
    server.put('c');
    await caughtUp(followed);
    expect(followed.state().filter((one) => !one.startsWith('beacon'))).toEqual([
      'a@101',
      'b@102',
      expect.stringMatching(/^c@/),
    ]);
    expect(followed.log.filter((line) => line.startsWith('deleted'))).toEqual([]);
    expect(await followed.metric('kube_informer_unusable_objects_total')).toBe(1);
    // Well again.
    server.put('a', 'well');
    await caughtUp(followed);
    expect(followed.informer.get('default/a')).toMatchObject({ data: { value: 'well' } });
    expect(followed.informer.leftOut).toBeUndefined();
  });

  it('is left out where it was never known, until it goes', async () => {
    server.put('a', 'v', { annotations: 'none' });
    server.put('b');
    const followed = await synced();
    expect(followed.informer.get('default/a')).toBeUndefined();
    expect(followed.informer.get('default/b')).toBeDefined();
    expect(followed.informer.leftOut).toContain('metadata.annotations is not an object');
    server.delete('a');
    await caughtUp(followed);
    expect(followed.informer.leftOut).toBeUndefined();
  });
});

it('is logged a few times, however many there are', async () => {
  const lines: unknown[] = [];
  for (let i = 0; i < 100; i++) server.put(`m${i}`, 'v', { labels: [] });
  const logger = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) });
  const followed = await synced({ logger });
  expect(followed.informer.leftOut).toContain('100 of its configmaps are left out');
  expect(lines).toHaveLength(7);
});

it('has a null where there could be nothing', async () => {
  server.put('a', 'v', { labels: null, annotations: null });
  const followed = await synced();
  expect(followed.informer.get('default/a')?.metadata.labels).toBeUndefined();
  expect(followed.informer.leftOut).toBeUndefined();
});

it.each([
  ['a name with a slash', { name: 'a/b' }],
  ['a name that is no string', { name: HOSTILE }],
  ['a namespace that is no string', { namespace: HOSTILE }],
  ['a version that is no string', { resourceVersion: 7 }],
  ['an endless UID', { uid: 'u'.repeat(1_000) }],
])('refuses a list with %s: nobody knows which object is meant', async (_what, wrong) => {
  server.put('a');
  const followed = await synced();
  server.put('b', 'v', wrong);
  server.compacted = server.version;
  server.http.server.closeAllConnections();
  await eventually(
    () => followed.informer.problem !== undefined,
    () => followed.log,
  );
  expect(followed.state()).toEqual(['a@101']);
  expect(followed.log).toEqual(['added a@101']);
});

it('is no answer to a read or a write either', async () => {
  const pod = {
    kind: 'Pod',
    metadata: { name: 'a', namespace: 'x', annotations: { b: HOSTILE } },
    spec: { containers: [] },
  };
  const http = await startHttpServer((_req, res) => sendJson(res, 200, pod));
  const client = new KubeClient({ cluster: 'east', ...staticAccess({ endpoint: { server: http.url } }) });
  closers.push(http.close, () => client.close());
  const malformed = { kind: 'malformed', detail: expect.stringContaining('metadata.annotations.b is not a string') };
  await expect(get(client, PODS, { namespace: 'x', name: 'a' }, { retry: false })).rejects.toMatchObject(malformed);
  await expect(create(client, PODS, { metadata: { name: 'a', namespace: 'x' } })).rejects.toMatchObject(malformed);
  await expect(get(client, CONFIG_MAPS, { name: 'a' }, { retry: false })).rejects.toMatchObject({ kind: 'malformed' });
});

it('fails a list as a whole: without it the list would say that there is none', async () => {
  const pod = {
    metadata: { name: 'a', namespace: 'x', uid: 'u' },
    spec: { containers: [] },
    status: { message: HOSTILE },
  };
  const page = { kind: 'PodList', metadata: { resourceVersion: '5' }, items: [pod] };
  const http = await startHttpServer((_req, res) => sendJson(res, 200, page));
  const client = new KubeClient({ cluster: 'east', ...staticAccess({ endpoint: { server: http.url } }) });
  closers.push(http.close, () => client.close());
  await expect(list(client, PODS, { retry: false })).rejects.toMatchObject({
    kind: 'malformed',
    detail: expect.stringContaining('of Pod a, status.message is not a string'),
  });
});
