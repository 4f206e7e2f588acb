import { readFileSync } from 'node:fs';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { type Cluster, startCluster } from '../../hack/cluster.ts';
import { until } from '../../hack/until.ts';
import { Workspace } from '../../hack/workspace.ts';
import { ALLOW_HOST_LABEL } from '../../src/api/marks.ts';
import type { Namespace, Pod } from '../../src/kube/core-v1.ts';
import { HostObjects } from '../../src/dependents/host-objects.ts';
import { MemberCopies } from '../../src/dependents/member-copies.ts';
import { DependentsMirror } from '../../src/dependents/mirror.ts';
import { KubeClient } from '../../src/kube/client.ts';
import { Informer } from '../../src/kube/informer.ts';
import { NAMESPACES } from '../../src/kube/resource.ts';
import { staticAccess } from '../../src/kube/static-access.ts';
import { needing } from '../fixtures/dependents.ts';

/** Two real API servers, the mirror between them. Pods are only ever named to the mirror, never created. */
const HOST_ID = 'abcdef0123456789';
let workspace: Workspace;
let host: Cluster;
let member: Cluster;
let hostClient: KubeClient;
let memberClient: KubeClient;
let memberNamespaces: Informer<Namespace>;
const stopNamespaces = new AbortController();
let running: Promise<void> | undefined;

beforeAll(async () => {
  workspace = Workspace.create();
  [host, member] = await Promise.all([
    startCluster(workspace, { name: 'host', components: 'api-only', audit: true }),
    startCluster(workspace, { name: 'member', components: 'api-only', audit: true }),
  ]);
  // No node identities here: the Node authorizer only knows pods that exist.
  for (const file of ['rbac.yaml', 'rbac-service-account.yaml']) await host.apply(manifest(file));
  await member.apply(manifest('member/read.yaml'));
  hostClient = await clientOf(host, 'system:serviceaccount:spillway-system:spillway-manager');
  memberClient = await clientOf(member, MEMBER_ACCOUNT);
  memberNamespaces = new Informer<Namespace>({ client: memberClient, resource: NAMESPACES });
  running = memberNamespaces.run(stopNamespaces.signal);
  await memberNamespaces.whenSynced(AbortSignal.timeout(20_000));
});
afterAll(async () => {
  stopNamespaces.abort();
  await running;
  await Promise.all([hostClient?.close(), memberClient?.close()]);
  await workspace?.close();
});

const MEMBER_ACCOUNT = 'system:serviceaccount:spillway-access:spillway-host';
function manifest(file: string): string {
  return readFileSync(new URL(`../../manifests/${file}`, import.meta.url), 'utf8');
}

/** With the rights of that account and no more. */
async function clientOf(cluster: Cluster, account: string): Promise<KubeClient> {
  const { server, ca } = cluster.adminAccess;
  const identity = await cluster.issueClient(account);
  return new KubeClient({ cluster: cluster.name, ...staticAccess({ endpoint: { server, ca }, ...identity }) });
}

/** What manifests/member/namespaced.yaml does for `shop`. */
async function lend(namespace: string, rights = true): Promise<void> {
  const all = parseAllDocuments(manifest('member/namespaced.yaml').replaceAll(/\bshop\b/g, namespace));
  const documents = all.map((one) => one.toJS() as { kind: string });
  await member.apply(documents.filter(({ kind }) => rights || kind !== 'RoleBinding'));
}

let namespaces = 0;
let stop: (() => Promise<void>) | undefined;
afterEach(async () => {
  await stop?.();
  stop = undefined;
});

interface Stage {
  namespace: string;
  mirror: DependentsMirror;
  ready: string[];
  events: string[];
  need: (name: string, ...objects: string[]) => Pod;
  hostPath: (kind: string, name?: string) => string;
  memberPath: (kind: string, name?: string) => string;
}

const PLURAL: Record<string, string> = { ConfigMap: 'configmaps', Secret: 'secrets' };

