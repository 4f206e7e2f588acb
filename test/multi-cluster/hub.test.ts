import { pino } from 'pino';
import { Registry } from 'prom-client';
import { expect, test, vi } from 'vitest';
import type { EndpointSlice } from '../../src/kube/discovery-v1.ts';
import { exchangeMetrics } from '../../src/multi-cluster/exchange-metrics.ts';
import { Hub } from '../../src/multi-cluster/hub.ts';
import { importedSlices } from '../../src/multi-cluster/imported-slices.ts';
import { serveMemoryApi } from '../fixtures/memory-api-server.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';

const KEY = 'shop/web';

function told(addresses: readonly string[]): EndpointSlice[] {
  const slices = addresses.map((address, i) => ({
    metadata: { name: `web-${i}`, namespace: 'shop' },
    addressType: 'IPv4' as const,
    endpoints: [{ addresses: [address] }],
  }));
  const place = { hostId: 'us', member: undefined, namespace: 'shop', name: 'web' };
  return importedSlices({ hostKey: KEY, type: 'ClusterSetIP', cluster: 'east', slices, ports: undefined }, place);
}

test('a Service of many EndpointSlices rests after one of them was told, as all importers compare all of them', async () => {
  const api = new MemoryApi();
  const body = { metadata: { name: 'shop' } };
  api.handle({ method: 'POST', path: '/api/v1/namespaces', query: {}, body, contentType: 'application/json' });
  const server = await serveMemoryApi(api);
  const host = server.client('host');
  const metrics = { exchange: exchangeMetrics(new Registry()) };
  const hub = new Hub({ host, hostId: 'us', metrics, logger: pino({ level: 'silent' }) });
  hub.use();
  const stop = new AbortController();
  const running = hub.run(stop.signal);
  await vi.waitFor(() => expect(hub.objects.synced).toBe(true), { timeout: 10_000 });
  let ahead = 0;
  const now = performance.now.bind(performance);
  vi.spyOn(performance, 'now').mockImplementation(() => now() + ahead);
  const rested = async (addresses: readonly string[]): Promise<boolean> => {
    await hub.keepSlices(KEY, 'east', told(addresses), stop.signal);
    const rests = hub.restMs(KEY, 'east', false) > 0;
    ahead += 5_000;
    return rests;
  };
  const many = Array.from({ length: 50 }, (_, i) => `10.1.0.${i + 1}`);
  expect(await rested(many)).toBe(true);
  expect(await rested(many)).toBe(false);
  expect(await rested(['10.1.9.9', ...many.slice(1)])).toBe(true);
  expect(await rested(['10.1.9.9'])).toBe(true);
  expect(await rested(['10.1.9.8'])).toBe(false);
  vi.restoreAllMocks();
  stop.abort();
  await running;
  await host.close();
  await server.close();
});
