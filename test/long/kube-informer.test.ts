import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startCluster, type Cluster } from '../../hack/cluster.ts';
import { Workspace } from '../../hack/workspace.ts';
import { KubeClient } from '../../src/kube/client.ts';
import { staticAccess } from '../../src/kube/static-access.ts';
import { isAlreadyExists, isConflict, isNotFound } from '../../src/kube/errors.ts';
import { parseJson, stringifyJson } from '../../src/kube/json.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { DEFAULT_TIMINGS } from '../../src/kube/reflector-timings.ts';
import { CONFIG_MAPS, type Resource } from '../../src/kube/resource.ts';
import { create, get, list, patch, remove, replace } from '../../src/kube/verbs.ts';
import { FaultProxy, type Fault, type ProxiedRequest } from '../fixtures/fault-proxy.ts';
import { eventually, follow, type Followed } from '../fixtures/followed-collection.ts';

/** More than a page, so that paged lists have a second one. */
const CROWD = 600;
const TIMINGS = { silenceMs: 3_000, quietSeconds: [2, 2], proofSeconds: 1, startMs: 3_000 } as const;

const workspace = Workspace.create();
afterAll(() => workspace.close());

const isWatch = (request: ProxiedRequest): boolean => request.watch && !request.query.has('sendInitialEvents');
/** Not counting the question how far the collection has come. */
const isListing = (request: ProxiedRequest): boolean =>
  (!request.watch && request.query.get('limit') !== '1') || request.query.has('sendInitialEvents');