/** A namespace on both sides (`x` in the host is `t-x` in the member) and a running mirror. */
async function stage(options: { namespace?: string; maxWatches?: number; rights?: boolean } = {}): Promise<Stage> {
  const namespace = options.namespace ?? `shop-${++namespaces}`;
  await host.api.ensure('/api/v1/namespaces', { metadata: { name: namespace } });
  await lend(`t-${namespace}`, options.rights);
  const logger = pino({ level: 'silent' });
  const end = new AbortController();
  const objects = new HostObjects({
    clientOf: () => hostClient,
    logger,
    pollMs: 300,
    ...(options.maxWatches === undefined ? {} : { maxWatches: options.maxWatches }),
  });
  const ready: string[] = [];
  const events: string[] = [];
  const mirror = new DependentsMirror({
    objects,
    copies: new MemberCopies({
      client: memberClient,
      hostId: HOST_ID,
      namespaces: memberNamespaces,
      isUsable: ({ metadata }) => metadata.labels?.[ALLOW_HOST_LABEL] === 'any',
      logger,
    }),
    member: 'member',
    hostId: HOST_ID,
    namespaces: {
      memberNamespaceOf: (name) => `t-${name}`,
      ensure: (name) => Promise.resolve({ namespace: `t-${name}` }),
    },
    events: { record: (object, type, reason) => void events.push(`${type} ${reason} ${object.name}`) },
    onReady: (key) => void ready.push(key),
    keepMs: 100,
    takenRetryMs: 300,
    logger,
  });
  const running = Promise.all([objects.run(end.signal), mirror.run(end.signal)]);
  stop = async () => {
    end.abort();
    await running;
  };
  const path = (space: string, kind: string, name?: string): string =>
    `/api/v1/namespaces/${space}/${PLURAL[kind]}${name === undefined ? '' : `/${name}`}`;
  return {
    namespace,
    mirror,
    ready,
    events,
    need: (name, ...wanted) => {
      const pod = needing(name, ...wanted);
      return { ...pod, metadata: { ...pod.metadata, namespace } };
    },
    hostPath: (kind, name) => path(namespace, kind, name),
    memberPath: (kind, name) => path(`t-${namespace}`, kind, name),
  };
}

interface Found {
  metadata: {
    uid: string;
    resourceVersion: string;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
  };
  data?: Record<string, string>;
  binaryData?: Record<string, string>;
  type?: string;
}
const read = async (cluster: Cluster, path: string): Promise<Found | undefined> => {
  try {
    return (await cluster.api.call('GET', path)) as Found;
  } catch (error) {
    if (error instanceof Error && error.message.includes('HTTP 404')) return undefined;
    throw error;
  }
};
const SOON = { timeoutMs: 30_000, intervalMs: 20 };
const whenGone = (path: string): Promise<unknown> =>
  until(`${path} is gone`, async () => (await read(member, path)) === undefined, SOON);
const whenReady = (mirror: DependentsMirror, pod: Pod): Promise<unknown> =>
  until('the pod is ready', () => Promise.resolve(mirror.require(pod).ready), { timeoutMs: 45_000, intervalMs: 10 });
const whenReason = (mirror: DependentsMirror, pod: Pod, reason: string): Promise<unknown> =>
  until(
    `the pod waits for ${reason}`,
    () => {
      const answer = mirror.require(pod);
      return Promise.resolve(!answer.ready && answer.reason === reason);
    },
    { timeoutMs: 45_000, intervalMs: 10 },
  );

