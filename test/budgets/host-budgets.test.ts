import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { until } from '../../hack/until.ts';
import { HostBudgets } from '../../src/budgets/host-budgets.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { countedLabels } from '../fixtures/counted-labels.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { type MemoryApiServer, serveMemoryApi } from '../fixtures/memory-api-server.ts';

let api: MemoryApi;
let server: MemoryApiServer;
let budgets: HostBudgets;
let ended: AbortController;
let running: Promise<void>;

const pathOf = (name: string): string => `/apis/policy/v1/namespaces/shop/poddisruptionbudgets/${name}`;

function put(name: string, selector: object, allowed = 0): void {
  api.put(pathOf(name), {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name, namespace: 'shop', uid: `uid-${name}`, generation: 1 },
    spec: { maxUnavailable: 0, selector },
    status: { disruptionsAllowed: allowed, observedGeneration: 1 },
  });
}

const podWith = (labels: Record<string, string>, name = 'p'): Pod => ({
  metadata: { name, namespace: 'shop', uid: name, labels },
  spec: { containers: [] },
});
const keysFor = (pod: Pod): string[] => budgets.covering(pod).map(({ key }) => key);

beforeEach(async () => {
  api = new MemoryApi();
  server = await serveMemoryApi(api);
  budgets = new HostBudgets({ host: server.client('host'), logger: pino({ level: 'silent' }) });
  ended = new AbortController();
});

afterEach(async () => {
  ended.abort();
  await running;
  await server.close();
});

async function synced(): Promise<void> {
  running = budgets.run(ended.signal);
  await until('the budgets are known', () => budgets.synced, { intervalMs: 5 });
}

test('which budgets cover a pod is worked out once for its labels, however long their selectors are', async () => {
  const matchExpressions = Array.from({ length: 5_000 }, (_, i) => ({ key: `a${i}`, operator: 'DoesNotExist' }));
  for (let i = 0; i < 10; i += 1) put(`b${i}`, { matchExpressions });
  await synced();
  const { labels, looks } = countedLabels({ app: 'web' });
  for (let i = 0; i < 100; i += 1) expect(keysFor(podWith(labels, `p${i}`))).toHaveLength(10);
  // Of each of a hundred pods, budgets and requirements it would be five million.
  expect(looks()).toBeLessThan(100);
  expect(keysFor(podWith({ app: 'web', a7: '' }))).toEqual([]);
});

test('what covers a pod is known anew when a budget comes, is given another selector, or goes', async () => {
  put('b', { matchLabels: { app: 'web' } });
  await synced();
  const [web, other] = [podWith({ app: 'web' }), podWith({ app: 'other' })];
  expect([keysFor(web), keysFor(other)]).toEqual([['shop/b'], []]);
  put('c', {});
  await until('it came', () => keysFor(web).length === 2);
  put('b', { matchLabels: { app: 'other' } });
  await until('it has the other selector', () => keysFor(other).length === 2);
  expect(keysFor(web)).toEqual(['shop/c']);
  api.delete(pathOf('c'));
  await until('it went', () => keysFor(other).length === 1);
  expect([keysFor(web), keysFor(other)]).toEqual([[], ['shop/b']]);
});

test('how many evictions a budget allows is what it says now', async () => {
  put('b', { matchLabels: { app: 'web' } });
  await synced();
  const web = podWith({ app: 'web' });
  expect(budgets.covering(web)).toMatchObject([{ allowed: 0 }]);
  put('b', { matchLabels: { app: 'web' } }, 3);
  await until('it allows more', () => budgets.covering(web)[0]?.allowed === 3);
});
