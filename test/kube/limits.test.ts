import type { ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import { CacheRoom, type CacheShare } from '../../src/kube/cache-room.ts';
import { KubeClient } from '../../src/kube/client.ts';
import { staticAccess } from '../../src/kube/static-access.ts';
import { CONFIG_MAPS } from '../../src/kube/resource.ts';
import { readPages } from '../../src/kube/list-pages.ts';
import { list } from '../../src/kube/verbs.ts';
import { eventually, follow, type Followed } from '../fixtures/followed-collection.ts';
import { heapBytes } from '../fixtures/heap.ts';
import { sendJson, startHttpServer } from '../fixtures/http-server.ts';

const MIB = 2 ** 20;
const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

type Answer = (url: URL, res: ServerResponse) => void;

async function serve(answer: Answer) {
  const server = await startHttpServer((req, res) => answer(new URL(req.url ?? '/', 'http://x'), res));
  closers.push(server.close);
  return server;
}

/** An informer whose cluster has a megabyte for its caches. */
async function bounded(answer: Answer): Promise<Followed & { share: CacheShare }> {
  const server = await serve(answer);
  const share = new CacheRoom(MIB).share();
  const access = staticAccess({ endpoint: { server: server.url } });
  const client = new KubeClient({ cluster: 'east', ...access, caches: share });
  const followed = follow(access, {
    client,
    timings: { backoffBaseMs: 20, backoffMaxMs: 50, limitMs: 100, startMs: 20_000, silenceMs: 20_000 },
  });
  closers.push(() => followed.stop());
  return { ...followed, share };
}

const object = (name: string, version: number, value = 'v') => ({
  metadata: { name, namespace: 'default', uid: `uid-${name}`, resourceVersion: String(version) },
  data: { value },
});
const page = (items: object[], next?: string) => ({
  kind: 'ConfigMapList',
  metadata: { resourceVersion: '5', ...(next === undefined ? {} : { continue: next }) },
  items,
});
const event = (type: string, what: object) =>
  `${JSON.stringify({ type, object: { kind: 'ConfigMap', apiVersion: 'v1', ...what } })}\n`;
const INITIAL_END = { metadata: { resourceVersion: '5', annotations: { 'k8s.io/initial-events-end': 'true' } } };
const isWatch = (url: URL): boolean => url.searchParams.get('watch') === 'true';

describe('a server that sends without end', () => {
  it('pages: no more is read than there is room for, and the limit is named', async () => {
    let pages = 0;
    const followed = await bounded((url, res) => {
      if (isWatch(url)) return sendJson(res, 400, {});
      pages++;
      return sendJson(
        res,
        200,
        page(
          Array.from({ length: 100 }, (_, i) => object(`p${pages}-${i}`, 5)),
          `t${pages}`,
        ),
      );
    });
    await eventually(
      () => followed.informer.limit !== undefined,
      () => pages,
    );
    expect(followed.informer.problem).toMatch(/no room in memory for more configmaps of cluster east/);
    expect(pages).toBeLessThan(60);
    expect(followed.informer.hasSynced).toBe(false);
    expect(await followed.metric('kube_informer_lists_refused_total', { reason: 'limit' })).toBeGreaterThan(0);
    await eventually(
      () => followed.share.used < MIB / 2,
      () => followed.share.used,
    );
  });

  it('a streamed list', async () => {
    const followed = await bounded((_url, res) => {
      res.writeHead(200, { 'content-type': 'application/json' });
      let sent = 0;
      const more = (): void => {
        while (!res.destroyed && res.write(event('ADDED', object(`p${sent}`, 1 + sent)))) sent++;
        if (!res.destroyed) res.once('drain', more);
      };
      more();
    });
    await eventually(
      () => followed.informer.limit !== undefined,
      () => [followed.share.used, followed.informer.problem],
    );
    expect(followed.share.used).toBeLessThanOrEqual(MIB);
    expect(followed.informer.size).toBe(0);
  });

  it('new objects of a watch: what is known stays and goes on, and room that comes is used', async () => {
    let watch: ServerResponse | undefined;
    let version = 5;
    const sent: string[] = [];
    const followed = await bounded((url, res) => {
      res.writeHead(200, { 'content-type': 'application/json' });
      if (url.searchParams.has('sendInitialEvents')) {
        res.write(event('ADDED', object('old', 4)) + event('BOOKMARK', INITIAL_END));
      } else {
        const from = Number(url.searchParams.get('resourceVersion'));
        for (const [i, line] of sent.entries()) if (6 + i > from) res.write(line);
      }
      watch = res;
    });
    await followed.informer.whenSynced(AbortSignal.timeout(5_000));
    const send = (type: string, name: string, value?: string): void => {
      const line = event(type, object(name, ++version, value));
      sent.push(line);
      watch?.write(line);
    };
    send('ADDED', 'large', 'x'.repeat(0.9 * MIB));
    await eventually(
      () => followed.informer.get('default/large') !== undefined,
      () => followed.log,
    );
    send('ADDED', 'another', 'x'.repeat(0.9 * MIB));
    await eventually(
      () => followed.informer.limit !== undefined,
      () => followed.log,
    );
    expect(followed.informer.get('default/another')).toBeUndefined();
    expect(followed.informer.size).toBe(2);
    // The watch goes on from where it was; a smaller state of what is there needs no room.
    sent.splice(1, 1, event('MODIFIED', object('large', 7)));
    send('ADDED', 'third', 'x'.repeat(0.9 * MIB));
    await eventually(
      () => followed.informer.get('default/third') !== undefined,
      () => followed.log,
    );
    expect(followed.informer.limit).toBeUndefined();
    expect(followed.log.filter((line) => line.startsWith('deleted'))).toEqual([]);
  });

  it('a line of a watch', async () => {
    let bytes = 0;
    const followed = await bounded((_url, res) => {
      res.writeHead(200, { 'content-type': 'application/json' });
      const piece = 'x'.repeat(65_536);
      const more = (): void => {
        while (!res.destroyed && res.write(piece)) bytes += piece.length;
        if (!res.destroyed) res.once('drain', more);
      };
      more();
    });
    await eventually(
      () => followed.informer.limit !== undefined,
      () => bytes,
      20_000,
    );
    expect(followed.informer.problem).toContain('a line of a watch is longer than 16 MiB');
  }, 30_000);
});

describe('an answer that is too much', () => {
  const objects = Array.from({ length: 64 }, (_, i) => object(`m${i}`, 5, 'x'.repeat(MIB / 2)));

  it('is asked for in smaller pages', async () => {
    const limits: number[] = [];
    const server = await serve((url, res) => {
      const limit = Number(url.searchParams.get('limit'));
      const from = Number(url.searchParams.get('continue') ?? 0);
      limits.push(limit);
      const next = from + limit < objects.length ? String(from + limit) : undefined;
      sendJson(res, 200, page(objects.slice(from, from + limit), next));
    });
    const client = new KubeClient({ cluster: 'east', ...staticAccess({ endpoint: { server: server.url } }) });
    closers.push(() => client.close());
    expect((await list(client, CONFIG_MAPS)).items).toHaveLength(64);
    expect(limits.slice(0, 3)).toEqual([500, 62, 7]);
    expect(new Set(limits.slice(2))).toEqual(new Set([7]));
  }, 30_000);

  it.each<[string, (res: ServerResponse) => void]>([
    ['an object longer than an answer', (res) => res.end(`{"padding":"${'x'.repeat(17 * MIB)}`)],
    [
      'much out of little',
      (res) => res.setHeader('content-encoding', 'gzip').end(gzipSync(Buffer.alloc(64 * MIB, 32))),
    ],
    ['lists in lists', (res) => res.end(`[${'[],'.repeat(MIB)}0]`)],
    ['fields without end', (res) => res.end(`[${'{"a":0,"b":0},'.repeat(MIB)}0]`)],
    ['values without end', (res) => res.end(`[${'-0,'.repeat(4 * MIB)}0]`)],
  ])(
    '%s: is given up soon, with its limit',
    async (_what, answer) => {
      let asked = 0;
      const server = await serve((_url, res) => {
        asked++;
        res.setHeader('content-type', 'application/json');
        answer(res);
      });
      const client = new KubeClient({ cluster: 'east', ...staticAccess({ endpoint: { server: server.url } }) });
      closers.push(() => client.close());
      await expect(list(client, CONFIG_MAPS)).rejects.toMatchObject({
        name: 'LimitError',
        message: expect.stringContaining('cluster east'),
      });
      expect(asked).toBe(4);
      // All room is given back.
      expect(client.answers.take(23 * MIB)).toBeDefined();
    },
    60_000,
  );

  it('many at once: all answers under way have one room', async () => {
    const waiting: ServerResponse[] = [];
    const server = await serve((_url, res) => {
      res.writeHead(200, { 'content-type': 'application/json' });
      res.write(`{"padding":"${'x'.repeat(3 * MIB)}`);
      waiting.push(res);
    });
    const client = new KubeClient({ cluster: 'east', ...staticAccess({ endpoint: { server: server.url } }) });
    closers.push(() => client.close());
    const refused: unknown[] = [];
    const requests = Array.from({ length: 12 }, async (_, i) => {
      await client.request({ path: `/${i}`, retry: false }).catch((error: unknown) => refused.push(error));
    });
    await eventually(
      () => waiting.length === 12 && refused.length >= 4,
      () => refused.length,
      20_000,
    );
    for (const res of waiting) res.end('"}');
    await Promise.all(requests);
    expect(refused.length).toBeLessThan(12);
    expect(refused[0]).toMatchObject({ detail: expect.stringContaining('more than there is room for at once') });
  }, 30_000);

  it('holds nothing of a page while it waits for the next', async () => {
    const waits = new Promise<() => number>((resolve) => {
      let pages = 0;
      const request = async (): Promise<unknown> => {
        pages++;
        const items = Array.from({ length: 20 }, (_, i) => object(`p${pages}-${i}`, 5, 'x'.repeat(MIB).slice(1)));
        if (pages === 1) return JSON.parse(JSON.stringify(page(items, 'next')));
        await new Promise<void>((end) => resolve(() => (end(), pages)));
        return page([]);
      };
      const client = { cluster: 'east', request } as unknown as KubeClient;
      void readPages(client, CONFIG_MAPS, {}, () => undefined);
    });
    const before = heapBytes();
    const end = await waits;
    await new Promise((resolve) => setImmediate(resolve));
    expect(heapBytes() - before).toBeLessThan(4 * MIB);
    expect(end()).toBe(2);
  });

  it('refuses a token for the next page that is no token', async () => {
    const server = await serve((_url, res) => sendJson(res, 200, page([object('a', 5)], 't'.repeat(MIB))));
    const client = new KubeClient({ cluster: 'east', ...staticAccess({ endpoint: { server: server.url } }) });
    closers.push(() => client.close());
    await expect(list(client, CONFIG_MAPS)).rejects.toMatchObject({ kind: 'malformed' });
  });

  it('refuses pages without objects and without end', async () => {
    let pages = 0;
    const server = await serve((_url, res) => sendJson(res, 200, page([], `t${++pages}`)));
    const client = new KubeClient({ cluster: 'east', ...staticAccess({ endpoint: { server: server.url } }) });
    closers.push(() => client.close());
    await expect(list(client, CONFIG_MAPS)).rejects.toMatchObject({
      kind: 'malformed',
      detail: expect.stringContaining('never end'),
    });
    expect(pages).toBe(101);
  });
});
