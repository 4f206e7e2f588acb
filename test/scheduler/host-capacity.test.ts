import { setTimeout } from 'node:timers/promises';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { until } from '../../hack/until.ts';
import { scoringConfig } from '../../src/api/scoring.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { GangPlacer } from '../../src/scheduler/gangs/gang-placer.ts';
import { HostCapacity } from '../../src/scheduler/host-capacity.ts';
import { HostView } from '../../src/scheduler/host-view.ts';
import { PlacementQuestions } from '../../src/scheduler/placement-questions.ts';
import { HeldRooms } from '../../src/scheduler/held-rooms.ts';
import { WorkloadState } from '../../src/scheduler/workload-state.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { serveMemoryApi } from '../fixtures/memory-api-server.ts';

/** A host in memory with nodes of 4 and 2 cores, and a virtual node of 100. */
let api: MemoryApi;
let capacity: HostCapacity;
let gangs: GangPlacer;
let now: number;
let close: () => Promise<void>;
const VAST = { 'kubernetes.io/hostname': 'vast' };
const POD_PATH = '/api/v1/namespaces/shop/pods';

function make(path: string, body: object): object {
  return api.handle({ method: 'POST', path, query: {}, body, contentType: 'application/json' });
}

function node(name: string, cpu: string, labels: Record<string, string> = {}, pods = '10'): object {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels: { 'kubernetes.io/hostname': name, ...labels } },
    status: { allocatable: { cpu, memory: '8Gi', pods }, conditions: [{ type: 'Ready', status: 'True' }] },
  };
}

function pod(name: string, cpu: string, spec: object = {}, more: object = {}): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'shop', uid: `uid-of-${name}`, labels: { app: 'web' }, ...more },
    spec: { containers: [{ name: 'main', resources: { requests: { cpu } } }], ...spec },
  };
}

const slots = (one: Pod): number => capacity.slots(capacity.request(one), 1_000);
const soon = async (what: string, wanted: number): Promise<void> => {
  await until(what, () => slots(pod('x', '1')) === wanted, { intervalMs: 5 });
};

function set(name: string, spec: object): { ownerReferences: object[] } {
  const body = { apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: { name, namespace: 'shop' }, spec };
  const { metadata } = make('/apis/apps/v1/namespaces/shop/statefulsets', body) as Pod;
  const { uid } = metadata;
  return { ownerReferences: [{ apiVersion: 'apps/v1', kind: 'StatefulSet', name, uid, controller: true }] };
}

beforeEach(async () => {
  now = Date.parse('2026-01-01T00:00:00Z');
  api = new MemoryApi();
  make('/api/v1/namespaces', { kind: 'Namespace', metadata: { name: 'shop' } });
  make('/api/v1/nodes', node('big', '4', { disk: 'ssd' }));
  make('/api/v1/nodes', node('small', '2'));
  make('/api/v1/nodes', node('east', '100', { 'spillway.dev/member': 'east' }));
  make(POD_PATH, pod('there', '1', { nodeName: 'big' }));
  make(POD_PATH, pod('away', '50', { nodeName: 'east' }));
  make(POD_PATH, pod('waiting', '50'));
  const server = await serveMemoryApi(api);
  const stop = new AbortController();
  const clock = (): number => now;
  const view = new HostView({
    host: server.client('host'),
    logger: pino({ level: 'silent' }),
    monotonic: clock,
  });
  capacity = new HostCapacity(view, clock);
  const capacityOf = (name: string): HostCapacity | undefined => (name === 'local' ? capacity : undefined);
  const heldRooms = new HeldRooms(capacityOf, clock);
  view.onPod({ changed: (one) => heldRooms.podSeen(one), gone: () => undefined });
  const workloads = new WorkloadState({ stored: () => undefined, clock, monotonic: clock });
  const scoring = scoringConfig.parse({});
  const questions = new PlacementQuestions({ view, workloads, capacityOf, signals: () => new Map(), scoring, clock });
  gangs = new GangPlacer({ view, questions, ownQuestions: questions, heldRooms, capacityOf, clock });
  expect(capacity.ready).toBe(false);
  const running = view.run(stop.signal);
  await until('the caches are complete', () => capacity.ready, { intervalMs: 5 });
  close = async () => {
    stop.abort();
    await running;
    await server.close();
  };
});
afterEach(async () => {
  await close();
});

