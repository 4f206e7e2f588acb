import { afterEach, beforeEach, expect, test } from 'vitest';
import { pino } from 'pino';
import { until } from '../../hack/until.ts';
import { CacheRoom } from '../../src/kube/cache-room.ts';
import { KubeClient } from '../../src/kube/client.ts';
import { LimitError } from '../../src/kube/limit-error.ts';
import { staticAccess } from '../../src/kube/static-access.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { CONFIG_MAPS } from '../../src/kube/resource.ts';
import { WrittenObjects } from '../../src/kube/written-objects.ts';
import { CollectionServer } from '../fixtures/collection-server.ts';
import { FaultProxy } from '../fixtures/fault-proxy.ts';
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