test('copies are there before the pod is ready, byte for byte', async () => {
  const { mirror, need, hostPath, memberPath, ready } = await stage();
  await host.api.call('POST', hostPath('ConfigMap'), {
    metadata: { name: 'a', labels: { team: 'x' }, annotations: { note: 'y' } },
    data: { 'app.yaml': 'a: 1\n', ['__proto__']: 'p', constructor: 'c' },
    binaryData: { blob: 'AAECAw==' },
  });
  await host.api.call('POST', hostPath('Secret'), {
    metadata: { name: 'b' },
    type: 'kubernetes.io/basic-auth',
    data: { username: 'dXNlcg==', password: 'cGFzcw==' },
  });
  const pod = need('web', 'ConfigMap/a', 'Secret/b');
  expect(mirror.require(pod)).toMatchObject({ ready: false, pending: true });
  await until('told', () => Promise.resolve(ready.includes(`${pod.metadata.namespace}/web`)), {
    timeoutMs: 30_000,
    intervalMs: 10,
  });
  await whenReady(mirror, pod);
  const configMap = await read(member, memberPath('ConfigMap', 'a'));
  expect(new Map(Object.entries(configMap?.data ?? {}))).toEqual(
    new Map([
      ['__proto__', 'p'],
      ['app.yaml', 'a: 1\n'],
      ['constructor', 'c'],
    ]),
  );
  expect(configMap).toMatchObject({ binaryData: { blob: 'AAECAw==' } });
  expect(configMap?.metadata.labels).toEqual({ 'spillway.dev/host': HOST_ID, 'spillway.dev/member': 'member' });
  expect(Object.keys(configMap?.metadata.annotations ?? {}).every((key) => key.startsWith('spillway.dev/'))).toBe(true);
  expect(await read(member, memberPath('Secret', 'b'))).toMatchObject({
    type: 'kubernetes.io/basic-auth',
    data: { username: 'dXNlcg==', password: 'cGFzcw==' },
  });
});

test('a change follows in less than five seconds, a deletion too', async () => {
  const { mirror, need, hostPath, memberPath } = await stage();
  await host.api.call('POST', hostPath('ConfigMap'), { metadata: { name: 'a' }, data: { k: '1' } });
  const pod = need('web', 'ConfigMap/a');
  await whenReady(mirror, pod);
  const began = Date.now();
  await host.api.call('PATCH', hostPath('ConfigMap', 'a'), { data: { k: '2', more: 'x' } });
  await until('the change', async () => (await read(member, memberPath('ConfigMap', 'a')))?.data?.['k'] === '2', {
    timeoutMs: 5_000,
    intervalMs: 10,
  });
  expect(Date.now() - began).toBeLessThan(5_000);
  await host.api.call('DELETE', hostPath('ConfigMap', 'a'));
  await until('the deletion', async () => (await read(member, memberPath('ConfigMap', 'a'))) === undefined, {
    timeoutMs: 5_000,
    intervalMs: 10,
  });
  await whenReason(mirror, pod, 'MandatoryConfigMapNotFound');
});

test('immutable objects that were made anew, and Secrets of a new type', async () => {
  const { mirror, need, hostPath, memberPath } = await stage();
  await host.api.call('POST', hostPath('ConfigMap'), { metadata: { name: 'a' }, immutable: true, data: { k: '1' } });
  await host.api.call('POST', hostPath('Secret'), {
    metadata: { name: 'b' },
    type: 'x.example/one',
    data: { k: 'MQ==' },
  });
  await whenReady(mirror, need('web', 'ConfigMap/a', 'Secret/b'));
  await host.api.call('DELETE', hostPath('ConfigMap', 'a'));
  await host.api.call('POST', hostPath('ConfigMap'), { metadata: { name: 'a' }, immutable: true, data: { k: '2' } });
  await host.api.call('DELETE', hostPath('Secret', 'b'));
  await host.api.call('POST', hostPath('Secret'), {
    metadata: { name: 'b' },
    type: 'x.example/two',
    data: { k: 'MQ==' },
  });
  const settled = async (): Promise<boolean> =>
    (await read(member, memberPath('ConfigMap', 'a')))?.data?.['k'] === '2' &&
    (await read(member, memberPath('Secret', 'b')))?.type === 'x.example/two';
  await until('the new objects', settled, SOON);
});

test('something mandatory that is missing holds the pod until it appears; something optional does not', async () => {
  const { mirror, need, hostPath, events } = await stage();
  const late = need('late', 'Secret/s', 'ConfigMap/maybe?');
  await whenReason(mirror, late, 'MandatorySecretNotFound');
  const lenient = need('lenient', 'ConfigMap/maybe?');
  await whenReady(mirror, lenient);
  expect(events).toEqual(['Warning OptionalConfigMapNotFound lenient']);
  await host.api.call('POST', hostPath('Secret'), { metadata: { name: 's' }, data: { k: 'djE=' } });
  await whenReady(mirror, late);
});