describe.each([
  ['streamed', {}],
  ['paged', { 'feature-gates': 'WatchList=false' }],
])('a real API server with %s lists', (lists, apiServerFlags) => {
  let cluster: Cluster;
  let direct: KubeClient;
  let proxy: FaultProxy;
  let followed: Followed;
  let serial = 0;

  beforeAll(async () => {
    cluster = await startCluster(workspace, { name: `informer-${lists}`, components: 'api-only', apiServerFlags });
    const { server, ca, cert, key } = cluster.adminAccess;
    direct = new KubeClient({ cluster: 'direct', ...staticAccess({ endpoint: { server, ca }, cert, key }) });
    await Promise.all(Array.from({ length: CROWD }, (_, i) => put(`crowd-${i}`)));
  });
  afterAll(async () => {
    await direct.close();
    await cluster.stop();
  });
  beforeEach(async () => {
    proxy = await FaultProxy.start(cluster.adminAccess);
    followed = follow(staticAccess({ endpoint: { server: proxy.url } }), { timings: TIMINGS });
    await followed.informer.whenSynced(AbortSignal.timeout(10_000));
  });
  afterEach(async () => {
    try {
      await followed.stop();
    } finally {
      await proxy.close();
    }
  });

  function put(name: string): Promise<KubeObject> {
    const how = { type: 'apply', fieldManager: 'test', force: true } as const;
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { serial: String(serial++) } };
    return patch(direct, CONFIG_MAPS, { namespace: 'default', name }, body, how);
  }

  /** Returns the UID that is gone. */
  async function drop(name: string): Promise<string> {
    const ref = { namespace: 'default', name };
    const { uid } = (await put(name)).metadata;
    await remove(direct, CONFIG_MAPS, ref, { uid });
    return String(uid);
  }

  /** Creates, changes, deletes and recreates. Returns the UIDs that are really gone. */
  async function disturb(): Promise<string[]> {
    await put('changing');
    await put(`crowd-${serial % CROWD}`);
    const gone = await drop('recreated');
    await put('recreated');
    return [gone, await drop(`short-lived-${serial}`)];
  }

  /** The cache equals what the API server says now, read without the proxy. */
  async function converged(): Promise<void> {
    const { items } = await list(direct, CONFIG_MAPS, { namespace: 'default' });
    const truth = items.map((o) => `${o.metadata.name}@${o.metadata.resourceVersion}`).toSorted();
    const same = (): boolean => JSON.stringify(followed.state()) === JSON.stringify(truth);
    const differences = (): string[] => {
      const cache = followed.state();
      return [...truth.filter((o) => !cache.includes(o)), ...cache.filter((o) => !truth.includes(o))];
    };
    await eventually(same, differences, 20_000);
  }

  const faults: [string, Fault, ((request: ProxiedRequest) => boolean)?][] = [
    ['a reset before the answer', { kind: 'reset', when: 'before' }],
    ['a reset within the answer', { kind: 'reset', when: 'after' }],
    ['latency', { kind: 'slow', ms: 500 }],
    ['429 with Retry-After', { kind: 'status', code: 429, reason: 'TooManyRequests', retryAfterSeconds: 1 }],
    ['500', { kind: 'status', code: 500, reason: 'InternalError' }],
    ['503', { kind: 'status', code: 503, reason: 'ServiceUnavailable' }],
    ['a half-open connection', { kind: 'hang' }],
    ['a silent watch', { kind: 'silence', afterLines: 0 }, isWatch],
    ['a watch that goes silent', { kind: 'silence', afterLines: 3 }, isWatch],
    ['truncated JSON', { kind: 'truncate' }, isListing],
    ['200 with {}', { kind: 'body', body: '{}' }],
    ['200 with HTML', { kind: 'body', body: '<html>Sign in</html>\n', contentType: 'text/html' }],
    ['410 as HTTP', { kind: 'status', code: 410, reason: 'Expired' }],
    ['410 as an event', { kind: 'gone-event', afterLines: 1 }, isWatch],
    ['duplicate events', { kind: 'duplicate' }, isWatch],
    ['events replayed late', { kind: 'duplicate', late: true }, isWatch],
    ['reordered events', { kind: 'reorder' }, isWatch],
  ];

  it.each(faults)('%s: the cache equals the API, no delete is missed or invented', async (_name, fault, match) => {
    const gone = new Set<string>();
    const rule = proxy.inject(fault, match, 2);
    for (let round = 0; rule.hits < 2 && round < 100; round++) {
      if (fault.kind === 'truncate') {
        proxy.inject({ kind: 'status', code: 410, reason: 'Expired' }, isWatch, 1); // makes it list
      }
      if (round % 3 === 0) {
        proxy.resetConnections();
      }
      for (const uid of await disturb()) {
        gone.add(uid);
      }
    }
    expect(rule.hits).toBe(2);
    proxy.clear();
    for (const uid of await disturb()) {
      gone.add(uid);
    }
    await converged();
    for (const uid of followed.deletedUids) {
      expect(gone).toContain(uid);
    }
  });

  it('an older list served again is not believed', async () => {
    const recording = proxy.record();
    const second = follow(staticAccess({ endpoint: { server: proxy.url } }), { timings: TIMINGS });
    await second.informer.whenSynced(AbortSignal.timeout(10_000));
    proxy.record();
    await second.stop();
    await drop('before-replay');
    await put('after-recording');
    await converged();
    proxy.inject({ kind: 'replay', recording }, isListing);
    proxy.inject({ kind: 'status', code: 410, reason: 'Expired' }, isWatch, 1);
    proxy.resetConnections();
    await eventually(
      () => followed.informer.problem?.includes('resourceVersion') === true,
      () => followed.informer.problem,
    );
    expect(followed.state().some((o) => o.startsWith('after-recording@'))).toBe(true);
    proxy.clear();
    await drop('after-recording');
    await converged();
    expect(await followed.metric('kube_informer_lists_refused_total', { reason: 'backward' })).toBeGreaterThan(0);
  });

  it('a process that stands still is noticed, and what it did not send comes after', async () => {
    const apiServer = cluster.component('kube-apiserver');
    apiServer.signal('SIGSTOP');
    try {
      await eventually(
        () => followed.informer.problem !== undefined,
        () => followed.informer.staleMs(),
        20_000,
      );
    } finally {
      apiServer.signal('SIGCONT');
    }
    await disturb();
    await converged();
  });

  it('a restarted API server is followed without a restart of ours', async () => {
    await disturb();
    const apiServer = cluster.component('kube-apiserver');
    await apiServer.stop('SIGKILL');
    await eventually(
      () => followed.informer.problem !== undefined,
      () => followed.log.length,
    );
    apiServer.restart();
    await cluster.whenReady();
    const before = followed.deletedUids.size;
    const gone = await disturb();
    await converged();
    expect([...followed.deletedUids].slice(before).every((uid) => gone.includes(uid))).toBe(true);
  });

  it('a quiet collection costs one small request a turn and stays fresh', async () => {
    const before = proxy.seen.length;
    await eventually(
      () => proxy.seen.length >= before + 3,
      () => proxy.seen.slice(before),
    );
    const requests = proxy.seen.slice(before);
    expect(requests.filter(isListing)).toEqual([]);
    expect(followed.informer.staleMs()).toBeLessThan(4_000);
  });
});

