import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Namespace } from '../../src/kube/core-v1.ts';
import { CopyInformers } from '../../src/dependents/copy-informers.ts';
import { Informer } from '../../src/kube/informer.ts';
import { NAMESPACES } from '../../src/kube/resource.ts';
import type { JsonObject } from '../../src/kube/json-equal.ts';
import { HOST_ID } from '../fixtures/dependents.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { type MemoryApiServer, serveMemoryApi } from '../fixtures/memory-api-server.ts';

let api: MemoryApi;
let server: MemoryApiServer;
let end: AbortController;
let running: Promise<unknown>[];
let told: string[];
let changed: string[];

beforeEach(async () => {
  api = new MemoryApi();
  server = await serveMemoryApi(api);
  end = new AbortController();
  running = [];
  told = [];
  changed = [];
});
afterEach(async () => {
  end.abort();
  await Promise.all(running);
  await server.close();
});

/** The namespaces of a member and the copies in them; a namespace labelled `ours` is usable. */
async function startPlaces(options: { idleMs?: number } = {}): Promise<CopyInformers> {
  const client = server.client('east');
  const namespaces = new Informer<Namespace>({ client, resource: NAMESPACES });
  const places = new CopyInformers({
    client,
    hostId: HOST_ID,
    namespaces,
    isUsable: ({ metadata }) => metadata.labels?.['ours'] === 'yes',
    changed: ({ kind, metadata }) => void changed.push(`${kind}/${metadata.namespace}/${metadata.name}`),
    known: (kind, namespace) => void told.push(`${kind}/${namespace}`),
    logger: pino({ level: 'silent' }),
    ...options,
  });
  running.push(namespaces.run(end.signal), places.run(end.signal));
  await namespaces.whenSynced(end.signal);
  return places;
}

const post = (path: string, body: JsonObject): void =>
  void api.handle({ method: 'POST', path, query: {}, body, contentType: 'application/json' });
