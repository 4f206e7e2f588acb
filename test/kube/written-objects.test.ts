import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { pino } from 'pino';
import { until } from '../../hack/until.ts';
import { CacheRoom } from '../../src/kube/cache-room.ts';
import { KubeClient } from '../../src/kube/client.ts';
import { LimitError } from '../../src/kube/limit-error.ts';
import { staticAccess } from '../../src/kube/static-access.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { CONFIG_MAPS, type Resource, SERVICES } from '../../src/kube/resource.ts';
import { WrittenObjects } from '../../src/kube/written-objects.ts';
import { CollectionServer } from '../fixtures/collection-server.ts';
import { FaultProxy } from '../fixtures/fault-proxy.ts';
import { sendJson, startHttpServer } from '../fixtures/http-server.ts';
import { serveMemoryApi } from '../fixtures/memory-api-server.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';

type Stored = KubeObject & { data: { value: string } };

let server: CollectionServer;
let proxy: FaultProxy;
let client: KubeClient;
let stop: AbortController;
let written: WrittenObjects<Stored, string>;
let running: Promise<void>;

beforeEach(async () => {
  server = await CollectionServer.start();
  proxy = await FaultProxy.start({ server: server.http.url });
  server.put('a', 'one');
  client = new KubeClient({ cluster: 'test', ...staticAccess({ endpoint: { server: proxy.url } }) });
  stop = new AbortController();
  written = new WrittenObjects<Stored, string>({
    client,
    resource: CONFIG_MAPS,
    labelSelector: 'x=y',
    read: ({ metadata, data }) => ({ subject: metadata.name, value: data.value }),
    changed: () => undefined,
    logger: pino({ level: 'silent' }),
    timings: {
      quietSeconds: [1, 1],
      confirmMs: 20,
      turnedBackMs: 400,
      checkMs: 200,
      backoffBaseMs: 20,
      backoffMaxMs: 200,
    },
  });
  running = written.run(stop.signal);
  await until('it is known', () => written.of('a').join() === 'one', { intervalMs: 5 });
});
afterEach(async () => {
  stop.abort();
  await running;
  await client.close();
  await proxy.close();
  await server.close();
});

test('what was read past the watch counts until the watch has caught up', async () => {
  // The watch shows nothing for now.
  proxy.inject(
    { kind: 'reset', when: 'before' },
    ({ watch, query }) => watch || (query.has('limit') && !query.has('fieldSelector')),
  );
  proxy.resetConnections();
  server.put('a', 'two');
  expect(await written.isOurs('a', { namespace: 'default', name: 'a' }, stop.signal)).toBe(true);
  expect(written.of('a')).toEqual(['two']);
  proxy.clear();
  server.put('a', 'three');
  await until('the watch goes on', () => written.of('a').join() === 'three', { intervalMs: 5 });
});

test('a cluster that lists others than were asked for tells nothing', async () => {
  server.put('b', 'two');
  const asked = written.isOurs('a', { namespace: 'default', name: 'a' }, stop.signal);
  await expect(asked).rejects.toThrow(/lists others than a/);
});

test('what a cluster shows after it went back to a backup is what there is', async () => {
  server.put('a', 'two');
  await until('it is seen', () => written.of('a').join() === 'two', { intervalMs: 5 });
  server.rewind(50);
  server.put('a', 'as it was');
  server.compacted = 1_000;
  proxy.resetConnections();
  await until(
    'the older state is believed',
    () => {
      server.put('elsewhere', 'goes on');
      return written.of('a').join() === 'as it was';
    },
    { intervalMs: 20 },
  );
});

