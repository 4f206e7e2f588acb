import type { IncomingMessage, ServerResponse } from 'node:http';
import { pino } from 'pino';
import { afterEach, describe, expect, test } from 'vitest';
import { createAuthority, issueClient, issueServing, kubeconfigYaml } from '../../hack/pki.ts';
import { until } from '../../hack/until.ts';
import { CONFIRM_IDENTITY_ANNOTATION } from '../../src/api/marks.ts';
import { MEMBER_CLUSTERS, parseMemberCluster } from '../../src/api/member-cluster.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { OBSERVER_AGENT, type MemberConnection } from '../../src/members/connection.ts';
import { MemberObserver, type MemberObserverOptions } from '../../src/members/member-observer.ts';
import type { ClusterSeen } from '../../src/members/member-link.ts';
import { MemberRunner } from '../../src/members/member-runner.ts';
import { idleScope } from '../fixtures/idle-scope.ts';
import { sendJson, startHttpServer } from '../fixtures/http-server.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { serveMemoryApi } from '../fixtures/memory-api-server.ts';

/** What is known of a member after another cluster has answered at its address for a while. */

const ended: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ended.splice(0).toReversed()) await end();
});

interface Cluster {
  uid: string;
  pod: string;
}
const MEMBER: Cluster = { uid: 'pinned', pod: 'ours' };
const OTHER: Cluster = { uid: 'another', pod: 'theirs' };
const RAW = {
  apiVersion: 'spillway.dev/v1alpha1',
  kind: 'MemberCluster',
  metadata: { name: 'east', uid: 'u', generation: 1, finalizers: ['spillway.dev/leaving'] },
  spec: {
    credentials: { secretRef: { namespace: 'spillway-system', name: 'east' } },
    probe: { periodSeconds: 1, timeoutSeconds: 1 },
  },
  status: { identity: MEMBER.uid },
};

const pinnedTo = ({ uid }: Cluster) => ({ ...RAW, status: { identity: uid } });
const MEMBER_PATH = `/apis/${MEMBER_CLUSTERS.group}/${MEMBER_CLUSTERS.version}/memberclusters/east`;

/** Each has one pod, and nothing happens there: watches say nothing. */
function answer({ uid, pod }: Cluster, req: IncomingMessage, res: ServerResponse): void {
  const url = new URL(req.url ?? '/', 'http://x');
  const kinds = { pods: 'Pod', nodes: 'Node', namespaces: 'Namespace' };
  const kind = Object.entries(kinds).find(([plural]) => url.pathname.endsWith(`/${plural}`))?.[1];
  if (url.pathname.endsWith('/kube-system'))
    sendJson(res, 200, { kind: 'Namespace', metadata: { name: 'kube-system', uid } });
  else if (kind === undefined || url.searchParams.has('sendInitialEvents')) {
    sendJson(res, 400, { kind: 'Status', status: 'Failure', code: 400, reason: 'BadRequest', message: 'not here' });
  } else if (url.searchParams.has('watch')) {
    res.writeHead(200, { 'content-type': 'application/json' }).flushHeaders();
  } else {
    const metadata = { name: pod, namespace: 'shop', uid: pod, resourceVersion: '7' };
    const items = kind === 'Pod' ? [{ kind, apiVersion: 'v1', metadata, spec: { containers: [] }, status: {} }] : [];
    sendJson(res, 200, { kind: `${kind}List`, apiVersion: 'v1', metadata: { resourceVersion: '7' }, items });
  }
}

