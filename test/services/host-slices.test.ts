import { pino } from 'pino';
import { expect, test, vi } from 'vitest';
import { HostSlices } from '../../src/services/host-slices.ts';
import { serveMemoryApi } from '../fixtures/memory-api-server.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';

const SLICES = '/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices';

test('what the exchange of Services wrote in the host is not held a second time; what other programs import is', async () => {
  const api = new MemoryApi();
  const offer = (service: string, labels: Record<string, string>): void => {
    const metadata = { name: `${service}-1`, labels: { 'kubernetes.io/service-name': service, ...labels } };
    const body = { metadata, addressType: 'IPv4', endpoints: [] };
    api.handle({ method: 'POST', path: SLICES, query: {}, body, contentType: 'application/json' });
  };
  const source = { 'multicluster.kubernetes.io/source-cluster': 'east' };
  offer('web', {});
  offer('derived-ours', { 'spillway.dev/host': 'us', ...source });
  offer('derived-theirs', source);
  offer('lent', { 'spillway.dev/host': 'another' });
  const server = await serveMemoryApi(api);
  const host = server.client('host');
  const slices = new HostSlices({ host, hostId: 'us', logger: pino({ level: 'silent' }) });
  const stop = new AbortController();
  const running = slices.run(stop.signal);
  slices.use();
  await vi.waitFor(() => expect(slices.synced).toBe(true), { timeout: 10_000 });
  const held = ['web', 'derived-ours', 'derived-theirs', 'lent'].filter((name) => slices.of(`shop/${name}`).length > 0);
  stop.abort();
  await running;
  await host.close();
  await server.close();
  expect(held).toEqual(['web', 'derived-theirs', 'lent']);
});