test('what a cluster answers counts as what its caches hold of it, and what has no room is not known', async () => {
  const share = new CacheRoom(128 * 1024).share();
  const memory = await serveMemoryApi(new MemoryApi());
  const objects = new WrittenObjects<Stored, string>({
    client: memory.client('memory', share),
    resource: CONFIG_MAPS,
    labelSelector: '',
    read: ({ metadata, data }) => ({ subject: metadata.name, value: data.value }),
    changed: () => undefined,
    logger: pino({ level: 'silent' }),
  });
  const made = (name: string, size: number): Stored => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { namespace: 'default', name },
    data: { value: 'x'.repeat(size) },
  });
  const end = new AbortController();
  await objects.create(made('a', 40_000), end.signal);
  expect(share.used).toBeGreaterThan(40_000);
  await expect(objects.create(made('b', 100_000), end.signal)).rejects.toThrow(LimitError);
  expect(objects.of('b')).toEqual([]);
  await objects.remove(made('b', 0).metadata, end.signal);
  const following = objects.run(end.signal);
  await until('the watch shows it', () => objects.synced, { intervalMs: 5 });
  expect(share.used).toBeLessThan(60_000);
  await objects.remove(made('a', 0).metadata, end.signal);
  await until('it is gone', () => share.used < 40_000, { intervalMs: 5 });
  await objects.create(made('c', 1_000), end.signal);
  end.abort();
  await following;
  // What its scale has learned stays.
  expect(share.used).toBe(share.scale.bytes);
  await memory.close();
});

test.each(['list', 'watch'])('what there is room for once is followed by a %s after it was answered', async (by) => {
  const share = new CacheRoom(128 * 1024).share();
  const memory = await serveMemoryApi(new MemoryApi());
  const [objects, others] = [0, 1].map(
    () =>
      new WrittenObjects<Stored, string>({
        client: memory.client('memory', share),
        resource: CONFIG_MAPS,
        labelSelector: '',
        read: ({ metadata, data }) => ({ subject: metadata.name, value: data.value }),
        changed: () => undefined,
        logger: pino({ level: 'silent' }),
        timings: { backoffBaseMs: 20, backoffMaxMs: 100 },
      }),
  ) as [WrittenObjects<Stored, string>, WrittenObjects<Stored, string>];
  const metadata = { namespace: 'default', name: 'a' };
  const made = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { value: 'x'.repeat(80_000) } };
  const end = new AbortController();
  if (by === 'list') await objects.create(made, end.signal);
  const following = objects.run(end.signal);
  await until('a list has come', () => objects.synced, { intervalMs: 5 });
  if (by === 'watch') await objects.create(made, end.signal);
  expect(share.used).toBeGreaterThan(80_000);
  expect(share.used).toBeLessThan(90_000);
  await others.remove(metadata, end.signal);
  await until('the watch shows that it is gone', () => objects.size === 0, { intervalMs: 5 });
  expect(share.used).toBeLessThan(10_000);
  end.abort();
  await following;
  // What its scale has learned stays.
  expect(share.used).toBe(share.scale.bytes);
  await memory.close();
});

test('what a cluster has stored is no error where its caches have no room for it, and a change of what they have takes only what it adds', async () => {
  const share = new CacheRoom(128 * 1024).share();
  const api = new MemoryApi();
  const memory = await serveMemoryApi(api);
  const objects = new WrittenObjects<Stored, string>({
    client: memory.client('memory', share),
    resource: CONFIG_MAPS,
    labelSelector: '',
    read: ({ metadata, data }) => ({ subject: metadata.name, value: data.value }),
    changed: () => undefined,
    logger: pino({ level: 'silent' }),
  });
  const name = { namespace: 'default', name: 'a' };
  const made = (size: number, more: object = {}): Stored => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { ...name, ...more },
    data: { value: 'x'.repeat(size) },
  });
  const end = new AbortController();
  // Nothing is stored that could not be followed.
  await expect(objects.create(made(140_000), end.signal)).rejects.toThrow(LimitError);
  expect(await objects.isOurs('a', name, end.signal)).toBeUndefined();
  const path = '/api/v1/namespaces/default/configmaps';
  api.handle({ method: 'POST', path, query: {}, body: made(80_000), contentType: 'application/json' });
  const following = objects.run(end.signal);
  await until('the watch shows it', () => objects.synced, { intervalMs: 5 });
  // No room for both: the caches have one already.
  const patched = await objects.patch(name, { data: { value: 'y'.repeat(80_000) } }, {}, end.signal);
  expect(objects.of('a')).toEqual(['y'.repeat(80_000)]);
  await objects.patch(name, { data: { value: 'z'.repeat(200_000) } }, {}, end.signal);
  expect(objects.of('a')).toEqual([patched.data.value]);
  end.abort();
  await following;
  await memory.close();
});