/** The member, a host that knows how to reach it, and what runs for it; `lead` says which cluster the address leads to. */
async function world(first: Cluster) {
  const ca = await createAuthority('test');
  const serving = await issueServing(ca, 'api', ['127.0.0.1']);
  let leadsTo = first;
  let observersTo: Cluster | undefined;
  /** Connections lead to where the address led when they were made. */
  const leads = new WeakMap<object, Cluster>();
  const serve = () =>
    startHttpServer((req, res) => {
      const isObserver = req.headers['user-agent'] === OBSERVER_AGENT;
      const to = leads.get(req.socket) ?? leadsTo;
      leads.set(req.socket, to);
      answer((isObserver ? observersTo : undefined) ?? to, req, res);
    }, serving);
  const server = await serve();
  const client = await issueClient(ca, 'spillway');
  const api = new MemoryApi();
  const giveAddress = ({ url }: { url: string }): void => {
    const kubeconfig = kubeconfigYaml({ server: url, ca: ca.cert, user: 'spillway', client });
    api.put('/api/v1/namespaces/spillway-system/secrets/east', {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { namespace: 'spillway-system', name: 'east' },
      data: { kubeconfig: Buffer.from(kubeconfig).toString('base64') },
    });
  };
  giveAddress(server);
  api.put(MEMBER_PATH, RAW);
  const host = await serveMemoryApi(api);
  const stop = new AbortController();
  const running: { connection: MemberConnection; signal: AbortSignal }[] = [];
  /** What was known whenever there was reason to look while the member was trusted. */
  const believed = new Set<string>();
  const start = (connection: MemberConnection, signal: AbortSignal) => {
    running.push({ connection, signal });
    connection.onChange(() => {
      if (signal.aborted || !connection.identityOk()) return;
      for (const { metadata } of connection.pods.values()) believed.add(metadata.name);
    });
    return idleScope(signal);
  };
  ended.push(async () => {
    await server.close();
    await host.close();
  });
  return {
    common: { host: host.client('host'), hostId: 'h', logger: pino({ level: 'silent' }) },
    start,
    run: (work: Promise<void>) => ended.push(async () => (stop.abort(), await work)),
    signal: stop.signal,
    believed,
    url: server.url,
    lead: (to: Cluster): void => {
      leadsTo = to;
      server.server.closeAllConnections();
    },
    /** The other one lives, and keeps the connections that it has. */
    leadNewConnections: (to: Cluster): void => {
      leadsTo = to;
    },
    leadObservers: (to: Cluster): void => {
      observersTo = to;
    },
    /** Another address of the member; whoever knows the Secret already does not hear of it. */
    move: async (): Promise<void> => {
      api.fault = ({ path, query }) =>
        path.includes('/secrets') && query['watch'] === 'true' && query['sendInitialEvents'] === undefined
          ? { code: 503 }
          : undefined;
      host.cutWatches();
      const other = await serve();
      ended.push(() => other.close());
      giveAddress(other);
    },
    /** The MemberCluster as the host has it, with that identity confirmed. */
    confirmed: ({ uid }: Cluster) => {
      const object = { ...RAW, ...api.objects.get(MEMBER_PATH) };
      return { ...object, metadata: { ...object.metadata, annotations: { [CONFIRM_IDENTITY_ANNOTATION]: uid } } };
    },
    pinnedInHost: () => (api.objects.get(MEMBER_PATH)?.['status'] as { identity?: string } | undefined)?.identity,
    current: () => running.findLast(({ signal }) => !signal.aborted)?.connection,
  };
}

type World = Awaited<ReturnType<typeof world>>;

/** What runs for the member; `update`: the MemberCluster is another one now. */
interface Running {
  done: Promise<void>;
  update: (raw: KubeObject) => void;
}

function act({ common, start, signal }: World): Running {
  const runner = new MemberRunner(RAW, {
    ...common,
    lease: { held: true, run: async (held) => await held.onAcquired(held.signal) },
    startScope: (_member, connection, ends) => start(connection, ends),
    startObserved: undefined,
  });
  return { done: runner.run(signal), update: (raw) => runner.update(raw) };
}

function observe({ common, start, signal }: World, anotherSeen?: MemberObserverOptions['anotherSeen']): Running {
  const observer = new MemberObserver({
    ...common,
    name: 'east',
    start: (_member, ...rest) => start(...rest),
    ...(anotherSeen === undefined ? {} : { anotherSeen }),
  });
  const update = (raw: KubeObject): void => {
    const parsed = parseMemberCluster(raw);
    if ('problems' in parsed) throw new Error(parsed.problems.join('; '));
    observer.update(parsed.member);
  };
  update(RAW);
  return { done: observer.run(signal), update };
}

const SOON = { intervalMs: 5, timeoutMs: 15_000 };

describe.each([
  ['who acts for a member', act],
  ['who observes a member', (all: World) => observe(all)],
])('%s', (_who, begin) => {
  test('believes nothing that another cluster said in its place, once it is back', async () => {
    const all = await world(OTHER);
    all.run(begin(all).done);
    await until('the other one is known', () => all.current()?.observedIdentity === OTHER.uid, { intervalMs: 5 });
    await until('its pods are known', () => all.current()?.pods.get('shop/theirs'), { intervalMs: 5 });
    all.lead(MEMBER);
    const connection = await until(
      'the member is back',
      () => {
        const now = all.current();
        return now?.identityOk() === true && now.synced() && now;
      },
      { intervalMs: 5, timeoutMs: 15_000 },
    );
    expect([...connection.pods.values()].map(({ metadata }) => metadata.name)).toEqual(['ours']);
    expect([...all.believed]).not.toContain('theirs');
  });

  test('finds the member again, too, where the other cluster lives and keeps its connections', async () => {
    const all = await world(MEMBER);
    all.run(begin(all).done);
    await until('it is known', () => all.current()?.identityOk() === true, SOON);
    all.lead(OTHER);
    await until('the other one is known', () => all.current()?.observedIdentity === OTHER.uid, SOON);
    all.leadNewConnections(MEMBER);
    await until('the member is back', () => all.current()?.identityOk() === true, SOON);
  });
});

