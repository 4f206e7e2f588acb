import { pino } from 'pino';
import { Registry } from 'prom-client';
import { afterEach, expect, it, vi } from 'vitest';
import { GANG_LABEL, GANG_PLACED_ANNOTATION, GANG_SIZE_ANNOTATION, MEMBER_LABEL } from '../../src/api/marks.ts';
import { GangKeeper } from '../../src/gangs/gang-keeper.ts';
import { gangMetrics } from '../../src/gangs/gang-metrics.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { type MemoryApiServer, serveMemoryApi } from '../fixtures/memory-api-server.ts';

const HOUR_MS = 3_600_000;
let ends: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const end of ends) await end();
  ends = [];
});

/** A gang of four that was bound to east an hour ago, and of which the host has heard nothing since. */
async function gangAfterAnOutage(): Promise<{ api: MemoryApi; server: MemoryApiServer }> {
  const api = new MemoryApi();
  const server = await serveMemoryApi(api);
  const placed = new Date(Date.now() - HOUR_MS).toISOString();
  for (const name of ['w-0', 'w-1', 'w-2', 'w-3']) {
    const metadata = {
      name,
      namespace: 'ml',
      labels: { [GANG_LABEL]: 'train' },
      annotations: { [GANG_SIZE_ANNOTATION]: '4', [GANG_PLACED_ANNOTATION]: placed },
      ownerReferences: [{ apiVersion: 'batch/v1', kind: 'Job', name: 'train', uid: 'j', controller: true }],
    };
    const spec = { nodeName: 'east', containers: [], nodeSelector: { [MEMBER_LABEL]: 'east' } };
    const body = { apiVersion: 'v1', kind: 'Pod', metadata, spec, status: { phase: 'Pending' } };
    await api.client().request({ method: 'POST', path: '/api/v1/namespaces/ml/pods', body });
  }
  return { api, server };
}

/** `hasNode`: what the member says of a pod, by its name. Returns the names it was asked about. */
async function keep(
  hasNode: (name: string) => boolean | undefined,
  followedMs: number,
): Promise<{ asked: string[]; evicted: () => string[] }> {
  const { api, server } = await gangAfterAnOutage();
  const asked: string[] = [];
  const aborted = new AbortController();
  const keeper = new GangKeeper({
    host: server.client('host'),
    places: {
      place: async () => await Promise.resolve({ cluster: 'east' }),
      hold: () => undefined,
      release: () => undefined,
      hasNode: async ({ metadata }) => {
        asked.push(metadata.name);
        return await Promise.resolve(hasNode(metadata.name));
      },
    },
    events: { record: () => undefined },
    metrics: gangMetrics(new Registry()),
    logger: pino({ level: 'silent' }),
    clock: Date.now,
    followedMs,
  });
  const run = keeper.run(aborted.signal);
  ends.push(async () => {
    aborted.abort();
    await run;
    await server.close();
  });
  const evicted = (): string[] => {
    const names = api.requests('POST', '/eviction').map(({ path }) => path.split('/').at(-2) ?? '');
    return [...new Set(names)].toSorted();
  };
  return { asked, evicted };
}

const seen = async (look: () => void): Promise<void> => await vi.waitFor(look, { timeout: 5_000, interval: 20 });

it('keeps a gang that ran in its member while the host was away', async () => {
  const { asked, evicted } = await keep(() => true, 0);
  // The second look comes after all that the first one led to.
  await seen(() => expect(asked.length).toBeGreaterThan(4));
  expect(evicted()).toEqual([]);
});

it('keeps a gang while its member cannot say whether it runs', async () => {
  const { asked, evicted } = await keep(() => undefined, 0);
  await seen(() => expect(asked.length).toBeGreaterThan(1));
  expect(evicted()).toEqual([]);
  // One that says nothing is asked about one pod a look.
  expect(new Set(asked).size).toBe(1);
});

it('gives up when the member has no node for one of them', async () => {
  const { evicted } = await keep((name) => name !== 'w-2', 0);
  await seen(() => expect(evicted()).toEqual(['w-0', 'w-1', 'w-2', 'w-3']));
});

it('judges no gang before the host was followed for long enough', async () => {
  const started = Date.now();
  const { evicted } = await keep(() => false, 2_000);
  await seen(() => expect(evicted()).not.toEqual([]));
  expect(Date.now() - started).toBeGreaterThanOrEqual(2_000);
});