describe("the room of the host's own nodes", () => {
  test('is what pods leave there, virtual nodes and theirs left out', () => {
    expect(capacity.size.pods).toBe(1);
    expect(slots(pod('x', '1'))).toBe(5);
    expect(slots(pod('x', '2'))).toBe(2);
    expect(slots(pod('x', '4'))).toBe(0);
    expect(slots(pod('x', '1', { nodeSelector: { disk: 'ssd' } }))).toBe(3);
    const apart = {
      affinity: {
        podAntiAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: [
            { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: { app: 'web' } } },
          ],
        },
      },
    };
    expect(slots(pod('x', '1', apart))).toBe(1);
  });

  test("is nobody else's for labels that a tenant writes on a pod", async () => {
    const late = pod('late', '3');
    capacity.reserve('uid-of-late', capacity.request(late));
    expect(slots(pod('x', '1'))).toBe(2);
    const labels = { 'spillway.dev/host': '', 'spillway.dev/node': 'x', 'spillway.dev/uid': 'uid-of-late' };
    make(POD_PATH, pod('tenants', '0', { nodeName: 'small' }, { labels }));
    await until('the pod is known', () => capacity.size.pods === 2, { intervalMs: 5 });
    expect(slots(pod('x', '1'))).toBe(2);
    capacity.release('uid-of-late');
    capacity.reserve('uid-of-late', capacity.request(late));
    expect(capacity.holds('uid-of-late')).toBe(true);
  });

  test('follows pods and nodes', async () => {
    make(POD_PATH, pod('more', '2', { nodeName: 'big' }));
    await soon('a pod came', 3);
    api.edit(`${POD_PATH}/there`, { status: { phase: 'Succeeded' } });
    await soon('a pod ended', 4);
    api.edit(`${POD_PATH}/waiting`, { spec: { containers: [{ name: 'main', resources: {} }], nodeName: 'small' } });
    await until('a pod was bound', () => capacity.size.pods === 2, { intervalMs: 5 });
    api.edit('/api/v1/nodes/big', { spec: { unschedulable: true } });
    await soon('a node was cordoned', 2);
    make('/api/v1/nodes', node('new', '3'));
    await soon('a node came', 5);
  });
});

describe('a gang on the host', () => {
  const place = async (pods: readonly Pod[]) =>
    await gangs.place(pods, { at: 'local', avoid: undefined, holdMs: 5_000 });

  test('finds room for all of its pods, which others do not get meanwhile', async () => {
    expect(await place(['a', 'b', 'c'].map((name) => pod(name, '1')))).toEqual({ cluster: 'local' });
    expect(slots(pod('x', '1'))).toBe(2);
    expect(await place(['d', 'e', 'f'].map((name) => pod(name, '1')))).toEqual({
      why: expect.stringMatching(/^local: room for 2 of 3 pods \(2 nodes: insufficient cpu\)$/) as string,
    });
    expect(slots(pod('x', '1'))).toBe(2);
    now += 5_000;
    expect(await place(['d', 'e', 'f'].map((name) => pod(name, '1')))).toEqual({ cluster: 'local' });
    gangs.release(['d', 'e', 'f'].map((name) => pod(name, '1')));
    expect(slots(pod('x', '1'))).toBe(5);
  });

  test('of ten thousand pods lets others have their turn while its room is set aside, kept and given back', async () => {
    make('/api/v1/nodes', node('vast', '10000', {}, '12000'));
    await until('it is known', () => slots(pod('x', '1')) === 1_000, { intervalMs: 5 });
    const pods = Array.from({ length: 10_000 }, (_, index) => pod(`p${String(index)}`, '1', { nodeSelector: VAST }));
    const begun = performance.now();
    let [last, longest] = [begun, 0];
    const turns = setInterval(() => {
      const before = last;
      last = performance.now();
      longest = Math.max(longest, last - before);
    }, 1);
    expect(await place(pods)).toEqual({ cluster: 'local' });
    await gangs.hold(pods, 'local', 5_000);
    await gangs.hold(pods, 'local', 5_000);
    await setTimeout(20);
    clearInterval(turns);
    expect(capacity.size.reservations).toBe(10_000);
    // On a machine with much else to do all of it is slow.
    expect(longest).toBeLessThan(Math.max(250, (last - begun) / 4));
    gangs.release(pods);
    expect(capacity.size.reservations).toBe(0);
  }, 60_000);

  test('knows the StatefulSets that make their pods in turn', async () => {
    const atOnce = set('db', { replicas: 3, podManagementPolicy: 'Parallel' });
    const inTurn = set('web', { replicas: 3, podManagementPolicy: 'OrderedReady' });
    const job = { ownerReferences: [{ ...inTurn.ownerReferences[0], kind: 'Job', apiVersion: 'batch/v1' }] };
    await until('it is known', () => gangs.setInTurn(pod('web-0', '1', {}, inTurn)) !== undefined, { intervalMs: 5 });
    expect(gangs.setInTurn(pod('web-0', '1', {}, inTurn))).toEqual({ name: 'web', replicas: 3 });
    for (const other of [atOnce, job, {}]) expect(gangs.setInTurn(pod('x', '1', {}, other))).toBeUndefined();
  });

  test('holds nothing twice for a pod that is bound', async () => {
    const late = make(POD_PATH, pod('late', '2')) as unknown as Pod;
    expect(await place([late])).toEqual({ cluster: 'local' });
    expect(capacity.size).toEqual({ pods: 1, reservations: 1 });
    api.edit(`${POD_PATH}/late`, { spec: { nodeName: 'big' } });
    await until('it is there', () => capacity.size.pods === 2, { intervalMs: 5 });
    expect(capacity.size.reservations).toBe(0);
    expect(slots(pod('x', '1'))).toBe(3);
  });
});
