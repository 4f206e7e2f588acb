import { pino } from 'pino';
import { afterEach, expect, test } from 'vitest';
import { createAuthority, issueServing } from '../../hack/pki.ts';
import { until } from '../../hack/until.ts';
import type { MemberClusterStatus } from '../../src/api/member-cluster-status.ts';
import { conditionOf } from '../../src/kube/conditions.ts';
import { MemberRunner } from '../../src/members/member-runner.ts';
import { sendJson, startHttpServer } from '../fixtures/http-server.ts';
import { idleScope } from '../fixtures/idle-scope.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { serveMemoryApi } from '../fixtures/memory-api-server.ts';

/** Of which Secret the conditions of a MemberCluster speak. */

const ended: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ended.splice(0).toReversed()) await end();
});

const MEMBER_PATH = '/apis/spillway.dev/v1alpha1/memberclusters/east';
const SECRET_PATH = '/api/v1/namespaces/spillway-system/secrets/east';
const RAW = {
  apiVersion: 'spillway.dev/v1alpha1',
  kind: 'MemberCluster',
  metadata: { name: 'east', uid: 'u', generation: 1, finalizers: ['spillway.dev/leaving'] },
  spec: {
    credentials: { secretRef: { namespace: 'spillway-system', name: 'east' } },
    probe: { periodSeconds: 1, timeoutSeconds: 5 },
  },
  status: { identity: 'pinned' },
};

test('another token counts as tried once the member was asked by it, and what came of that is told', async () => {
  let probes = 0;
  const ca = await createAuthority('test');
  const server = await startHttpServer(
    ({ url = '', headers: { authorization = '' } }, res) => {
      if (!authorization.startsWith('Bearer good'))
        sendJson(res, 401, { kind: 'Status', status: 'Failure', code: 401, reason: 'Unauthorized', message: 'who?' });
      else if (url.endsWith('/kube-system')) {
        probes += 1;
        sendJson(res, 200, { kind: 'Namespace', metadata: { name: 'kube-system', uid: 'pinned' } });
      } else if (url.includes('watch=')) res.writeHead(200, { 'content-type': 'application/json' }).flushHeaders();
      else sendJson(res, 200, { kind: 'List', apiVersion: 'v1', metadata: { resourceVersion: '7' }, items: [] });
    },
    await issueServing(ca, 'api', ['127.0.0.1']),
  );
  ended.push(() => server.close());
  const api = new MemoryApi();
  const base64 = (text: string): string => Buffer.from(text).toString('base64');
  const kubeconfig = JSON.stringify({
    clusters: [{ name: 'c', cluster: { server: server.url, 'certificate-authority-data': base64(ca.cert) } }],
    users: [{ name: 'u', user: {} }],
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'c',
  });
  /** Answers the version of the Secret. */
  const give = (token: string, config = kubeconfig): unknown => {
    const metadata = { namespace: 'spillway-system', name: 'east' };
    const data = { kubeconfig: base64(config), token: base64(token) };
    api.put(SECRET_PATH, { apiVersion: 'v1', kind: 'Secret', metadata, data });
    return (api.objects.get(SECRET_PATH) as unknown as { metadata: { resourceVersion: string } }).metadata
      .resourceVersion;
  };
  const first = give('good');
  api.put(MEMBER_PATH, RAW);
  const host = await serveMemoryApi(api);
  ended.push(() => host.close());
  let breakScope = (): void => undefined;
  const runner = new MemberRunner(RAW, {
    host: host.client('host'),
    hostId: 'h',
    logger: pino({ level: 'silent' }),
    lease: { held: true, run: async (held) => await held.onAcquired(held.signal) },
    startScope: (_member, _connection, signal) => {
      const scope = idleScope(signal);
      const broken = new Promise<void>((resolve) => (breakScope = resolve));
      return { ...scope, done: Promise.race([scope.done, broken]) };
    },
    startObserved: undefined,
  });
  const stop = new AbortController();
  const running = runner.run(stop.signal);
  ended.push(async () => (stop.abort(), await running));
  /** Condition Reachable in the first status that speaks of that Secret. */
  const found = async (version: unknown) => {
    const status = await until(
      'the status speaks of it',
      () => {
        const now = api.objects.get(MEMBER_PATH)?.['status'] as MemberClusterStatus | undefined;
        return now?.credentialsVersion === version && now;
      },
      { intervalMs: 5, timeoutMs: 20_000 },
    );
    return conditionOf({ status }, 'Reachable');
  };
  expect(await found(first)).toMatchObject({ status: 'True' });
  expect(await found(give('bad'))).toMatchObject({ status: 'False', reason: 'Unauthorized' });
  const last = give('good-again');
  expect(await found(last)).toMatchObject({ status: 'True' });
  const status = (): MemberClusterStatus | undefined =>
    api.objects.get(MEMBER_PATH)?.['status'] as MemberClusterStatus | undefined;
  give('good', 'no kubeconfig');
  await until('it is refused', () => conditionOf({ status: status() }, 'CredentialsValid')?.status === 'False', {
    timeoutMs: 20_000,
  });
  // Another connection is made by what was read before: it is not that of the Secret as it is now.
  breakScope();
  const before = probes;
  await until('it was asked by the next connection', () => probes >= before + 3, { timeoutMs: 20_000 });
  expect(status()?.credentialsVersion).toBe(last);
});
