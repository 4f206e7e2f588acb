import { describe, expect, test } from 'vitest';
import { Place } from './fixtures/api-cases/api-case.ts';
import { API_CASES } from './fixtures/api-cases/all-cases.ts';
import { memoryServer } from './fixtures/api-cases/memory-server.ts';
import { Refusal } from './fixtures/memory-api/refusal.ts';
import { MemoryApi, type MemoryAnswer } from './fixtures/memory-api.ts';

describe.each(API_CASES)('the API server in memory, %s', (_about, cases) => {
  test.each(cases)('$name', async ({ run }) => {
    const api = memoryServer();
    await api.request('POST', '/api/v1/namespaces', { metadata: { name: 'case' } });
    await api.request('POST', '/api/v1/namespaces/case/serviceaccounts', { metadata: { name: 'default' } });
    await run(new Place(api, 'case'));
  });
});

describe('what only the API server in memory can be made to do', () => {
  const PATH = '/api/v1/configmaps';
  const ask = (api: MemoryApi, method: string, path: string, body?: object, query = {}): MemoryAnswer =>
    api.answer({ method, path, query, body, contentType: 'application/merge-patch+json' });
  const refusalOf = (how: () => unknown): Refusal => {
    try {
      how();
    } catch (e) {
      if (e instanceof Refusal) return e;
    }
    throw new Error('it was not refused');
  };
  const withThree = (api = new MemoryApi()): MemoryApi => {
    for (const name of ['a', 'b', 'c']) api.put(`/api/v1/namespaces/n/configmaps/${name}`, { metadata: { name } });
    return api;
  };

  test('time, UIDs and names come from outside', () => {
    const api = new MemoryApi({ now: () => 0, uid: () => 'the-uid', suffix: () => 'xxxxx' });
    const { body } = ask(api, 'POST', '/api/v1/namespaces/n/configmaps', { metadata: { generateName: 'a-' } });
    const metadata = { name: 'a-xxxxx', uid: 'the-uid', creationTimestamp: '1970-01-01T00:00:00Z' };
    expect(body).toMatchObject({ metadata });
  });

  test('a next page of a version that was compacted is refused, with a way to go on', () => {
    const api = withThree();
    const first = ask(api, 'GET', PATH, undefined, { limit: '1' }).body['metadata'] as { continue: string };
    api.edit('/api/v1/namespaces/n/configmaps/c', { data: { new: 'yes' } });
    api.compact();
    const page = (token: string): MemoryAnswer => ask(api, 'GET', PATH, undefined, { continue: token });
    const refusal = refusalOf(() => page(first.continue));
    expect(refusal).toMatchObject({ code: 410, reason: 'Expired' });
    const rest = page(refusal.continueAt ?? '').body['items'];
    expect(rest).toMatchObject([{ metadata: { name: 'b' } }, { data: { new: 'yes' } }]);
  });

  test('a watch that did not look before a compaction has lost what happened', () => {
    const api = withThree();
    const query = { resourceVersion: String(api.version) };
    const [late, early] = [api.watch({ path: PATH, query }), api.watch({ path: PATH, query })];
    api.delete('/api/v1/namespaces/n/configmaps/a');
    expect(early.take()).toMatchObject([{ type: 'DELETED' }]);
    api.delete('/api/v1/namespaces/n/configmaps/b');
    api.compact(api.version - 1);
    expect(late.take()).toMatchObject([{ type: 'ERROR', object: { code: 410 } }]);
    expect([late.ended, early.take()]).toMatchObject([true, [{ type: 'DELETED' }]]);
  });

  test('bookmarks tell how far a watch is, and are asked for', () => {
    const api = withThree();
    const query = { resourceVersion: '0', allowWatchBookmarks: 'true' };
    const watch = api.watch({ path: PATH, query });
    expect(watch.bookmark()).toBeUndefined();
    expect(watch.take()).toHaveLength(3);
    api.put('/api/v1/namespaces/n/secrets/s', { metadata: {} });
    expect(watch.take()).toEqual([]);
    expect(watch.bookmark()).toMatchObject({ object: { metadata: { resourceVersion: String(api.version) } } });
    expect(api.watch({ path: PATH, query: {} }).bookmark()).toBeUndefined();
  });

  test('garbage is collected one step at a time, in any order', () => {
    const api = new MemoryApi();
    const ownerReferences = [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'gone', uid: 'gone' }];
    for (const name of ['a', 'b']) api.put(`/api/v1/namespaces/n/secrets/${name}`, { metadata: { ownerReferences } });
    expect(api.collectGarbage((count) => count - 1)).toBe(true);
    expect([...api.objects.keys()]).toEqual(['/api/v1/namespaces/n/secrets/a']);
    expect([api.collectGarbage(), api.collectGarbage(), api.objects.size]).toEqual([true, false, 0]);
  });

  test('what is stored is nobody’s to change', () => {
    const api = new MemoryApi();
    const body = { metadata: { name: 'a' }, data: { x: '1' } };
    const made = ask(api, 'POST', '/api/v1/namespaces/n/configmaps', body).body;
    body.data.x = '2';
    expect(made).toMatchObject({ data: { x: '1' } });
    expect(() => Object.assign(made['data'] as object, { x: '3' })).toThrow(TypeError);
  });
});
