import { afterEach, beforeEach, expect, test } from 'vitest';
import { pino } from 'pino';
import { until } from '../../hack/until.ts';
import { KubeClient } from '../../src/kube/client.ts';
import { staticAccess } from '../../src/kube/static-access.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { CONFIG_MAPS } from '../../src/kube/resource.ts';
import { WrittenObjects } from '../../src/kube/written-objects.ts';
import { CollectionServer } from '../fixtures/collection-server.ts';
import { FaultProxy } from '../fixtures/fault-proxy.ts';

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
  proxy.inject({ kind: 'reset', when: 'before' }, ({ watch, query }) => watch || query.has('limit'));
  proxy.resetConnections();
  server.put('a', 'two');
  expect(await written.isOurs('a', { namespace: 'default', name: 'a' }, stop.signal)).toBe(true);
  expect(written.of('a')).toEqual(['two']);
  proxy.clear();
  server.put('a', 'three');
  await until('the watch goes on', () => written.of('a').join() === 'three', { intervalMs: 5 });
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