describe('a real API server', () => {
  let cluster: Cluster;
  let client: KubeClient;

  beforeAll(async () => {
    cluster = await startCluster(workspace, { name: 'verbs', components: 'api-only' });
    const { server, ca, cert, key } = cluster.adminAccess;
    client = new KubeClient({ cluster: 'verbs', ...staticAccess({ endpoint: { server, ca }, cert, key }) });
  });
  afterAll(async () => {
    await client.close();
    await cluster.stop();
  });

  it('gives back int64 as it was written', async () => {
    const resource: Resource = {
      group: '',
      version: 'v1',
      kind: 'PodTemplate',
      plural: 'podtemplates',
      namespaced: true,
    };
    const object = parseJson(
      '{"metadata":{"name":"numbers","namespace":"default"},"template":{"metadata":{"labels":{"a":"b"}},' +
        '"spec":{"containers":[{"name":"c","image":"i"}],"terminationGracePeriodSeconds":9223372036854775807}}}',
    );
    const created = await create(client, resource, object as KubeObject);
    expect(stringifyJson(created)).toContain('"terminationGracePeriodSeconds":9223372036854775807');
    const ref = { namespace: 'default', name: 'numbers' };
    expect(stringifyJson(await get(client, resource, ref))).toContain('9223372036854775807');
    created.metadata.labels = { changed: 'yes' };
    await replace(client, resource, created);
    const { items } = await list(client, resource, { labelSelector: 'changed=yes' });
    expect(stringifyJson(items)).toContain('"terminationGracePeriodSeconds":9223372036854775807');
  });

  it('says in typed errors what it refuses', async () => {
    const map = (name: string): KubeObject => ({ metadata: { name, namespace: 'default' } });
    const ref = { namespace: 'default', name: 'errors' };
    const failure = (promise: Promise<unknown>): Promise<unknown> =>
      promise.then(
        () => undefined,
        (e: unknown) => e,
      );
    expect(isNotFound(await failure(get(client, CONFIG_MAPS, ref)))).toBe(true);
    const first = await create(client, CONFIG_MAPS, map('errors'));
    expect(isAlreadyExists(await failure(create(client, CONFIG_MAPS, map('errors'))))).toBe(true);
    await patch(client, CONFIG_MAPS, ref, { data: { a: '1' } }, { type: 'merge' });
    expect(isConflict(await failure(replace(client, CONFIG_MAPS, first)))).toBe(true);
    expect(isConflict(await failure(remove(client, CONFIG_MAPS, ref, { uid: 'another' })))).toBe(true);
    expect(await failure(create(client, CONFIG_MAPS, map('Not A Name')))).toMatchObject({
      code: 422,
      reason: 'Invalid',
    });
    await remove(client, CONFIG_MAPS, ref, { uid: String(first.metadata.uid) });
    expect(isNotFound(await failure(remove(client, CONFIG_MAPS, ref)))).toBe(true);
  });

  it('replaces a silently dead watch within a minute, with the times it ships with', async () => {
    const proxy = await FaultProxy.start(cluster.adminAccess);
    // The watch goes silent right after the initial state, as when a firewall forgets the connection.
    const { items } = await list(client, CONFIG_MAPS, { namespace: 'default' });
    proxy.inject({ kind: 'silence', afterLines: items.length + 1 }, isListing, 1);
    const { quietSeconds, silenceMs, proofSeconds, startMs, busySeconds } = DEFAULT_TIMINGS;
    const timings = { quietSeconds, silenceMs, proofSeconds, startMs, busySeconds };
    const followed = follow(staticAccess({ endpoint: { server: proxy.url } }), { timings });
    try {
      await followed.informer.whenSynced(AbortSignal.timeout(10_000));
      const ref = { namespace: 'default', name: 'unheard' };
      await create(client, CONFIG_MAPS, { metadata: ref });
      await eventually(
        () => followed.informer.get('default/unheard') !== undefined,
        () => followed.informer.staleMs(),
        60_000,
      );
    } finally {
      await followed.stop();
      await proxy.close();
    }
  });

  it('answers streams, text and raw connections', async () => {
    expect(await client.text({ path: '/readyz' })).toBe('ok');
    const stream = await client.stream({ path: '/version' });
    const chunks = (await stream.body.toArray()) as Buffer[];
    expect(Buffer.concat(chunks).toString()).toContain('gitVersion');
    await expect(client.stream({ path: '/nowhere' })).rejects.toMatchObject({ code: 404 });
    const { socket, host } = await client.dial();
    socket.write(`GET /version HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    const answer = ((await socket.toArray()) as Buffer[]).toString();
    expect(answer).toMatch(/^HTTP\/1\.1 200 OK/);
  });
});