test('the last user takes the copy along', async () => {
  const { mirror, need, hostPath, memberPath } = await stage();
  for (const name of ['shared', 'own']) {
    await host.api.call('POST', hostPath('Secret'), { metadata: { name }, data: { k: 'djE=' } });
  }
  const [one, two] = [need('one', 'Secret/shared', 'Secret/own'), need('two', 'Secret/shared')];
  await whenReady(mirror, one);
  await whenReady(mirror, two);
  mirror.setComplete();
  mirror.release(`${one.metadata.namespace}/one`);
  await whenGone(memberPath('Secret', 'own'));
  expect(await read(member, memberPath('Secret', 'shared'))).toBeDefined();
  mirror.release(`${two.metadata.namespace}/two`);
  await whenGone(memberPath('Secret', 'shared'));
});

test("a stranger's object is neither changed nor removed; the pod starts when it is gone", async () => {
  const { mirror, need, hostPath, memberPath } = await stage();
  for (const name of ['a', 'b']) {
    await host.api.call('POST', hostPath('ConfigMap'), { metadata: { name }, data: { whose: 'ours' } });
  }
  await member.api.call('POST', memberPath('ConfigMap'), { metadata: { name: 'a' }, data: { whose: 'theirs' } });
  const before = await read(member, memberPath('ConfigMap', 'a'));
  const pod = need('web', 'ConfigMap/a', 'ConfigMap/b');
  await whenReason(mirror, pod, 'ConfigMapNameTaken');
  // What happens to the other object shows that the same has been considered for this one.
  await until('the copy', async () => (await read(member, memberPath('ConfigMap', 'b'))) !== undefined, SOON);
  for (const name of ['a', 'b']) {
    await host.api.call('PATCH', hostPath('ConfigMap', name), { data: { whose: 'changed' } });
  }
  const whose = async (): Promise<unknown> => (await read(member, memberPath('ConfigMap', 'b')))?.data?.['whose'];
  await until('the change', async () => (await whose()) === 'changed', SOON);
  expect(await read(member, memberPath('ConfigMap', 'a'))).toEqual(before);
  mirror.setComplete();
  mirror.release(`${pod.metadata.namespace}/web`);
  await whenGone(memberPath('ConfigMap', 'b'));
  expect(await read(member, memberPath('ConfigMap', 'a'))).toEqual(before);
  await whenReason(mirror, pod, 'ConfigMapNameTaken');
  await member.api.call('DELETE', memberPath('ConfigMap', 'a'));
  await whenReady(mirror, pod);
  expect((await read(member, memberPath('ConfigMap', 'a')))?.data).toEqual({ whose: 'changed' });
});

test('a restart writes nothing for what is as it should be, and collects what nobody needs', async () => {
  const first = await stage();
  for (const name of ['kept', 'orphan']) {
    await host.api.call('POST', first.hostPath('ConfigMap'), { metadata: { name }, data: { k: name } });
  }
  await whenReady(first.mirror, first.need('web', 'ConfigMap/kept', 'ConfigMap/orphan'));
  await stop?.();
  stop = undefined;
  const before = await read(member, first.memberPath('ConfigMap', 'kept'));
  const writes = (): number => writesOf(member, `t-${first.namespace}`);
  const written = writes();

  const second = await stage({ namespace: first.namespace });
  const pod = second.need('web', 'ConfigMap/kept');
  second.mirror.track(pod);
  await whenReady(second.mirror, pod);
  expect(await read(member, second.memberPath('ConfigMap', 'orphan'))).toBeDefined();
  expect(writes()).toBe(written);
  second.mirror.setComplete();
  await until(
    'the garbage is gone',
    async () => (await read(member, second.memberPath('ConfigMap', 'orphan'))) === undefined,
    SOON,
  );
  expect(await read(member, second.memberPath('ConfigMap', 'kept'))).toEqual(before);
});

