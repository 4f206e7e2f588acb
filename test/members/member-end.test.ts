import { pino } from 'pino';
import { expect, test } from 'vitest';
import { until } from '../../hack/until.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { MemberRunner } from '../../src/members/member-runner.ts';
import { idleScope } from '../fixtures/idle-scope.ts';
import { serveMemoryApi } from '../fixtures/memory-api-server.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';

const MEMBERS = '/apis/spillway.dev/v1alpha1/memberclusters';
const EAST = `${MEMBERS}/east`;

/** The writes that end a MemberCluster which was deleted, when nothing keeps it any more. */
async function end(mayRemain: string[], fault?: MemoryApi['fault']): Promise<string[]> {
  const api = new MemoryApi();
  const server = await serveMemoryApi(api);
  const send = (method: string, path: string, body?: object): void => {
    const contentType = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
    api.handle({ method, path, query: {}, body, contentType });
  };
  send('POST', MEMBERS, {
    apiVersion: 'spillway.dev/v1alpha1',
    kind: 'MemberCluster',
    metadata: { name: 'east', finalizers: ['spillway.dev/leaving'] },
    spec: { credentials: { secretRef: { namespace: 'spillway-system', name: 'east' } } },
  });
  send('PATCH', `${EAST}/status`, { status: { identity: '0b1c2d3e' } });
  send('DELETE', EAST);
  const object = (): KubeObject | undefined => api.objects.get(EAST);
  api.fault = fault;
  const runner = new MemberRunner(object() ?? { metadata: { name: 'east' } }, {
    host: server.client('host'),
    hostId: 'h',
    logger: pino({ level: 'silent' }),
    lease: { held: true, run: async ({ signal, onAcquired }) => await onAcquired(signal) },
    startScope: (_member, _connection, signal) =>
      idleScope(signal, {
        leaving: () => ({
          pods: 0,
          copies: 0,
          claims: 0,
          reason: 'NothingRemains',
          message: '',
          mayRemain,
          done: true,
        }),
      }),
    startObserved: undefined,
  });
  const changed = (): void => {
    const now = object();
    if (now !== undefined) runner.update(now);
  };
  api.listeners.add(changed);
  const stop = new AbortController();
  const running = runner.run(stop.signal);
  await until('it is gone', () => object() === undefined, { timeoutMs: 20_000, intervalMs: 5 });
  stop.abort();
  await running;
  await server.close();
  return api.seen
    .filter(({ method, path }) => method === 'PATCH' && path.startsWith(EAST))
    .map(({ path, body }) => `${path.slice(EAST.length)} ${JSON.stringify(body)}`);
}

test('what may remain of a member is in its status before it goes', async () => {
  // The host refuses the first try, and is asked again seconds later.
  let tries = 0;
  const writes = await end(['Namespace kept (holds Service theirs)'], ({ path }) =>
    path.endsWith('/status') && ++tries === 1 ? { code: 503, reason: 'ServiceUnavailable' } : undefined,
  );
  expect(tries).toBe(2);
  expect(writes.at(-1)).toMatch(/^ .*"finalizers":\[\]/);
  expect(writes.at(-2)).toMatch(/^\/status .*"mayRemain":\["Namespace kept \(holds Service theirs\)"\]/);
});

test('a status that cannot be stored keeps a member for no more than ten seconds', async () => {
  const began = performance.now();
  const writes = await end(['Pod shop/web'], ({ method, path }) =>
    method === 'PATCH' && path.endsWith('/status') ? { code: 403, reason: 'Forbidden' } : undefined,
  );
  expect(writes.at(-1)).toMatch(/^ .*"finalizers":\[\]/);
  expect(performance.now() - began).toBeGreaterThan(8_000);
}, 30_000);