/** What stands for itself, with a note as what is known of it. */
function noted(client: KubeClient, resource: Resource = CONFIG_MAPS): WrittenObjects<KubeObject, string> {
  return new WrittenObjects<KubeObject, string>({
    client,
    resource,
    labelSelector: '',
    read: ({ metadata: { name, annotations } }) => ({ subject: name, value: annotations?.['note'] ?? '' }),
    changed: () => undefined,
    logger: pino({ level: 'silent' }),
    timings: { backoffBaseMs: 20, backoffMaxMs: 100 },
  });
}

const NOTE = { namespace: 'default', name: 'a', annotations: { note: 'one' } };

test.each<[string, Resource, (objects: WrittenObjects<KubeObject, string>, stored: KubeObject) => Promise<unknown>]>([
  ['a replacement', CONFIG_MAPS, async (objects, stored) => await objects.replace(stored, stop.signal)],
  // Of a kind that a PUT creates where there is none: it is the UID that is gone.
  ['a replacement by UID', SERVICES, async (objects, stored) => await objects.replace(stored, stop.signal)],
  ['a patch', CONFIG_MAPS, async (objects, { metadata }) => await objects.patch(metadata, {}, {}, stop.signal)],
  ['a deletion', CONFIG_MAPS, async (objects, { metadata }) => await objects.remove(metadata, stop.signal)],
  ['a look', CONFIG_MAPS, async (objects, { metadata }) => await objects.isOurs('a', metadata, stop.signal)],
])('%s of what is gone, which nothing has shown, has it forgotten', async (_, resource, ask) => {
  const share = new CacheRoom(128 * 1024).share();
  const api = new MemoryApi();
  const memory = await serveMemoryApi(api);
  const objects = noted(memory.client('memory', share), resource);
  const body = { apiVersion: 'v1', kind: resource.kind, metadata: NOTE, spec: { ports: [{ port: 80 }] } };
  const stored = await objects.create(body, stop.signal);
  const used = share.used;
  expect(objects.of('a')).toEqual(['one']);
  api.delete(`/api/v1/namespaces/default/${resource.plural}/a`);
  await ask(objects, stored).catch(() => undefined);
  expect([objects.size, objects.of('a')]).toEqual([0, []]);
  expect(share.used).toBeLessThan(used);
  await memory.close();
});

test('what has come in the place of what is gone stays known', async () => {
  const api = new MemoryApi();
  const memory = await serveMemoryApi(api);
  const objects = noted(memory.client(), SERVICES);
  const made = (note: string): KubeObject & { spec: object } => ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { ...NOTE, annotations: { note } },
    spec: { ports: [{ port: 80 }] },
  });
  const former = await objects.create(made('one'), stop.signal);
  await objects.remove(former.metadata, stop.signal);
  await objects.create(made('two'), stop.signal);
  await expect(objects.replace(former, stop.signal)).rejects.toMatchObject({ code: 409 });
  await expect(objects.remove(former.metadata, stop.signal)).rejects.toMatchObject({ code: 409 });
  expect(objects.of('a')).toEqual(['two']);
  await memory.close();
});

