import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Node } from '../../src/kube/core-v1.ts';
import { poolFacts } from '../../src/capacity/pool-facts.ts';
import type { Lease } from '../../src/kube/lease.ts';
import type { DesiredNode } from '../../src/nodes/desired-node.ts';
import { NodeKeeper, type NodeKeeperOptions } from '../../src/nodes/node-keeper.ts';
import { NodeStanding } from '../../src/nodes/node-standing.ts';
import { ReportPace } from '../../src/nodes/report-pace.ts';
import { renderNode, type NodeFacts } from '../../src/nodes/render-node.ts';
import { memberNode } from '../fixtures/member-nodes.ts';
import { serveMemoryApi, type MemoryApiServer } from '../fixtures/memory-api-server.ts';
import { MemoryApi, type MemoryRequest } from '../fixtures/memory-api.ts';

const NODE = '/api/v1/nodes/east';
const LEASE = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/east';

describe('NodeKeeper', () => {
  let api: MemoryApi;
  let server: MemoryApiServer;
  let facts: NodeFacts;
  const stops: (() => Promise<void>)[] = [];
  beforeEach(async () => {
    api = new MemoryApi();
    server = await serveMemoryApi(api);
    facts = {
      name: 'east',
      member: 'east',
      spec: { zones: [], labels: {}, taints: [], taintMode: 'NoSchedule', unschedulable: false },
      pool: poolFacts([memberNode('n1', { labels: { pool: 'blue' } })]),
      offer: { capacity: { cpu: '10' }, allocatable: { cpu: '8' } },
      memberVersion: 'v1.36.3',
      address: '192.0.2.7',
      kubeletPort: 10_250,
      reachable: true,
    };
  });
  afterEach(async () => {
    for (const stop of stops.splice(0)) await stop();
    await server.close();
  });

  function start(options: Partial<NodeKeeperOptions> = {}) {
    const events: string[] = [];
    const standing = new NodeStanding({ name: 'east', member: 'east', providerID: 'spillway://east/east' });
    const keeper = new NodeKeeper({
      host: server.client('host'),
      manager: server.client('host'),
      name: 'east',
      standing,
      desired: () => renderNode(facts),
      pace: new ReportPace(),
      events: { record: (_, type, reason, message) => events.push(`${type} ${reason} ${message}`) },
      coalesceMs: 20,
      leaseRenewMs: 50,
      logger: pino({ level: 'silent' }),
      ...options,
    });
    const controller = new AbortController();
    const ended = keeper.run(controller.signal);
    const stop = async (): Promise<void> => {
      controller.abort();
      await ended;
    };
    stops.push(stop);
    return { keeper, standing, events, stop };
  }
  const node = () => api.objects.get(NODE) as unknown as Node | undefined;
  const lease = () => api.objects.get(LEASE) as unknown as Lease | undefined;
  const eventually = (check: () => void) => vi.waitFor(check, { timeout: 10_000, interval: 10 });
  /** Writes other than renewals of the Lease. */
  const writes = () => api.seen.filter(({ method, path }) => method !== 'GET' && !path.includes('/leases'));
  /** The parts of the status that a patch holds. */
  const reported = (request: MemoryRequest | undefined): string[] => {
    const body = request?.body as { status?: object } | undefined;
    return Object.keys(body?.status ?? {}).sort((a, b) => (a < b ? -1 : 1));
  };
  const quiet = async (): Promise<void> => {
    const before = api.requests('PUT', '/leases/east').length;
    await eventually(() => expect(api.requests('PUT', '/leases/east').length).toBeGreaterThan(before + 3));
  };

  it('does itself what a node may do, and lets the manager do the rest', async () => {
    facts.spec = { ...facts.spec, labels: { 'kubernetes.io/role': 'burst', team: 'a' } };
    const [host, manager] = [server.client('host'), server.client('host')];
    const [own, others] = [vi.spyOn(host, 'request'), vi.spyOn(manager, 'request')];
    const sent = (spy: typeof own): string[] =>
      spy.mock.calls.map(([r]) => `${r.method ?? 'GET'} ${r.path}`).filter((text) => !text.startsWith('GET'));
    const { keeper } = start({ host, manager });
    await eventually(() => expect(node()?.metadata.labels).toMatchObject({ 'kubernetes.io/role': 'burst', team: 'a' }));
    await eventually(() => expect(lease()).toBeDefined());
    const [made] = api.requests('POST', '/nodes');
    const { labels } = (made?.body as Node | undefined)?.metadata ?? {};
    expect(labels).toMatchObject({ team: 'a', 'spillway.dev/member': 'east' });
    expect(labels).not.toHaveProperty(['kubernetes.io/role']);
    expect(sent(others)).toEqual([`PATCH ${NODE}`]);
    facts.reachable = false;
    keeper.trigger();
    const taints = (): string[] => (node()?.spec?.taints ?? []).map(({ key }) => key);
    await eventually(() => expect(taints()).toContain('spillway.dev/member-unreachable'));
    await eventually(() => expect(sent(own)).toContain(`PATCH ${NODE}/status`));
    expect(sent(others)).toEqual([`PATCH ${NODE}`, `PATCH ${NODE}`]);
    expect(sent(own)).not.toContain(`PATCH ${NODE}`);
  });

  it('gives a Node that somebody deleted the labels back that others had put there, reserved ones too', async () => {
    start();
    await eventually(() => expect(lease()).toBeDefined());
    api.edit(NODE, { metadata: { labels: { 'node-role.kubernetes.io/burst': '', theirs: 'x' } } });
    await quiet();
    api.delete(NODE);
    await eventually(() =>
      expect(node()?.metadata.labels).toMatchObject({ 'node-role.kubernetes.io/burst': '', theirs: 'x' }),
    );
  });

  it('registers the node with one request and renews its lease', async () => {
    start();
    await eventually(() => expect(lease()).toBeDefined());
    expect(node()).toMatchObject({
      metadata: { labels: { 'spillway.dev/member': 'east', pool: 'blue' } },
      spec: { providerID: 'spillway://east/east' },
      status: { allocatable: { cpu: '8' } },
    });
    expect(lease()).toMatchObject({
      metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'east', uid: node()?.metadata.uid }] },
      spec: { holderIdentity: 'east', leaseDurationSeconds: 40 },
    });
    const first = lease()?.spec?.renewTime ?? '';
    expect(first).toMatch(/\.\d{6}Z$/);
    await eventually(() => expect((lease()?.spec?.renewTime ?? '') > first).toBe(true));
    await quiet();
    expect(writes().map(({ method, path }) => `${method} ${path}`)).toEqual(['POST /api/v1/nodes']);
  });

  it('writes nothing for a node that is as it should be', async () => {
    const first = start();
    await eventually(() => expect(lease()).toBeDefined());
    await first.stop();
    api.seen.length = 0;
    start();
    await quiet();
    expect(writes()).toEqual([]);
  });

  it('leaves the node when it stops', async () => {
    const { stop } = start();
    await eventually(() => expect(lease()).toBeDefined());
    const before = node();
    await stop();
    expect(node()).toEqual(before);
    expect(api.requests('DELETE')).toEqual([]);
  });

  it('looks now and then where many changes say nothing new of the Node', async () => {
    const desired = vi.fn(() => renderNode(facts));
    const { keeper } = start({ coalesceMs: 40_000, desired });
    await eventually(() => expect(lease()).toBeDefined());
    await quiet();
    const before = desired.mock.calls.length;
    for (let change = 0; change < 50; change += 1) {
      keeper.trigger();
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(desired.mock.calls.length).toBeLessThanOrEqual(before + 1);
  });

  it('does not report room that is only there until the host, too, knows that a pod has gone', async () => {
    let now = 0;
    const { keeper } = start({ coalesceMs: 80_000, monotonic: () => now });
    await eventually(() => expect(lease()).toBeDefined());
    await quiet();
    const offer = (cpu: string) => ({ capacity: { cpu: '10' }, allocatable: { cpu } });
    now += 3_600_000;
    facts.offer = offer('12');
    keeper.roomChanged();
    await new Promise((resolve) => setImmediate(resolve));
    facts.offer = offer('8');
    keeper.roomChanged();
    await quiet();
    expect(api.requests('PATCH')).toEqual([]);
  });

  it('reports room that stays', async () => {
    const { keeper } = start();
    await eventually(() => expect(lease()).toBeDefined());
    facts = { ...facts, offer: { capacity: { cpu: '10' }, allocatable: { cpu: '4' } } };
    keeper.roomChanged();
    await eventually(() => expect(node()?.status?.allocatable).toEqual({ cpu: '4' }));
  });

  it('reports changed facts by patches of what changed, many changes at once', async () => {
    const { keeper } = start({ coalesceMs: 300 });
    await eventually(() => expect(lease()).toBeDefined());
    for (let cpu = 1; cpu <= 50; cpu += 1) {
      facts = { ...facts, offer: { capacity: { cpu: '10' }, allocatable: { cpu: String(cpu) } } };
      keeper.trigger();
    }
    await eventually(() => expect(node()?.status?.allocatable).toEqual({ cpu: '50' }));
    const patches = api.requests('PATCH');
    expect(patches.length).toBeLessThanOrEqual(2);
    expect(patches.at(-1)).toMatchObject({
      path: `${NODE}/status`,
      contentType: 'application/strategic-merge-patch+json',
      body: { status: { allocatable: { cpu: '50' } } },
    });
    expect(reported(patches.at(-1))).toEqual(['allocatable', 'conditions']);
  });

  it('writes seldom for a busy member whose room hardly changes, and at once when much of it is gone', async () => {
    let now = Date.parse('2026-11-21T08:00:00Z');
    const offer = (cpu: string) => ({ capacity: { cpu: '1000' }, allocatable: { cpu } });
    facts = { ...facts, offer: offer('800') };
    const { keeper } = start({ coalesceMs: 1, clock: () => now });
    await eventually(() => expect(lease()).toBeDefined());
    for (let second = 1; second <= 60; second += 1) {
      now += 1_000;
      // A pod of one core comes, another one goes.
      facts.offer = offer(second % 2 === 0 ? '800' : '799');
      keeper.trigger();
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    expect(api.requests('PATCH').length).toBeLessThanOrEqual(2);
    facts.offer = offer('700');
    keeper.trigger();
    await eventually(() => expect(node()?.status?.allocatable).toEqual({ cpu: '700' }));
  });

  it('rests with its room alone as long as the pace of all nodes says, and with nothing else', async () => {
    const pace = new ReportPace();
    const wrote = vi.spyOn(pace, 'wrote');
    const offer = (cpu: string) => ({ capacity: { cpu: '10' }, allocatable: { cpu } });
    const cpu = () => node()?.status?.allocatable?.['cpu'];
    const { keeper } = start({ pace });
    await eventually(() => expect(lease()).toBeDefined());
    wrote.mockReturnValueOnce(performance.now() + 3_600_000);
    facts = { ...facts, offer: offer('7') };
    keeper.roomChanged();
    await eventually(() => expect(cpu()).toBe('7'));
    facts = { ...facts, offer: offer('4') };
    keeper.roomChanged();
    await quiet();
    expect(cpu()).toBe('7');
    const before = wrote.mock.calls.length;
    facts = { ...facts, reachable: false };
    keeper.trigger();
    await eventually(() => expect(cpu()).toBe('4'));
    expect(wrote).toHaveBeenCalledTimes(before);
  });

  it('tells of room that had to rest as soon as its rest is over, without a word from anybody', async () => {
    const pace = new ReportPace();
    let restsUntil = 0;
    vi.spyOn(pace, 'wrote').mockImplementationOnce(() => (restsUntil = performance.now() + 400));
    const offer = (cpu: string) => ({ capacity: { cpu: '10' }, allocatable: { cpu } });
    const { keeper } = start({ pace });
    await eventually(() => expect(lease()).toBeDefined());
    for (const cpu of ['7', '4']) {
      facts = { ...facts, offer: offer(cpu) };
      keeper.roomChanged();
      await eventually(() => expect(node()?.status?.allocatable).toEqual({ cpu }));
    }
    expect(performance.now()).toBeGreaterThanOrEqual(restsUntil);
  });

  it('taints an unreachable member and takes the taint back, leaving labels, taints and cordons of others', async () => {
    const { keeper } = start();
    await eventually(() => expect(lease()).toBeDefined());
    const theirs = { key: 'theirs', effect: 'NoSchedule' };
    api.edit(NODE, {
      metadata: { labels: { team: 'x' } },
      spec: { unschedulable: true, taints: [theirs, ...(node()?.spec?.taints ?? [])] },
    });
    facts = { ...facts, reachable: false, spec: { ...facts.spec, labels: { extra: 'y' } } };
    keeper.trigger();
    const unreachable = { key: 'spillway.dev/member-unreachable', effect: 'NoSchedule' };
    await eventually(() => expect(node()?.spec?.taints).toContainEqual(unreachable));
    await eventually(() => {
      const condition = node()?.status?.conditions?.find(({ type }) => type === 'spillway.dev/MemberReachable');
      expect(condition?.status).toBe('False');
    });
    facts = { ...facts, reachable: true, spec: { ...facts.spec, labels: {} } };
    keeper.trigger();
    await eventually(() => expect(node()?.spec?.taints).not.toContainEqual(unreachable));
    expect(node()?.metadata.labels).toMatchObject({ team: 'x', pool: 'blue' });
    expect(node()?.metadata.labels).not.toHaveProperty('extra');
    expect(node()?.spec).toMatchObject({ unschedulable: true });
    expect(node()?.spec?.taints).toContainEqual(theirs);
  });

  it('fails with its member once the time is over, without a word from anybody, while its Lease is renewed; and is back with it', async () => {
    const { keeper } = start();
    const ready = () => node()?.status?.conditions?.find(({ type }) => type === 'Ready');
    await eventually(() => expect(ready()?.status).toBe('True'));
    const until = performance.now() + 300;
    facts = { ...facts, reachable: false, failure: { reason: 'Timeout', message: 'x' }, failsWithMember: true };
    Object.defineProperty(facts, 'unreadyInMs', { get: () => until - performance.now(), enumerable: true });
    keeper.trigger();
    await eventually(() => expect(node()?.spec?.taints?.at(-1)?.key).toBe('spillway.dev/member-unreachable'));
    expect(ready()?.status).toBe('True');
    await eventually(() => expect(ready()).toMatchObject({ status: 'Unknown', reason: 'MemberUnreachable' }));
    const renewed = lease()?.spec?.renewTime;
    await eventually(() => expect(lease()?.spec?.renewTime).not.toBe(renewed));
    facts = { ...facts, failure: { reason: 'ServerError', message: 'x' } };
    keeper.trigger();
    await eventually(() => expect(ready()).toMatchObject({ status: 'False', reason: 'MemberNotReady' }));
    facts = { ...facts, reachable: undefined, failure: undefined };
    keeper.trigger();
    await quiet();
    expect(ready()).toMatchObject({ status: 'False', reason: 'MemberNotReady' });
    facts = { ...facts, reachable: true };
    keeper.trigger();
    await eventually(() => expect(ready()?.status).toBe('True'));
  });

  it('brings a deleted node back with the same labels and a lease of the new one', async () => {
    start();
    await eventually(() => expect(lease()).toBeDefined());
    api.edit(NODE, { metadata: { labels: { team: 'x', pool: 'edited' } } });
    // That it repairs its own label proves that it has seen the other one.
    await eventually(() => expect(node()?.metadata.labels).toMatchObject({ team: 'x', pool: 'blue' }));
    const labels = { ...node()?.metadata.labels };
    const uid = node()?.metadata.uid;
    api.delete(NODE);
    api.delete(LEASE);
    await eventually(() => {
      expect(node()?.metadata.uid).not.toBe(uid);
      expect(node()?.metadata.labels).toEqual(labels);
      expect(lease()?.metadata.ownerReferences?.[0]?.uid).toBe(node()?.metadata.uid);
    });
    expect(labels['team']).toBe('x');
  });

  it('brings it back when the watch was cut just then', async () => {
    start();
    await eventually(() => expect(lease()).toBeDefined());
    const uid = node()?.metadata.uid;
    server.cutWatches();
    api.delete(NODE);
    await eventually(() => {
      expect(node()).toBeDefined();
      expect(node()?.metadata.uid).not.toBe(uid);
    });
  });

  it('says Ready again when the host had given the node up', async () => {
    start();
    await eventually(() => expect(lease()).toBeDefined());
    const conditions = (node()?.status?.conditions ?? []).map((one) =>
      one.type === 'Ready' ? { ...one, status: 'Unknown', reason: 'NodeStatusUnknown' } : one,
    );
    api.edit(NODE, { status: { conditions: [...conditions, { type: 'Other', status: 'True' }] } });
    await eventually(() => {
      const ready = node()?.status?.conditions?.find(({ type }) => type === 'Ready');
      expect(ready?.status).toBe('True');
    });
    expect(node()?.status?.conditions?.map(({ type }) => type)).toContain('Other');
  });

  it('reports at least once in every heartbeat time', async () => {
    start({ heartbeatMs: 1_000 });
    await eventually(() => expect(api.requests('PATCH', '/status').length).toBeGreaterThanOrEqual(2));
    expect(reported(api.requests('PATCH', '/status')[0])).toEqual(['conditions']);
  });

  it('touches nothing of a node that is not its own, and says so', async () => {
    api.handle({
      method: 'POST',
      path: '/api/v1/nodes',
      query: {},
      contentType: 'application/json',
      body: { kind: 'Node', apiVersion: 'v1', metadata: { name: 'east', labels: { real: 'machine' } } },
    });
    const { keeper, standing, events } = start({ freedMs: 300 });
    await eventually(() => expect(keeper.problem).toBeDefined());
    expect(keeper.problem).toContain('a Node named "east" exists and was not made for cluster "east". Nothing is done');
    expect([standing.ours, standing.refusal?.message]).toEqual([false, keeper.problem]);
    keeper.trigger();
    api.edit(NODE, { metadata: { labels: { real: 'still' } } });
    await eventually(() => expect(events).toHaveLength(1));
    expect(events[0]).toContain('Warning NodeNameTaken a Node named "east" exists');
    expect(writes()).toEqual([]);
    expect(lease()).toBeUndefined();
    // Its owner goes. He has some time to make it anew; then the name is free, and nothing of the former is inherited.
    api.delete(NODE);
    const goneAt = Date.now();
    await eventually(() => expect(lease()).toBeDefined());
    expect(Date.now() - goneAt).toBeGreaterThanOrEqual(300);
    expect(standing.ours).toBe(true);
    expect(node()?.metadata.labels).not.toHaveProperty('real');
    expect(keeper.problem).toBeUndefined();
  });

  it.each([
    ['back', -1_800_000, 2_000],
    ['forward', 1_800_000, 10_000],
  ])('leaves a freed name alone for its time, also when the wall clock jumps %s', async (_, byMs, freedMs) => {
    const body = { kind: 'Node', apiVersion: 'v1', metadata: { name: 'east', labels: { real: 'machine' } } };
    api.handle({ method: 'POST', path: '/api/v1/nodes', query: {}, contentType: 'application/json', body });
    let ahead = 0;
    const desired = vi.fn<() => DesiredNode>(() => renderNode(facts));
    const { keeper } = start({ freedMs, desired, clock: () => Date.now() + ahead });
    await eventually(() => expect(keeper.problem).toBeDefined());
    const seen = api.seen.length;
    api.delete(NODE);
    await eventually(() => expect(keeper.problem).toBeUndefined());
    ahead = byMs;
    if (byMs < 0) {
      await eventually(() => expect(node()).toBeDefined());
      return;
    }
    // The second look begins when the first one has ended.
    for (const looks of [1, 2]) {
      const before = desired.mock.calls.length;
      keeper.trigger();
      await eventually(() => expect(desired.mock.calls.length, `look ${looks}`).toBeGreaterThan(before));
    }
    expect(api.seen.slice(seen).filter(({ method }) => method === 'POST')).toEqual([]);
  });

  it('ceases at once when somebody else makes a Node of that name anew, even while a write of its own is on its way', async () => {
    const { keeper, standing } = start();
    await eventually(() => expect(lease()).toBeDefined());
    const lost: boolean[] = [];
    standing.on(() => lost.push(!standing.ours));
    // Nobody has seen the new one when the next write goes: it was made for the Node that is gone.
    api.fault = ({ method, path }) => {
      if (method !== 'PATCH' || path !== `${NODE}/status`) return undefined;
      api.fault = undefined;
      api.delete(NODE);
      api.handle({
        method: 'POST',
        path: '/api/v1/nodes',
        query: {},
        contentType: 'application/json',
        body: { kind: 'Node', apiVersion: 'v1', metadata: { name: 'east' }, spec: { providerID: 'cloud:///i-1' } },
      });
      return undefined;
    };
    facts = { ...facts, offer: { capacity: { cpu: '10' }, allocatable: { cpu: '2' } } };
    keeper.trigger();
    await eventually(() => expect(lost).toEqual([true]));
    const renewals = (): number => api.requests('PUT', '/leases/east').length;
    const before = renewals();
    await new Promise((resolve) => setTimeout(resolve, 200));
    // One may have been on its way.
    expect(renewals() - before).toBeLessThanOrEqual(1);
    expect(node()).toMatchObject({ spec: { providerID: 'cloud:///i-1' } });
    expect(node()).not.toHaveProperty('status');
    expect(keeper.problem).toContain('was not made for cluster "east"');
  });

  it('takes over a node that appeared while it wanted to make one', async () => {
    let once = true;
    api.fault = ({ method, path }) => {
      if (method !== 'POST' || !path.endsWith('/nodes') || !once) return undefined;
      once = false;
      return 'reset-after';
    };
    const { keeper } = start();
    await eventually(() => expect(lease()).toBeDefined());
    expect(once).toBe(false);
    expect(keeper.problem).toBeUndefined();
  });

  it('works from the live object after a conflict', async () => {
    const { keeper } = start();
    await eventually(() => expect(lease()).toBeDefined());
    let conflicts = 0;
    api.fault = ({ method, path }) => {
      if (method !== 'PATCH' || path !== NODE || conflicts >= 2) return undefined;
      conflicts += 1;
      return { code: 409, reason: 'Conflict' };
    };
    facts = { ...facts, reachable: false };
    keeper.trigger();
    await eventually(() => expect(node()?.spec?.taints).toHaveLength(2));
    expect(conflicts).toBe(2);
  });

  it('reports its status although the API server refuses its labels, and says why', async () => {
    const { keeper } = start();
    await eventually(() => expect(lease()).toBeDefined());
    api.fault = ({ method, path }) =>
      method === 'PATCH' && path === NODE
        ? { code: 422, reason: 'Invalid', message: 'label bad is not allowed' }
        : undefined;
    const spec = { ...facts.spec, labels: { bad: 'label' } };
    facts = { ...facts, spec, offer: { capacity: { cpu: '10' }, allocatable: { cpu: '1' } } };
    keeper.trigger();
    await eventually(() => expect(node()?.status?.allocatable).toEqual({ cpu: '1' }));
    await eventually(() => expect(keeper.problem).toContain('label bad is not allowed'));
    api.fault = undefined;
    await eventually(() => expect(node()?.metadata.labels).toMatchObject({ bad: 'label' }));
    await eventually(() => expect(keeper.problem).toBeUndefined());
  });

  it('lives through an outage of the API server', async () => {
    const { keeper } = start();
    await eventually(() => expect(lease()).toBeDefined());
    api.fault = () => ({ code: 503 });
    facts = { ...facts, offer: { capacity: { cpu: '10' }, allocatable: { cpu: '3' } } };
    keeper.trigger();
    const seen = api.seen.length;
    await eventually(() => expect(api.seen.length).toBeGreaterThan(seen + 5));
    const before = lease()?.spec?.renewTime ?? '';
    api.fault = undefined;
    await eventually(() => {
      expect(node()?.status?.allocatable).toEqual({ cpu: '3' });
      expect((lease()?.spec?.renewTime ?? '') > before).toBe(true);
    });
  });

  it('keeps what it cannot know yet: a start with an unknown member changes nothing', async () => {
    const first = start();
    await eventually(() => expect(lease()).toBeDefined());
    await first.stop();
    const before = node();
    facts = { ...facts, pool: undefined, offer: undefined, reachable: undefined, memberVersion: undefined };
    api.seen.length = 0;
    start();
    await quiet();
    expect(writes()).toEqual([]);
    expect(node()).toEqual(before);
    // Nobody tells the keeper: it asks again by itself until all is known.
    const offer = { capacity: { cpu: '10' }, allocatable: { cpu: '5' } };
    facts = { ...facts, pool: poolFacts([memberNode('n1')]), offer, reachable: true };
    await eventually(() => expect(node()?.status?.allocatable).toEqual({ cpu: '5' }));
    expect(node()?.metadata.labels).not.toHaveProperty('pool');
  });
});
