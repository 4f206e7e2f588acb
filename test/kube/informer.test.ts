import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { KubeClient } from '../../src/kube/client.ts';
import { staticAccess } from '../../src/kube/static-access.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { CollectionServer } from '../fixtures/collection-server.ts';
import { eventually, follow, type Followed } from '../fixtures/followed-collection.ts';

let server: CollectionServer;
const followers: Followed[] = [];

beforeEach(async () => {
  server = await CollectionServer.start();
});
afterEach(async () => {
  try {
    await Promise.all(followers.splice(0).map((one) => one.stop()));
  } finally {
    await server.close();
  }
});

function start(options: Parameters<typeof follow>[1] = {}): Followed {
  const followed = follow(staticAccess({ endpoint: { server: server.http.url } }), options);
  followers.push(followed);
  return followed;
}

async function synced(options: Parameters<typeof follow>[1] = {}): Promise<Followed> {
  const followed = start(options);
  await followed.informer.whenSynced(AbortSignal.timeout(5_000));
  return followed;
}

const dataOf = (o: KubeObject | undefined): unknown => (o as { data?: { value?: string } } | undefined)?.data?.value;

describe('informer', () => {
  it('has synced only when everything that existed is cached and told', async () => {
    server.put('a');
    server.put('b');
    const followed = start();
    expect(followed.informer.hasSynced).toBe(false);
    await followed.informer.whenSynced(AbortSignal.timeout(5_000));
    expect(followed.informer.hasSynced).toBe(true);
    expect(followed.log).toEqual(['added a@101', 'added b@102']);
    expect(followed.informer.size).toBe(2);
    expect(followed.informer.resourceVersion).toBe('102');
    expect(dataOf(followed.informer.get('default/a'))).toBe('v');
    expect(followed.informer.get('default/a')).toMatchObject({ kind: 'ConfigMap', apiVersion: 'v1' });
  });

  it('has synced with an empty collection too', async () => {
    const followed = await synced();
    expect(followed.informer.size).toBe(0);
  });

  it('stops waiting for sync with the signal', async () => {
    await server.close();
    const followed = start();
    await expect(followed.informer.whenSynced(AbortSignal.timeout(50))).rejects.toMatchObject({ name: 'TimeoutError' });
    await expect(followed.informer.whenSynced(AbortSignal.abort())).rejects.toMatchObject({ name: 'AbortError' });
    await eventually(
      () => followed.informer.problem?.includes('cannot be reached') === true,
      () => followed.informer.problem,
    );
  });

  it('tells changes in order with the former object', async () => {
    const followed = await synced();
    const values: unknown[] = [];
    followed.informer.on({ updated: (o, old) => values.push([dataOf(old), dataOf(o)]) });
    server.put('a', '1');
    server.put('a', '2');
    server.delete('a');
    server.put('a', '3');
    await eventually(
      () => followed.log.length === 4,
      () => followed.log,
    );
    expect(followed.log).toEqual(['added a@101', 'updated a@102', 'deleted a@102 watched', 'added a@104']);
    expect(values).toEqual([['1', '2']]);
  });

  it('gives late handlers everything cached, and removed ones nothing', async () => {
    server.put('a');
    server.put('b');
    const followed = await synced();
    const names: string[] = [];
    const remove = followed.informer.on({ added: (o) => names.push(o.metadata.name) });
    expect(names).toEqual(['a', 'b']);
    remove();
    server.put('c');
    await eventually(
      () => followed.informer.size === 3,
      () => followed.state(),
    );
    expect(names).toEqual(['a', 'b']);
  });

  it('contains handlers that throw or reject, and goes on with the others', async () => {
    const followed = await synced();
    const names: string[] = [];
    followed.informer.on({
      added() {
        throw new Error('handler broke');
      },
    });
    const rejecting: () => unknown = () => Promise.reject(new Error('handler rejected'));
    followed.informer.on({ added: rejecting });
    followed.informer.on({ added: (o) => names.push(o.metadata.name) });
    server.put('a');
    server.put('b');
    await eventually(
      () => names.length === 2,
      () => names,
    );
    await new Promise(setImmediate);
    expect(await followed.metric('kube_informer_handler_errors_total')).toBe(4);
  });

  it('transforms before caching and keeps the last good state of what cannot be transformed', async () => {
    const transform = (raw: KubeObject): KubeObject => {
      if (dataOf(raw) === 'poison') {
        throw new Error('cannot take this');
      }
      return { metadata: raw.metadata };
    };
    server.put('a', 'poison');
    server.put('b', 'fine');
    const followed = await synced({ transform });
    expect(followed.state()).toEqual(['b@102']);
    expect(followed.informer.get('default/b')).not.toHaveProperty('data');
    server.put('b', 'poison');
    server.put('c', 'fine');
    await eventually(
      () => followed.informer.size === 2,
      () => followed.state(),
    );
    expect(followed.state()).toEqual(['b@102', 'c@104']);
    server.delete('b');
    await eventually(
      () => followed.informer.size === 1,
      () => followed.state(),
    );
    expect(followed.log.at(-1)).toBe('deleted b@102 watched');
  });

  it('keeps indexes in step, even when an index function throws', async () => {
    server.put('a', 'red');
    server.put('b', 'red');
    const followed = await synced({
      indexes: {
        value: (o) => [String(dataOf(o))],
        broken: () => {
          throw new Error('index broke');
        },
      },
    });
    const names = (value: string): string[] => followed.informer.byIndex('value', value).map((o) => o.metadata.name);
    expect(names('red')).toEqual(['a', 'b']);
    server.put('a', 'blue');
    server.delete('b');
    await eventually(
      () => followed.informer.size === 1,
      () => followed.state(),
    );
    expect(names('red')).toEqual([]);
    expect(names('blue')).toEqual(['a']);
    expect(followed.informer.byIndex('broken', 'x')).toEqual([]);
    expect(() => followed.informer.byIndex('none', 'x')).toThrow('no index named none');
  });

  it('sends its selectors with lists and watches and nothing else', async () => {
    server.watchList = false;
    await synced({ labelSelector: 'a=b', fieldSelector: 'metadata.name=x' });
    await eventually(
      () => server.http.seen.length >= 3,
      () => server.http.seen,
    );
    for (const request of server.http.seen) {
      expect(request).toMatch(/^GET \/api\/v1\/namespaces\/default\/configmaps\?/);
      expect(request).toContain('labelSelector=a%3Db&fieldSelector=metadata.name%3Dx');
      expect(request).not.toContain('namespace=');
    }
  });

  it('ends with its signal and frees the connection', async () => {
    const client = new KubeClient({
      cluster: 'test',
      ...staticAccess({ endpoint: { server: server.http.url } }),
    });
    const followed = await synced({ client });
    await followed.stop();
    followers.splice(0);
    await client.close();
    let open = -1;
    await eventually(
      () => {
        server.http.server.getConnections((_error, count) => (open = count));
        return open === 0;
      },
      () => open,
    );
  });

  it('shows size and age in metrics while it runs', async () => {
    server.put('a');
    const followed = await synced();
    expect(await followed.metric('kube_informer_objects', { cluster: 'test', resource: 'configmaps' })).toBe(1);
    expect(await followed.metric('kube_informer_stale_seconds')).toBeGreaterThanOrEqual(0);
    await followed.stop();
    followers.splice(0);
    expect(await followed.metric('kube_informer_objects')).toBe(0);
  });
});