/** A cluster whose lists, watches and writes are answered by hand. */
async function byHand() {
  const open: Record<'lists' | 'watches' | 'writes', ServerResponse[]> = { lists: [], watches: [], writes: [] };
  const http = await startHttpServer((req, res) => {
    const { searchParams: query } = new URL(req.url ?? '/', 'http://x');
    if (req.method !== 'GET') open.writes.push(res);
    else if (query.has('sendInitialEvents')) sendJson(res, 400, { kind: 'Status', code: 400, reason: 'BadRequest' });
    else if (!query.has('watch')) open.lists.push(res);
    else {
      res.writeHead(200, { 'content-type': 'application/json' }).flushHeaders();
      open.watches.push(res);
    }
  });
  const byHandClient = new KubeClient({ cluster: 'hand', ...staticAccess({ endpoint: { server: http.url } }) });
  const objects = noted(byHandClient);
  const end = new AbortController();
  const following = objects.run(end.signal);
  const stored = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { ...NOTE, uid: 'u', resourceVersion: '7' } };
  return {
    objects,
    stored,
    next: async (what: keyof typeof open) => await until(`one of ${what}`, () => open[what].shift(), { intervalMs: 5 }),
    /** There is nothing. */
    list: (res: ServerResponse, resourceVersion: string): void => {
      sendJson(res, 200, { kind: 'ConfigMapList', apiVersion: 'v1', metadata: { resourceVersion }, items: [] });
    },
    close: async (): Promise<void> => {
      end.abort();
      http.server.closeAllConnections();
      await following;
      await byHandClient.close();
      await http.close();
    },
  };
}

test('what was answered is known until a list that began afterwards does not have it', async () => {
  const { objects, stored, next, list, close } = await byHand();
  const before = await next('lists');
  const creating = objects.create(stored, stop.signal);
  sendJson(await next('writes'), 201, stored);
  await creating;
  list(before, '6');
  await until('it is read', () => objects.synced, { intervalMs: 5 });
  expect(objects.of('a')).toEqual(['one']);
  (await next('watches')).end(`${JSON.stringify({ type: 'ERROR', object: { kind: 'Status', code: 410 } })}\n`);
  list(await next('lists'), '9');
  await until('it is forgotten', () => objects.size === 0, { intervalMs: 5 });
  await close();
});

test('an answer that comes after the end of what it tells of has been shown tells nothing', async () => {
  const { objects, stored, next, list, close } = await byHand();
  list(await next('lists'), '6');
  const creating = objects.create(stored, stop.signal);
  const write = await next('writes');
  const watch = await next('watches');
  watch.write(`${JSON.stringify({ type: 'ADDED', object: stored })}\n`);
  await until('it is shown', () => objects.size === 1, { intervalMs: 5 });
  const ended = { ...stored, metadata: { ...stored.metadata, resourceVersion: '8' } };
  watch.write(`${JSON.stringify({ type: 'DELETED', object: ended })}\n`);
  await until('its end is shown', () => objects.size === 0, { intervalMs: 5 });
  sendJson(write, 201, stored);
  await creating;
  expect(objects.size).toBe(0);
  await close();
});

test('what would not fit is not sent in the place of what caches have, and a conflict while they are full is told as that', async () => {
  const share = new CacheRoom(128 * 1024).share();
  const api = new MemoryApi();
  const memory = await serveMemoryApi(api);
  const objects = noted(memory.client('memory', share));
  const made = (size: number): KubeObject => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { ...NOTE, annotations: { note: 'x'.repeat(size) } },
  });
  const end = new AbortController();
  const stored = await objects.create(made(60_000), end.signal);
  const following = objects.run(end.signal);
  await until('the watch shows it', () => objects.synced, { intervalMs: 5 });
  const inItsPlace = (size: number): KubeObject => ({
    ...stored,
    metadata: { ...stored.metadata, annotations: { note: 'y'.repeat(size) } },
  });
  const full = /no room in memory for more configmaps of cluster memory/;
  await expect(objects.replace(inItsPlace(140_000), end.signal)).rejects.toThrow(LimitError);
  expect(api.requests('PUT')).toEqual([]);
  // Somebody else has it grow.
  const path = '/api/v1/namespaces/default/configmaps/a';
  api.edit(path, { metadata: { annotations: { note: 'z'.repeat(140_000) } } });
  await until('the limit is met', () => objects.limit, { intervalMs: 5 });
  await expect(objects.replace(inItsPlace(50_000), end.signal)).rejects.toThrow(full);
  await expect(objects.replace(inItsPlace(50_000), end.signal)).rejects.toThrow(LimitError);
  end.abort();
  await following;
  await memory.close();
});