const namespace = (name: string, labels: Record<string, string> = { ours: 'yes' }): void =>
  post('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } });
const copy = (plural: 'configmaps' | 'secrets', where: string, name: string): void =>
  post(`/api/v1/namespaces/${where}/${plural}`, {
    apiVersion: 'v1',
    kind: plural === 'secrets' ? 'Secret' : 'ConfigMap',
    metadata: { name, namespace: where, labels: { 'spillway.dev/host': HOST_ID } },
  });
const until = (check: () => void): Promise<void> => vi.waitFor(check, { timeout: 15_000, interval: 5 });
const copiesOf = (places: CopyInformers): string[] =>
  [...places.values()].map(({ kind, metadata }) => `${kind}/${metadata.namespace}/${metadata.name}`).sort();
/** `secrets t-shop`: what was listed or watched, but for namespaces. */
const asked = (watchesOnly = false): string[] => [
  ...new Set(
    api.seen
      .filter(({ method, query }) => method === 'GET' && (!watchesOnly || query['watch'] !== undefined))
      .map(({ path }) => path.split('/'))
      .filter((parts) => parts.length > 5)
      .map((parts) => `${parts[5]} ${parts[4]}`),
  ),
];

describe('places', () => {
  test('are watched when they are asked for, and only in their namespace', async () => {
    namespace('t-shop');
    namespace('t-other');
    const places = await startPlaces();
    copy('secrets', 't-shop', 'b');
    expect(places.knowledge('Secret', 't-shop')).toEqual({ known: false, problem: undefined });
    await until(() => expect(told).toEqual(['Secret/t-shop']));
    expect(places.knowledge('Secret', 't-shop')).toEqual({ known: true });
    expect(places.get('Secret', 't-shop', 'b')).toMatchObject({ kind: 'Secret', metadata: { name: 'b' } });
    expect(asked(true)).toEqual(['secrets t-shop']);
    expect(api.seen.filter(({ path }) => /^\/api\/v1\/(secrets|configmaps)/.test(path))).toEqual([]);
  });

  test('in namespaces that do not exist or are not ours are empty, and nothing is asked', async () => {
    namespace('strange', {});
    const places = await startPlaces();
    expect(places.knowledge('Secret', 'strange')).toEqual({ known: true });
    expect(places.knowledge('Secret', 'none')).toEqual({ known: true });
    namespace('marker');
    await until(() => expect(asked()).toContain('secrets marker'));
    expect(asked().filter((one) => !one.endsWith(' marker'))).toEqual([]);
  });

  test('are followed as soon as their namespace is made, or lent', async () => {
    namespace('t-lent', {});
    const places = await startPlaces();
    places.knowledge('Secret', 't-lent');
    places.knowledge('ConfigMap', 't-new');
    namespace('t-new');
    copy('configmaps', 't-new', 'a');
    await until(() => expect(changed).toContain('ConfigMap/t-new/a'));
    api.edit('/api/v1/namespaces/t-lent', { metadata: { labels: { ours: 'yes' } } });
    await until(() => expect(told).toContain('Secret/t-lent'));
  });

  test('that hold copies of a former life are found without anybody asking', async () => {
    for (const name of ['t-full', 't-empty', 't-shut']) namespace(name);
    namespace('strange', {});
    copy('configmaps', 't-full', 'orphan');
    copy('configmaps', 'strange', 'orphan');
    api.fault = ({ path }) =>
      path.includes('/t-shut/') ? { code: 403, reason: 'Forbidden', message: 'no such right' } : undefined;
    const places = await startPlaces();
    await until(() => expect(copiesOf(places)).toEqual(['ConfigMap/t-full/orphan']));
    await until(() => expect(asked()).toHaveLength(6));
    expect(asked(true)).toEqual(['configmaps t-full']);
  });

  test('that cannot be read say why, and are known once they can', async () => {
    namespace('t-shop');
    api.fault = ({ path }) =>
      path.endsWith('/secrets') ? { code: 403, reason: 'Forbidden', message: 'secrets is forbidden' } : undefined;
    const places = await startPlaces();
    places.knowledge('Secret', 't-shop');
    await until(() =>
      expect(places.knowledge('Secret', 't-shop')).toMatchObject({
        known: false,
        problem: expect.stringContaining('secrets is forbidden') as string,
      }),
    );
    expect(places.knowledge('ConfigMap', 't-shop')).toMatchObject({ problem: undefined });
    api.fault = undefined;
    await until(() => expect(told).toContain('Secret/t-shop'));
  });

  test('go with their namespace, also when the right to look went first', async () => {
    namespace('t-shop');
    copy('secrets', 't-shop', 'b');
    const places = await startPlaces();
    places.knowledge('Secret', 't-shop');
    await until(() => expect(copiesOf(places)).toEqual(['Secret/t-shop/b']));
    api.fault = ({ path }) => (path.includes('/t-shop/') ? { code: 403, reason: 'Forbidden' } : undefined);
    changed.length = 0;
    api.delete('/api/v1/namespaces/t-shop');
    await until(() => expect(copiesOf(places)).toEqual([]));
    expect(changed).toEqual(['Secret/t-shop/b']);
    expect(places.knowledge('Secret', 't-shop')).toEqual({ known: true });
  });

  test('without copies that nobody asks for any more are left alone, others are not', async () => {
    namespace('t-shop');
    copy('secrets', 't-shop', 'b');
    const places = await startPlaces({ idleMs: 1_000 });
    places.knowledge('ConfigMap', 't-shop');
    places.knowledge('Secret', 't-shop');
    await until(() => expect(told).toHaveLength(2));
    const open = (): number => api.listeners.size;
    // Besides the namespaces, only the Secrets stay.
    await until(() => expect(open()).toBe(2));
    expect(copiesOf(places)).toEqual(['Secret/t-shop/b']);
    expect(places.knowledge('ConfigMap', 't-shop')).toMatchObject({ known: false });
  });
});