test('who acts for a member trusts no connection that has led to two clusters when the other one is confirmed', async () => {
  const all = await world(MEMBER);
  const { done, update } = act(all);
  all.run(done);
  const first = await until('it acts', () => all.current()?.identityOk() === true && all.current(), SOON);
  await until('its pods are known', () => first.pods.get('shop/ours'), SOON);
  all.lead(OTHER);
  await until('the other one is known', () => first.observedIdentity === OTHER.uid, SOON);
  update(all.confirmed(OTHER));
  await until('it is pinned', () => all.pinnedInHost() === OTHER.uid, SOON);
  const second = await until('it acts', () => all.current() !== first && all.current(), SOON);
  await until('it is trusted', () => second.identityOk() && second.synced(), SOON);
  expect([first.observedIdentity, first.identityOk()]).toEqual([OTHER.uid, false]);
  expect([...second.pods.values()].map(({ metadata }) => metadata.name)).toEqual(['theirs']);
});

test('who observes a member connects anew when another cluster is pinned, and believes nothing of the former', async () => {
  const all = await world(MEMBER);
  const { done, update } = observe(all);
  all.run(done);
  const first = await until('it is known', () => all.current()?.identityOk() === true && all.current(), SOON);
  update(pinnedTo(OTHER));
  const second = await until('it connects anew', () => all.current() !== first && all.current(), SOON);
  await until('the former one answers', () => second.observedIdentity === MEMBER.uid, SOON);
  all.lead(OTHER);
  await until('the other one is known', () => all.current()?.identityOk() === true && all.current()?.synced(), SOON);
  expect([first.identityOk(), second.identityOk(), second === all.current()]).toEqual([false, false, false]);
});

test('who observes a member tells where another cluster answers in its place', async () => {
  const all = await world(MEMBER);
  const told: ClusterSeen[] = [];
  all.run(observe(all, (other) => told.push(other)).done);
  await until('it is known', () => all.current()?.identityOk() === true, SOON);
  all.lead(OTHER);
  await until('that is told', () => told.length > 0, SOON);
  expect(told[0]).toEqual({ identity: OTHER.uid, address: { server: all.url } });
});

/** A replica that observes the member, and acts for it, too, from `acts` on. `doubted`: whom its connection has been seen to lead to, other than the member. */
function both({ common, start, signal }: World) {
  const doubted = new Set<string | undefined>();
  let observer: MemberConnection | undefined;
  let isHolder = false;
  const runner = new MemberRunner(RAW, {
    ...common,
    lease: {
      get held() {
        return isHolder;
      },
      run: async (held) => {
        await until('it gets the lease', () => isHolder, SOON);
        await held.onAcquired(held.signal);
      },
    },
    startScope: (_member, connection, ends) => {
      connection.onChange(() => !connection.identityOk() && doubted.add(connection.observedIdentity));
      return { ...start(connection, ends), roomsKnown: () => false };
    },
    startObserved: (_member, connection, ends) => {
      observer = connection;
      return idleScope(ends);
    },
  });
  const acts = (): void => {
    isHolder = true;
  };
  return { done: runner.run(signal), doubted, acts, observer: () => observer };
}

test('who acts for a member writes nothing there once its own observer was answered by another cluster', async () => {
  const all = await world(MEMBER);
  const { done, doubted, acts, observer } = both(all);
  all.run(done);
  await until('it observes', () => observer(), SOON);
  acts();
  await until('it acts', () => all.current()?.identityOk() === true, SOON);
  all.leadObservers(OTHER);
  await until('it is told', () => doubted.has(OTHER.uid), SOON);
  await until('its own look says otherwise', () => all.current()?.identityOk() === true, SOON);
});

test('who acts for a member at its new address does not care who answers its own observer at the former', async () => {
  const all = await world(MEMBER);
  const { done, doubted, acts, observer } = both(all);
  all.run(done);
  await until('it observes', () => observer()?.identityOk(), SOON);
  await all.move();
  acts();
  const connection = await until('it acts', () => all.current()?.identityOk() === true && all.current(), SOON);
  all.leadObservers(OTHER);
  await until('the observer is misled', () => observer()?.observedIdentity === OTHER.uid, SOON);
  expect([...doubted]).toEqual([]);
  expect([connection.identityOk(), all.current() === connection]).toEqual([true, true]);
});
