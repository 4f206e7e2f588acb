import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { until } from '../../hack/until.ts';
import type { EventSubject } from '../../src/kube/event-correlator.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { HostView } from '../../src/scheduler/host-view.ts';
import { StateGiver } from '../../src/scheduler/state-giver.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { serveMemoryApi } from '../fixtures/memory-api-server.ts';

/** StatefulSet shop/db, whose policy hands on the address of the pod before. */
let api: MemoryApi;
let giver: StateGiver;
let host: KubeClient;
let setUid: string;
let close: () => Promise<void>;
let given = 0;
const told: string[] = [];

const SPILLWAY = '/apis/spillway.dev/v1alpha1/namespaces/shop';
const PODS = '/api/v1/namespaces/shop/pods';
const LABEL = 'example.com/former-ip';

function make(path: string, object: object): { metadata: { uid?: string } } {
  const request = { method: 'POST', path, query: {}, body: object, contentType: 'application/json' };
  return api.handle(request) as unknown as { metadata: { uid?: string } };
}

beforeEach(async () => {
  api = new MemoryApi();
  [given, told.length] = [0, 0];
  make('/api/v1/namespaces', { kind: 'Namespace', metadata: { name: 'shop' } });
  const metadata = { name: 'db', namespace: 'shop' };
  const set = { apiVersion: 'apps/v1', kind: 'StatefulSet', metadata, spec: { replicas: 2 } };
  setUid = make('/apis/apps/v1/namespaces/shop/statefulsets', set).metadata.uid ?? '';
  const rules = [{ aliasLabelName: LABEL, jsonPath: '{.podIP}' }];
  make(`${SPILLWAY}/placementpolicies`, {
    apiVersion: 'spillway.dev/v1alpha1',
    kind: 'PlacementPolicy',
    metadata: { name: 'p', namespace: 'shop' },
    spec: {
      resourceSelectors: [{ apiVersion: 'apps/v1', kind: 'StatefulSet' }],
      placement: {},
      failover: { cluster: { statePreservation: { rules } } },
    },
  });
  const server = await serveMemoryApi(api);
  host = server.client('host');
  const monotonic = (): number => performance.now();
  const view = new HostView({ host, logger: pino({ level: 'silent' }), monotonic });
  const record = ({ kind, name }: EventSubject, _type: string, reason: string, message: string): unknown =>
    told.push(`${reason} ${kind} ${name}: ${message}`);
  giver = new StateGiver({ host, view, events: { record }, given: () => (given += 1), monotonic });
  const stop = new AbortController();
  const running = view.run(stop.signal);
  await until('the caches are complete', () => view.hasSynced, { intervalMs: 5 });
  close = async () => {
    stop.abort();
    await running;
    await server.close();
  };
});
afterEach(async () => {
  await close();
});

function left(uid = setUid, pods: readonly string[] = ['db-0']): void {
  const workload = { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'db', uid };
  const had = { [LABEL]: '10.1.2.3' };
  const preserved = pods.map((pod) => ({ pod, uid: 'former', time: '2026-01-01T00:00:00Z', labels: had }));
  make(`${SPILLWAY}/workloadplacements`, {
    apiVersion: 'spillway.dev/v1alpha1',
    kind: 'WorkloadPlacement',
    metadata: { name: 'statefulset-db', namespace: 'shop' },
    spec: { workload },
    status: { preserved },
  });
}

function comes(name = 'db-0', labels: Record<string, string> = { app: 'db' }): Pod {
  const owner = { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'db', uid: setUid, controller: true };
  const metadata = { name, namespace: 'shop', labels, ownerReferences: [owner] };
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata, spec: { containers: [{ name: 'main' }] } };
  return make(PODS, pod) as unknown as Pod;
}

const labels = (name = 'db-0'): object | undefined => api.objects.get(`${PODS}/${name}`)?.metadata.labels;
const reads = (): number => api.requests('GET', '/workloadplacements/statefulset-db').length;