test('objects beyond the limit of watches follow too', async () => {
  const { mirror, need, hostPath, memberPath } = await stage({ maxWatches: 1 });
  for (const name of ['a', 'b', 'c']) {
    await host.api.call('POST', hostPath('ConfigMap'), { metadata: { name }, data: { k: '1' } });
  }
  const pod = need('web', 'ConfigMap/a', 'ConfigMap/b', 'ConfigMap/c', 'ConfigMap/none?');
  await whenReady(mirror, pod);
  await host.api.call('PATCH', hostPath('ConfigMap', 'c'), { data: { k: '2' } });
  await until('the change', async () => (await read(member, memberPath('ConfigMap', 'c')))?.data?.['k'] === '2', SOON);
});

describe('what is read and written', () => {
  test('rights in the namespaces that are lent are enough, and in others nothing is tried', async () => {
    const { mirror, need, namespace, hostPath } = await stage();
    await member.api.ensure('/api/v1/namespaces', { metadata: { name: 't-private' } });
    await host.api.ensure('/api/v1/namespaces', { metadata: { name: 'private' } });
    await host.api.call('POST', hostPath('Secret'), { metadata: { name: 's' }, data: { k: 'djE=' } });
    const pod = need('web', 'Secret/s');
    mirror.track({ ...pod, metadata: { ...pod.metadata, namespace: 'private' } });
    await whenReady(mirror, pod);
    await stop?.();
    stop = undefined;
    const asked = member
      .auditEvents()
      .filter(
        ({ userAgent, objectRef }) => userAgent === 'spillway' && /secrets|configmaps/.test(objectRef?.resource ?? ''),
      );
    expect(asked.map(({ objectRef }) => objectRef?.namespace)).toContain(`t-${namespace}`);
    expect(asked.filter(({ objectRef }) => objectRef?.namespace === undefined)).toEqual([]);
    expect(asked.filter(({ objectRef }) => objectRef?.namespace === 't-private')).toEqual([]);
  });

  test('a namespace that is lent without the rights: the pod says so, and starts once they are there', async () => {
    const { mirror, need, namespace, hostPath } = await stage({ rights: false });
    await host.api.call('POST', hostPath('Secret'), { metadata: { name: 's' }, data: { k: 'djE=' } });
    const pod = need('web', 'Secret/s');
    await whenReason(mirror, pod, 'SecretNotCopied');
    expect(mirror.require(pod)).toMatchObject({
      message: expect.stringMatching(
        new RegExp(`cannot (list|watch) resource "secrets" in API group "" in the namespace "t-${namespace}"`),
      ) as string,
    });
    await lend(`t-${namespace}`);
    await whenReady(mirror, pod);
  });

  test('nothing of the host but what pods refer to; one write a copy; nothing unlabelled', async () => {
    const { mirror, need, namespace, hostPath, memberPath } = await stage();
    await host.api.call('POST', hostPath('Secret'), { metadata: { name: 'canary' }, data: { k: 'Y2FuYXJ5' } });
    await host.api.call('POST', hostPath('Secret'), { metadata: { name: 's' }, data: { k: 'djE=' } });
    await whenReady(mirror, need('web', 'Secret/s'));
    expect(await read(member, memberPath('Secret', 'canary'))).toBeUndefined();
    // A watch is in the log when it has ended.
    await stop?.();
    stop = undefined;
    const asked = await until('the watch is in the log', () => {
      const events = host
        .auditEvents()
        .filter(({ userAgent, objectRef }) => userAgent === 'spillway' && objectRef?.namespace === namespace);
      return events.some(({ verb }) => verb === 'watch') && events;
    });
    for (const { requestURI } of asked) expect(requestURI).toMatch(/metadata\.name(%3D|=)s(&|$)|\/secrets\/s(\?|$)/);
    expect(writesOf(member, `t-${namespace}`)).toBe(1);
  });
});

/** Writes of the program in a namespace, from the audit log. */
function writesOf(cluster: Cluster, namespace: string): number {
  return cluster
    .auditEvents()
    .filter(
      ({ userAgent, objectRef, verb }) =>
        userAgent === 'spillway' && objectRef?.namespace === namespace && !['get', 'list', 'watch'].includes(verb),
    ).length;
}
