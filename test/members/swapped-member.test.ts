import type { IncomingMessage, ServerResponse } from 'node:http';
import { pino } from 'pino';
import { afterEach, describe, expect, test } from 'vitest';
import { createAuthority, issueClient, issueServing, kubeconfigYaml } from '../../hack/pki.ts';
import { until } from '../../hack/until.ts';
import { parseMemberCluster } from '../../src/api/member-cluster.ts';
import { OBSERVER_AGENT, type MemberConnection } from '../../src/members/connection.ts';
import { MemberObserver } from '../../src/members/member-observer.ts';
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
  const server = await startHttpServer((req, res) => {
    const isObserver = req.headers['user-agent'] === OBSERVER_AGENT;
    answer((isObserver ? observersTo : undefined) ?? leadsTo, req, res);
  }, serving);
  const client = await issueClient(ca, 'spillway');
  const kubeconfig = kubeconfigYaml({ server: server.url, ca: ca.cert, user: 'spillway', client });
  const api = new MemoryApi();
  api.put('/api/v1/namespaces/spillway-system/secrets/east', {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { namespace: 'spillway-system', name: 'east' },
    data: { kubeconfig: Buffer.from(kubeconfig).toString('base64') },
  });
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
    lead: (to: Cluster): void => {
      leadsTo = to;
      server.server.closeAllConnections();
    },
    leadObservers: (to: Cluster): void => {
      observersTo = to;
    },
    current: () => running.findLast(({ signal }) => !signal.aborted)?.connection,
  };
}

type World = Awaited<ReturnType<typeof world>>;

function act({ common, start, signal }: World): Promise<void> {
  const runner = new MemberRunner(RAW, {
    ...common,
    lease: { held: true, run: async (held) => await held.onAcquired(held.signal) },
    startScope: (_member, connection, ends) => start(connection, ends),
    startObserved: undefined,
  });
  return runner.run(signal);
}

function observe({ common, start, signal }: World): Promise<void> {
  const observer = new MemberObserver({ ...common, name: 'east', start: (_member, ...rest) => start(...rest) });
  const parsed = parseMemberCluster(RAW);
  if ('problems' in parsed) throw new Error(parsed.problems.join('; '));
  observer.update(parsed.member);
  return observer.run(signal);
}

describe.each([
  ['who acts for a member', act],
  ['who observes a member', observe],
])('%s', (_who, begin) => {
  test('believes nothing that another cluster said in its place, once it is back', async () => {
    const all = await world(OTHER);
    all.run(begin(all));
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
});

test('who acts for a member writes nothing there once its own observer was answered by another cluster', async () => {
  const all = await world(MEMBER);
  const { common, start, signal } = all;
  const soon = { intervalMs: 5, timeoutMs: 15_000 };
  const doubted = new Set<string | undefined>();
  let observes = false;
  let isHolder = false;
  const runner = new MemberRunner(RAW, {
    ...common,
    lease: {
      get held() {
        return isHolder;
      },
      run: async (held) => {
        await until('it gets the lease', () => isHolder, soon);
        await held.onAcquired(held.signal);
      },
    },
    startScope: (_member, connection, ends) => {
      connection.onChange(() => !connection.identityOk() && doubted.add(connection.observedIdentity));
      return { ...start(connection, ends), roomsKnown: () => false };
    },
    startObserved: (_member, _connection, ends) => {
      observes = true;
      return idleScope(ends);
    },
  });
  all.run(runner.run(signal));
  await until('it observes', () => observes, soon);
  isHolder = true;
  await until('it acts', () => all.current()?.identityOk() === true, soon);
  all.leadObservers(OTHER);
  await until('it is told', () => doubted.has(OTHER.uid), soon);
  await until('its own look says otherwise', () => all.current()?.identityOk() === true, soon);
});
