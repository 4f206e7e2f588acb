import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { UnheededPolicies } from '../../src/scheduler/unheeded-policies.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { serveMemoryApi, type MemoryApiServer } from '../fixtures/memory-api-server.ts';

const NOW = Date.parse('2026-01-10T00:00:00Z');
const SPILLWAY = '/apis/spillway.dev/v1alpha1';
const OWN = `${SPILLWAY}/namespaces/shop/placementpolicies`;
const WIDE = `${SPILLWAY}/clusterplacementpolicies`;
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/spillway-system/leases';

let api: MemoryApi;
let server: MemoryApiServer;
let events: string[];
let policies: UnheededPolicies;

beforeEach(async () => {
  api = new MemoryApi();
  server = await serveMemoryApi(api);
  events = [];
  const host = server.client('host');
  policies = new UnheededPolicies({
    host,
    namespace: 'spillway-system',
    leaseName: 'spillway-scheduler',
    events: { record: ({ kind, name }, type, reason) => void events.push(`${type} ${kind} ${name} ${reason}`) },
    logger: pino({ level: 'silent' }),
    clock: () => NOW,
  });
  make(OWN, {
    apiVersion: 'spillway.dev/v1alpha1',
    kind: 'PlacementPolicy',
    metadata: { name: 'p', namespace: 'shop' },
    spec: {},
    status: { conditions: [{ type: 'Accepted', status: 'True' }] },
  });
  make(WIDE, {
    apiVersion: 'spillway.dev/v1alpha1',
    kind: 'ClusterPlacementPolicy',
    metadata: { name: 'c' },
    spec: {},
  });
});
afterEach(async () => {
  await server.close();
});

function make(path: string, body: object): void {
  api.handle({ method: 'POST', path, query: {}, body, contentType: 'application/json' });
}
function lease(renewedMsAgo: number, holderIdentity = 'other'): void {
  const renewTime = new Date(NOW - renewedMsAgo).toISOString();
  const metadata = { name: 'spillway-scheduler', namespace: 'spillway-system' };
  make(LEASES, { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec: { holderIdentity, renewTime } });
}
const look = async (): Promise<void> => await policies.look(new AbortController().signal);
const conditions = (key: string): { type: string; status: string; reason?: string }[] =>
  (api.objects.get(key) as unknown as { status?: { conditions?: [] } }).status?.conditions ?? [];

test('all policies are told once that nobody answers schedulers, and keep what else is known of them', async () => {
  await look();
  expect(conditions(`${OWN}/p`)).toMatchObject([
    { type: 'Accepted', status: 'True' },
    { type: 'Effective', status: 'False', reason: 'NoSchedulerComponent' },
  ]);
  expect(conditions(`${WIDE}/c`)).toMatchObject([{ type: 'Effective', status: 'False' }]);
  const told = [
    'Warning PlacementPolicy p NoSchedulerComponent',
    'Warning ClusterPlacementPolicy c NoSchedulerComponent',
  ];
  expect(events).toEqual(told);
  await look();
  expect(events).toEqual(told);
  expect(api.requests('PATCH', `${OWN}/p/status`)).toHaveLength(1);
});

test.each([
  ['holds its Lease', 10_000, 'other', 0],
  ['has been away for long', 300_000, 'other', 2],
  ['gave its Lease back', 10_000, '', 2],
])('where another replica %s', async (_what, renewedMsAgo, holder, told) => {
  lease(renewedMsAgo, holder);
  await look();
  expect(events).toHaveLength(told);
});
