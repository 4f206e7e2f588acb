import { pino } from 'pino';
import { Registry } from 'prom-client';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { HOST_NAME_ANNOTATION, HOST_NAMESPACE_ANNOTATION, UID_LABEL } from '../../../src/api/marks.ts';
import type { Pod } from '../../../src/kube/core-v1.ts';
import { Informer } from '../../../src/kube/informer.ts';
import { PODS } from '../../../src/kube/resource.ts';
import { MemberEvents, type ToldClaim } from '../../../src/pods/events/member-events.ts';
import { memberEventMetrics, type MemberEventMetrics } from '../../../src/pods/events/metrics.ts';
import { MemoryApi, type MemoryRequest } from '../../fixtures/memory-api.ts';
import { serveMemoryApi, type MemoryApiServer } from '../../fixtures/memory-api-server.ts';
import { HOST_ID, hostPod, memberPod } from '../../fixtures/pods.ts';

/** Both sides use the same namespace here. */
const HOST_EVENTS = '/api/v1/namespaces/shop/events';
const MEMBER_EVENTS = HOST_EVENTS;

interface Written {
  metadata: { name: string; namespace: string };
  involvedObject: { uid: string };
  reason: string;
  message: string;
  count: number;
}

async function until(condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const deadline = Date.now() + 8000;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`not within 8 s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

describe('Events of a member', () => {
  let host: MemoryApi;
  let member: MemoryApi;
  let servers: MemoryApiServer[];
  let metrics: MemberEventMetrics;
  let registry: Registry;
  let lines: string[];
  let stops: (() => Promise<void>)[];
  let now: number;
  let mayWrite: boolean;
  let podEvents: 'Problems' | 'All';
  let asked: number;
  const hostPods = new Map<string, Pod>();
  /** Claims of the host, by place and UID of the member's. */
  const claims = new Map<string, ToldClaim>();
  const uids = new Map<string, string>();

  beforeEach(async () => {
    [host, member] = [new MemoryApi(), new MemoryApi()];
    servers = [await serveMemoryApi(host), await serveMemoryApi(member)];
    registry = new Registry();
    metrics = memberEventMetrics(registry);
    lines = [];
    stops = [];
    now = Date.parse('2026-11-21T08:00:00Z');
    mayWrite = true;
    podEvents = 'Problems';
    asked = 0;
    hostPods.clear();
    claims.clear();
    uids.clear();
    addPod('web-0');
  });
  afterEach(async () => {
    for (const stop of stops.splice(0)) await stop();
    await Promise.all(servers.map((server) => server.close()));
  });

  /** A host pod and its member pod, in namespaces of the same name. */
  function addPod(name: string): void {
    hostPods.set(`east shop/${name}`, hostPod({ metadata: { name, uid: `host-${name}` } }));
    addMemberPod(name, name);
  }

  /** A member pod whose marks name a host pod. */
  function addMemberPod(name: string, marked: string, marks: Partial<Pod['metadata']> = {}): void {
    const labels = { ...memberPod().metadata.labels, [UID_LABEL]: `host-${name}` };
    const annotations = { [HOST_NAMESPACE_ANNOTATION]: 'shop', [HOST_NAME_ANNOTATION]: marked };
    uids.set(
      name,
      create('pods', { ...memberPod(), metadata: { name, namespace: 'shop', labels, annotations, ...marks } }),
    );
  }

  /** Creates an object in the member. @returns its UID. */
  function create(plural: string, body: object): string {
    const path = `/api/v1/namespaces/shop/${plural}`;
    const request = { method: 'POST', path, query: {}, body, contentType: 'application/json' };
    return (member.handle(request) as { metadata: { uid: string } }).metadata.uid;
  }

  /** An Event of the member about a pod, by default a warning of a kubelet. */
  function say(name: string, more: object = {}, pod = 'web-0'): void {
    create('events', {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name, namespace: 'shop' },
      involvedObject: { kind: 'Pod', namespace: 'shop', name: pod, uid: uids.get(pod) },
      type: 'Warning',
      reason: 'FailedMount',
      message: 'no such volume',
      source: { component: 'kubelet' },
      count: 1,
      firstTimestamp: '2026-11-21T08:00:00Z',
      lastTimestamp: '2026-11-21T08:00:00Z',
      ...more,
    });
  }

  const written = (): Written[] => [...host.objects.values()] as unknown as Written[];
  const writes = (): MemoryRequest[] => host.seen.filter(({ method }) => method !== 'GET');
  const outcome = async (name: string): Promise<number> => {
    const { values } = await metrics.events.get();
    return values.find(({ labels }) => labels.outcome === name)?.value ?? 0;
  };

  function start(): { end: () => Promise<void>; events: MemberEvents } {
    const [hostClient, memberClient] = [servers[0]?.client('host'), servers[1]?.client('east')];
    if (hostClient === undefined || memberClient === undefined) throw new Error('no servers');
    const pods = new Informer<Pod>({ client: memberClient, resource: PODS });
    const events = new MemberEvents({
      host: hostClient,
      hostId: HOST_ID,
      member: { name: 'east', client: memberClient, pods },
      hostPod: (node, key) => hostPods.get(`${node} ${key}`),
      hostClaim: (namespace, name, uid) => claims.get(`${namespace}/${name} ${uid}`),
      podEvents: () => podEvents,
      mayWrite: () => {
        asked += 1;
        return mayWrite;
      },
      metrics,
      logger: pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) }),
      clock: () => now,
    });
    const stop = new AbortController();
    const ended = Promise.all([pods.run(stop.signal), events.run(stop.signal)]);
    const end = async (): Promise<void> => {
      stop.abort();
      await ended;
    };
    stops.push(end);
    return { end, events };
  }

  it('of a pod that starts well appear only where all are wanted, as soon as they are', async () => {
    const { events } = start();
    const started = { type: 'Normal', reason: 'Started', message: 'Started container app' };
    say('e1', started);
    say('e2');
    await until(() => written().length === 1, 'the warning is written');
    expect(written()[0]).toMatchObject({ reason: 'FailedMount' });
    podEvents = 'All';
    events.restart();
    await until(() => written().length === 2, 'the other one is written too');
    expect(written()[1]).toMatchObject({ type: 'Normal', reason: 'Started', involvedObject: { uid: 'host-web-0' } });
    podEvents = 'Problems';
    events.restart();
    say('e3', started);
    say('e4', { reason: 'Other' });
    await until(() => written().length === 3, 'a warning is written');
    expect(written()[2]).toMatchObject({ reason: 'Other' });
  });

  it('appear on the host pod', async () => {
    start();
    say('e1');
    await until(() => written().length === 1, 'the Event is written');
    expect(written()[0]).toMatchObject({
      metadata: { namespace: 'shop' },
      involvedObject: { kind: 'Pod', name: 'web-0', uid: 'host-web-0' },
      reason: 'FailedMount',
      message: 'no such volume',
      count: 1,
    });
    await until(async () => (await outcome('created')) === 1, 'it is counted');
  });

  it('are found when they were there before, unless they are old', async () => {
    say('e1');
    say('e2', { reason: 'Old', lastTimestamp: '2026-11-21T07:00:00Z' });
    start();
    await until(() => written().length === 1, 'the Event is written');
    say('e3', { reason: 'Marker' });
    await until(() => written().length === 2, 'the marker is written');
    expect(written().map(({ reason }) => reason)).toEqual(['FailedMount', 'Marker']);
  });

  it('of success, of strangers and about other things are not told, and appear in no log', async () => {
    addMemberPod('stranger', 'web-0', { labels: {}, annotations: {} });
    start();
    say('s1', { message: 'SECRET-OF-STRANGER' }, 'stranger');
    say('s2', { type: 'Normal', reason: 'Started' });
    say('s3', { type: 'Normal', reason: 'AddedInterface' });
    say('s4', { involvedObject: { kind: 'Node', name: 'n', uid: 'u' } });
    say('s5', { involvedObject: { kind: 'Pod', namespace: 'shop', name: 'web-0', uid: 'of-a-former-pod' } });
    say('e1', { reason: 'Marker' });
    await until(() => written().length > 0, 'the marker is written');
    expect(written().map(({ reason }) => reason)).toEqual(['Marker']);
    now += 20_000;
    await until(() => lines.length > 0, 'something is logged');
    expect(lines.join('')).not.toContain('SECRET-OF-STRANGER');
    expect(writes()).toHaveLength(1);
  });

  it('of a pod whose marks name a host pod that is another are not told', async () => {
    const stolen = hostPod({ metadata: { name: 'victim', uid: 'host-victim' } });
    hostPods.set('east shop/victim', stolen);
    addMemberPod('thief', 'victim');
    start();
    say('t1', { message: 'FAKE' }, 'thief');
    say('e1');
    await until(() => written().length > 0, 'the honest one is written');
    expect(written().map(({ message }) => message)).toEqual(['no such volume']);
  });

  it('wait for the caches to know their pod', async () => {
    start();
    await until(() => member.requests('GET', '/events').some(({ query }) => query['watch'] === 'true'), 'watching');
    addMemberPod('late', 'late');
    say('e1', {}, 'late');
    say('e2', { reason: 'Marker' });
    await until(() => written().length === 1, 'the marker is written');
    hostPods.set('east shop/late', hostPod({ metadata: { name: 'late', uid: 'host-late' } }));
    await until(() => written().length === 2, 'the early one is written');
    expect(written()[1]).toMatchObject({ involvedObject: { uid: 'host-late' } });
  });

  it('are written once, whoever starts anew: nothing is written when the host has them', async () => {
    const { end: stop } = start();
    say('e1', { count: 4 });
    await until(() => written().length === 1, 'the Event is written');
    await stop();
    const before = writes().length;
    start();
    await until(() => host.requests('GET', written()[0]?.metadata.name).length === 1, 'the host is asked');
    say('e2', { reason: 'Marker' });
    await until(() => written().length === 2, 'the marker is written');
    expect(writes()).toHaveLength(before + 1);
    await until(async () => (await outcome('present')) === 1, 'it is counted');
  });

  it('that went on while nobody looked raise the count', async () => {
    const { end: stop } = start();
    say('e1');
    await until(() => written().length === 1, 'the Event is written');
    await stop();
    member.edit(`${MEMBER_EVENTS}/e1`, { count: 7, lastTimestamp: '2026-11-21T08:05:00Z' });
    start();
    await until(() => written()[0]?.count === 7, 'the count is raised');
    expect(written()).toHaveLength(1);
  });

  it('that repeat are counted, not more often than every ten seconds', async () => {
    start();
    say('e1');
    await until(() => written().length === 1, 'the Event is written');
    for (const count of [2, 3, 4]) member.edit(`${MEMBER_EVENTS}/e1`, { count });
    say('e2', { reason: 'Marker' });
    await until(async () => (await outcome('created')) === 2, 'the marker is written');
    expect(written()[0]?.count).toBe(1);
    now += 10_000;
    member.edit(`${MEMBER_EVENTS}/e1`, { count: 5 });
    await until(() => written()[0]?.count === 5, 'the count is raised');
    expect(host.requests('PATCH')).toHaveLength(1);
  });

  it('start anew on a host that has forgotten them', async () => {
    start();
    say('e1');
    await until(async () => (await outcome('created')) === 1, 'the Event is written');
    host.delete(`${HOST_EVENTS}/${written()[0]?.metadata.name ?? ''}`);
    now += 10_000;
    member.edit(`${MEMBER_EVENTS}/e1`, { count: 2 });
    await until(() => written()[0]?.count === 2, 'it is there again');
  });

  it('of one noisy pod do not crowd out others', async () => {
    addPod('web-1');
    start();
    for (let index = 0; index < 40; index += 1) say(`n${index}`, { reason: 'Noise' });
    say('e1', { reason: 'Marker' }, 'web-1');
    await until(() => written().some(({ reason }) => reason === 'Marker'), 'the other pod is heard');
    await until(() => written().length === 16, 'the budget is used');
    await until(async () => (await outcome('rate-limited')) === 25, 'the others are counted');
  });

  describe('about claims', () => {
    const pending = (name: string, phase = 'Pending'): Pod =>
      hostPod({ metadata: { name, uid: `host-${name}` }, status: { phase } } as Partial<Pod>);
    const sayOfClaim = (name: string, more: object = {}): void =>
      say(name, {
        involvedObject: { kind: 'PersistentVolumeClaim', namespace: 'shop', name: 'db', uid: 'claim-uid' },
        reason: 'ProvisioningFailed',
        message: 'no room for disks',
        source: { component: 'persistentvolume-controller' },
        ...more,
      });
    const own = (pods: Pod[]): unknown =>
      claims.set('shop/db claim-uid', {
        claim: { metadata: { namespace: 'shop', name: 'data', uid: 'host-claim' } },
        pods,
      });

    it('appear on the claim, and on the pods that wait for it', async () => {
      own([pending('waits'), pending('runs', 'Running')]);
      start();
      sayOfClaim('c1');
      await until(() => written().length === 2, 'both are written');
      expect(written()).toMatchObject([
        {
          involvedObject: { kind: 'PersistentVolumeClaim', namespace: 'shop', name: 'data', uid: 'host-claim' },
          type: 'Warning',
          reason: 'ProvisioningFailed',
          message: 'Cluster "east": no room for disks',
        },
        {
          involvedObject: { kind: 'Pod', name: 'waits', uid: 'host-waits' },
          message: 'Cluster "east", claim "data": no room for disks',
        },
      ]);
      sayOfClaim('c2', { reason: 'Marker' });
      await until(() => written().length === 4, 'the marker is written');
      expect(written().some(({ involvedObject }) => involvedObject.uid === 'host-runs')).toBe(false);
    });

    it('of strangers, and those that every claim causes, are not told', async () => {
      own([]);
      start();
      sayOfClaim('s1', {
        involvedObject: { kind: 'PersistentVolumeClaim', namespace: 'shop', name: 'db', uid: 'other' },
      });
      sayOfClaim('s2', { type: 'Normal', reason: 'WaitForFirstConsumer' });
      sayOfClaim('s3', { type: 'Normal', reason: 'ExternalProvisioning' });
      sayOfClaim('s4', { type: 'Normal', reason: 'ProvisioningSucceeded' });
      sayOfClaim('c1', { type: 'Normal', reason: 'ExternalProvisioning', count: 2 });
      sayOfClaim('c2', { type: 'Normal', reason: 'FailedBinding' });
      await until(() => written().length === 2, 'what explains something is written');
      expect(
        written()
          .map(({ reason }) => reason)
          .toSorted(),
      ).toEqual(['ExternalProvisioning', 'FailedBinding']);
    });

    it('are told to few of many pods, counted, and not more often than every ten seconds', async () => {
      own(Array.from({ length: 50 }, (_, index) => pending(`p${String(index)}`)));
      start();
      sayOfClaim('c1');
      await until(async () => (await outcome('created')) === 6, 'the claim and five pods are told');
      for (const count of [2, 3]) member.edit(`${MEMBER_EVENTS}/c1`, { count });
      sayOfClaim('c2', { reason: 'Marker' });
      await until(async () => (await outcome('created')) === 12, 'the marker is written');
      expect(host.requests('PATCH')).toHaveLength(0);
      now += 10_000;
      member.edit(`${MEMBER_EVENTS}/c1`, { count: 4 });
      await until(() => written().filter(({ count }) => count === 4).length === 6, 'the counts are raised');
    });
  });

  it('wait for a host that is away', async () => {
    let away = true;
    host.fault = ({ method }) => (method === 'POST' && away ? { code: 503 } : undefined);
    start();
    say('e1');
    await until(() => host.requests('POST').length >= 2, 'it is tried again');
    away = false;
    await until(() => written().length === 1, 'the Event is written');
  });

  it('are not written while that is not allowed', async () => {
    mayWrite = false;
    start();
    say('e1');
    say('e2');
    await until(() => asked > 1, 'it is asked whether writing is allowed');
    expect(writes()).toEqual([]);
  });

  it('that the host refuses are given up', async () => {
    host.fault = ({ method }) => (method === 'POST' ? { code: 403, reason: 'Forbidden' } : undefined);
    start();
    say('e1');
    await until(() => host.requests('POST').length === 1, 'it is tried');
    say('e2');
    await until(() => host.requests('POST').length === 2, 'the next is tried');
    await until(async () => (await outcome('refused')) === 2, 'both are counted');
  });

  it('are followed namespace by namespace where only that is allowed', async () => {
    member.fault = ({ path }) => (path === '/api/v1/events' ? { code: 403, reason: 'Forbidden' } : undefined);
    start();
    say('e1');
    await until(() => written().length === 1, 'the Event is written');
    expect(member.requests('GET', '/namespaces/shop/events').length).toBeGreaterThan(0);
    expect(member.requests('GET', '/api/v1/events').every(({ query }) => query['watch'] === undefined)).toBe(true);
  });
});