describe('a pod that comes in the place of one that was moved', () => {
  test('has what that left before it is said to be ready for a node, without any cache that would have to show it', async () => {
    left();
    const pod = comes();
    expect(await giver.whyNotYet(pod)).toBeUndefined();
    expect(labels()).toEqual({ app: 'db', [LABEL]: '10.1.2.3' });
    const now = api.objects.get(`${PODS}/db-0`) as unknown as Pod;
    expect(await giver.whyNotYet(now)).toBeUndefined();
    expect([reads(), api.requests('PATCH').length]).toEqual([1, 1]);
    expect(told).toEqual([]);
  });

  test('is given it anew where it has lost it, as in a host that went back in time', async () => {
    left();
    const pod = comes();
    await giver.whyNotYet(pod);
    api.edit(`${PODS}/db-0`, { metadata: { labels: { [LABEL]: null } } });
    expect(labels()).toEqual({ app: 'db' });
    expect(await giver.whyNotYet(pod)).toBeUndefined();
    expect(labels()).toMatchObject({ [LABEL]: '10.1.2.3' });
  });

  test.each([
    ['another pod left it', () => left(), 'db-1'],
    ['a former workload of the name left it', () => left('former'), 'db-0'],
    ['nothing was ever left', () => undefined, 'db-0'],
  ])('gets nothing where %s', async (_what, given_, name) => {
    given_();
    expect(await giver.whyNotYet(comes(name))).toBeUndefined();
    expect(labels(name)).toEqual({ app: 'db' });
    expect(api.requests('PATCH')).toEqual([]);
  });

  test('waits as long as the host fails, and is told of when it has it', async () => {
    left();
    const pod = comes();
    api.fault = ({ method }) =>
      method === 'PATCH' ? { code: 503, reason: 'ServiceUnavailable', message: 'not now' } : undefined;
    await until('it is known why', async () => (await giver.whyNotYet(pod))?.includes('not now') === true);
    expect(labels()).toEqual({ app: 'db' });
    api.fault = undefined;
    await until('it has it', async () => (await giver.whyNotYet(pod)) === undefined);
    expect(labels()).toMatchObject({ [LABEL]: '10.1.2.3' });
    expect(given).toBe(1);
  });

  test('keeps a label that somebody gave it since the scheduler read it', async () => {
    left();
    const pod = comes();
    api.edit(`${PODS}/db-0`, { metadata: { labels: { [LABEL]: 'own' } } });
    expect(await giver.whyNotYet(pod)).toBeUndefined();
    expect(labels()).toEqual({ app: 'db', [LABEL]: 'own' });
    expect(told).toEqual([expect.stringContaining('it has that label by itself, with another value')]);
  });

  test('has it also where its scheduler knows it as it was before it was written to by others', async () => {
    left();
    const pod = comes();
    api.edit(`${PODS}/db-0`, { metadata: { annotations: { 'example.com/other': '1' } } });
    expect(await giver.whyNotYet(pod)).toBeUndefined();
    expect(labels()).toEqual({ app: 'db', [LABEL]: '10.1.2.3' });
    expect(await giver.whyNotYet(pod)).toBeUndefined();
  });

  test('takes no connection to the host that others need, where a webhook for pods takes its time', async () => {
    const names = Array.from({ length: 64 }, (_, index) => `db-${String(index)}`);
    left(setUid, names);
    const pods = names.map((name) => comes(name));
    api.fault = ({ method, path }) => (method === 'PATCH' && path.startsWith(PODS) ? 'hang' : undefined);
    for (const pod of pods) expect(await giver.whyNotYet(pod)).toBeTypeOf('string');
    expect(api.requests('PATCH')).toHaveLength(2);
    expect(pods.map((pod) => giver.isAwaitedFor(pod))).not.toContain(false);
    await host.request({ path: '/api/v1/namespaces/shop', deadlineMs: 5_000 });
  });

  test('does not hold up schedulers while the host takes its time', async () => {
    left();
    const pod = comes();
    api.fault = ({ path }) => (path.endsWith('/workloadplacements/statefulset-db') ? 'hang' : undefined);
    const began = performance.now();
    expect(await giver.whyNotYet(pod)).toBe('it is being read');
    expect(performance.now() - began).toBeLessThan(900);
  });

  test.each([
    [403, 'Forbidden', 'pods "db-0" is forbidden: User "spillway" cannot patch resource "pods"'],
    [422, 'Invalid', "ValidatingAdmissionPolicy 'keep' denied request: no labels"],
  ])('goes without where the host refuses it for good (%i), and says so', async (code, reason, message) => {
    left();
    const pod = comes();
    api.fault = ({ method }) => (method === 'PATCH' ? { code, reason, message } : undefined);
    expect(await giver.whyNotYet(pod)).toBeUndefined();
    expect(told).toEqual([
      expect.stringContaining(
        `StateNotHandedOn Pod db-0: ${LABEL}: what the pod before this one left is not handed on`,
      ),
    ]);
    expect(told[0]).toContain(message);
  });

  test('keeps what it has under that label by itself, and says so', async () => {
    left();
    expect(await giver.whyNotYet(comes('db-0', { [LABEL]: 'own' }))).toBeUndefined();
    expect(labels()).toEqual({ [LABEL]: 'own' });
    expect(told).toEqual([expect.stringContaining('it has that label by itself, with another value')]);
  });

  test('is not written to when another one has its name by now', async () => {
    left();
    const pod = comes();
    api.delete(`${PODS}/db-0`);
    comes();
    await giver.whyNotYet(pod);
    expect(labels()).toEqual({ app: 'db' });
  });
});
