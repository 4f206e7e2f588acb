import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { hostIdOf, RENEWED_TOKEN_LABEL } from '../../src/api/marks.ts';
import { recordOf, type GrantRecord } from '../../src/cli/grant-record.ts';
import { knownResource } from '../../src/cli/known-kinds.ts';
import type { ManifestObject } from '../../src/cli/manifests.ts';
import { grantedObjects, optionalGrants, revocableObjects } from '../../src/cli/member-grant.ts';
import { isUpstreamKind } from '../../src/cli/multi-cluster-kinds.ts';
import { runProgram } from '../../src/cli/program.ts';
import { PERSISTENT_VOLUME_CLAIMS, PODS, resourcePath } from '../../src/kube/resource.ts';
import { serveMemoryApi, type MemoryApiServer } from '../fixtures/memory-api-server.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { FakeTerminal } from './fake-terminal.ts';
import { writeKubeconfig } from './served-kubeconfig.ts';

const HOST_UID = '11111111-1111-4111-8111-111111111111';
const MEMBER_UID = '22222222-2222-4222-8222-222222222222';
const OURS = hostIdOf(HOST_UID);
const ANOTHER = 'another0host0000';
const LENT_ONLY: GrantRecord = {
  hostId: ANOTHER,
  member: 'b',
  lent: [],
  dedicated: false,
  ...optionalGrants(() => false),
};

let host: MemoryApi;
let member: MemoryApi;
let servers: MemoryApiServer[];
let folder: string;

beforeEach(async () => {
  host = new MemoryApi({ uid: uids(HOST_UID, 'h') });
  member = new MemoryApi({ uid: uids(MEMBER_UID, 'm') });
  servers = [await serveMemoryApi(host), await serveMemoryApi(member)];
  for (const api of [host, member]) send(api, namespace('kube-system'));
  meanwhile = () => undefined;
  folder = mkdtempSync(join(tmpdir(), 'spillway-grant-'));
  const [hostServer, memberServer] = servers;
  if (hostServer === undefined || memberServer === undefined) throw new Error('no servers');
  writeKubeconfig(join(folder, 'kubeconfig'), { host: hostServer, east: memberServer });
});
afterEach(async () => {
  for (const server of servers) await server.close();
  rmSync(folder, { recursive: true });
});

/** The first is that of kube-system. */
function uids(first: string, prefix: string): () => string {
  let made = 0;
  return () => ((made += 1) === 1 ? first : `${prefix}-${String(made)}`);
}

const namespace = (name: string, labels: object = {}): ManifestObject =>
  ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } }) as ManifestObject;

function send(api: MemoryApi, object: ManifestObject & { spec?: object; status?: object }): void {
  const made = [PODS, PERSISTENT_VOLUME_CLAIMS].find(({ kind }) => kind === object.kind);
  const path = resourcePath(made ?? knownResource(object), object.metadata.namespace);
  const body = made === undefined ? object : { ...object, spec: { containers: [{ name: 'main', image: 'app' }] } };
  api.handle({ method: 'POST', path, query: {}, body, contentType: 'application/json' });
}

const applied = ({ metadata, ...object }: ManifestObject): ManifestObject => {
  const managedFields = [{ manager: 'kubectl-spillway', operation: 'Apply' }];
  return { ...object, metadata: { ...metadata, managedFields } } as ManifestObject;
};

/** As join leaves the member behind. */
const EVERYTHING = optionalGrants(() => true);
function grant(lend: string[], hostId = OURS): void {
  send(member, namespace('spillway-access'));
  send(member, recordOf({ ...LENT_ONLY, ...EVERYTHING, hostId, lent: lend, dedicated: lend.length === 0 }));
  for (const object of grantedObjects({ lend, ...EVERYTHING, quota: { pods: '5' }, networkPolicy: true }, hostId)) {
    if (object.metadata.name !== 'spillway-access' && !isUpstreamKind(object)) send(member, applied(object));
  }
}

function register(name: string, identity?: string): void {
  const secretRef = { namespace: 'spillway-system', name: `member-${name}` };
  const status = identity === undefined ? {} : { status: { identity } };
  send(host, {
    apiVersion: 'spillway.dev/v1alpha1',
    kind: 'MemberCluster',
    metadata: { name },
    spec: { credentials: { secretRef } },
    ...status,
  });
  if (host.objects.has(`/api/v1/namespaces/spillway-system/secrets/member-${name}`)) return;
  const labels = { [RENEWED_TOKEN_LABEL]: 'true' };
  send(host, { apiVersion: 'v1', kind: 'Secret', metadata: { ...secretRef, labels } });
}

/** What happens while the member leaves. */
let meanwhile: () => void;
async function leave(...words: string[]): Promise<{ code: number; stdout: string; notes: string }> {
  const terminal = new FakeTerminal({ env: { HOME: folder } });
  const out = terminal.out.bind(terminal);
  terminal.out = (text) => {
    out(text);
    if (text === 'membercluster/east deleted\n') meanwhile();
  };
  const flags = ['--kubeconfig', join(folder, 'kubeconfig'), '--mode=detach', ...words];
  const code = await runProgram(['leave', 'east', ...flags], terminal);
  return { code, stdout: terminal.stdout, notes: terminal.notes.join('\n') };
}
const IN_EAST = ['--member-context', 'east'];

/** `Kind/name` of all that is in the member. */
const left = (): string[] =>
  [...member.objects.values()].map(({ kind, metadata }) => `${String(kind)}/${metadata.name}`);

describe('a member that leaves by the name of its context', () => {
  it('keeps nothing that join brought, nor the host its credentials', async () => {
    grant([]);
    send(member, namespace('theirs'));
    register('east', MEMBER_UID);
    const { code, stdout } = await leave(...IN_EAST);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^membercluster\/east deleted\nmembercluster\/east left\nsecret\/member-east deleted\n/);
    expect(stdout.trim().split('\n').at(-1)).toBe('namespace/spillway-access deleted');
    expect(left().filter((name) => !/^Namespace\/(kube-system|theirs)$|^ConfigMap\/joined-by-/.test(name))).toEqual([]);
    expect(host.objects.valuesIn('/api/v1/namespaces/spillway-system/secrets')).toEqual([]);
  });

  it('loses rights before it loses the account, and what limits the account last', () => {
    const kinds = revocableObjects(['shop']).map(({ kind }) => kind);
    expect([...new Set(kinds)]).toEqual([
      'ClusterRoleBinding',
      'RoleBinding',
      'ServiceAccount',
      'ClusterRole',
      'Role',
      'ResourceQuota',
      'NetworkPolicy',
      'ValidatingAdmissionPolicyBinding',
      'ValidatingAdmissionPolicy',
      'Namespace',
    ]);
  });

  it('keeps namespaces that were lent, and lends them no more', async () => {
    grant(['shop']);
    const { code, stdout } = await leave(...IN_EAST);
    expect(code).toBe(0);
    expect(stdout).toContain('namespace/shop labeled\n');
    expect(left().filter((name) => /shop|spillway/.test(name))).toEqual(['Namespace/shop']);
    expect(member.objects.get('/api/v1/namespaces/shop')?.metadata.labels).not.toHaveProperty(
      'spillway.dev/allow-host',
    );
  });

  const inShop = { namespace: 'shop', name: 'x', labels: { 'spillway.dev/host': ANOTHER } };
  it.each<[string, () => void, string]>([
    ['another host has joined', () => send(member, recordOf(LENT_ONLY)), `${ANOTHER} (configmap/joined-by-${ANOTHER})`],
    [
      'another host has a namespace there',
      () => send(member, namespace('b', { 'spillway.dev/host': ANOTHER })),
      `${ANOTHER} (namespace/b)`,
    ],
    [
      'another host has pods there',
      () => {
        for (const name of ['a', 'b', 'c', 'd', 'e'])
          send(member, { apiVersion: 'v1', kind: 'Pod', metadata: { ...inShop, name } });
      },
      `${ANOTHER} (pod/a of namespace shop; pod/b of namespace shop; pod/c of namespace shop; 2 more)`,
    ],
    [
      'another host has a claim there',
      () => send(member, { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: inShop }),
      `${ANOTHER} (persistentvolumeclaim/x of namespace shop)`,
    ],
    [
      'a namespace is lent to another host',
      () => send(member, namespace('b', { 'spillway.dev/allow-host': ANOTHER })),
      `${ANOTHER} (namespace/b, which is lent)`,
    ],
    [
      'a namespace is lent to any host',
      () => send(member, namespace('b', { 'spillway.dev/allow-host': 'any' })),
      'any (namespace/b, which is lent)',
    ],
  ])('keeps account and roles when %s, and says why', async (_what, make, why) => {
    grant(['shop']);
    make();
    const before = left().filter((name) => /ClusterRole\/|ServiceAccount|Policy/.test(name));
    const { code, notes, stdout } = await leave(...IN_EAST);
    expect(code).toBe(5);
    expect(left().filter((name) => /ClusterRole\/|ServiceAccount|Policy/.test(name)).length).toBeGreaterThan(8);
    expect(before).toEqual(
      expect.arrayContaining(left().filter((name) => /ClusterRole\/|ServiceAccount|Policy/.test(name))),
    );
    expect(stdout).toContain('rolebinding.rbac.authorization.k8s.io/spillway-workloads deleted\n');
    expect(stdout).toContain(`configmap/joined-by-${OURS} deleted\n`);
    expect(notes).toContain(`as other hosts use them too: ${why}\n`);
    expect(notes).toContain('kubectl delete serviceaccount -n spillway-access spillway-host ends all tokens');
  });

  it('says the same when it is asked again', async () => {
    grant(['shop']);
    send(member, recordOf(LENT_ONLY));
    await leave(...IN_EAST);
    const { code, notes } = await leave(...IN_EAST);
    expect(code).toBe(5);
    expect(notes).toContain(`use them too: ${ANOTHER} (configmap/joined-by-${ANOTHER})`);
  });

  it('was lent a namespace whose owner has lent it to any host since: that is no other host', async () => {
    grant([]);
    send(member, namespace('shop', { 'spillway.dev/allow-host': 'any' }));
    const record = { ...LENT_ONLY, hostId: OURS, lent: ['shop'] };
    member.handle({
      method: 'PATCH',
      path: `/api/v1/namespaces/spillway-access/configmaps/joined-by-${OURS}`,
      query: {},
      body: { data: recordOf(record)['data' as never] },
      contentType: 'application/merge-patch+json',
    });
    expect((await leave(...IN_EAST)).code).toBe(0);
  });

  const CLUSTER_WIDE = [
    'spillway-namespaces',
    'spillway-workloads',
    'spillway-node-metrics',
    'spillway-services',
    'spillway-imports',
    'spillway-privileged',
  ];
  // Of those the rest may be some other host's by hand.
  const BY_HAND = ['spillway-services', 'spillway-imports', 'spillway-privileged'];
  const bindings = (): string[] => CLUSTER_WIDE.filter((name) => left().includes(`ClusterRoleBinding/${name}`));
  it.each<[string, () => void, string[]]>([
    ['has lent namespaces only', () => send(member, recordOf(LENT_ONLY)), BY_HAND],
    [
      'has the whole member',
      () => send(member, recordOf({ ...LENT_ONLY, dedicated: true })),
      [...CLUSTER_WIDE.slice(0, 2), ...BY_HAND],
    ],
    [
      'may ask kubelets',
      () => send(member, recordOf({ ...LENT_ONLY, nodeMetrics: true })),
      ['spillway-node-metrics', ...BY_HAND],
    ],
    ['may export', () => send(member, recordOf({ ...LENT_ONLY, multiCluster: true })), BY_HAND],
    [
      'joined by a version that did not write down which',
      () => send(member, { ...recordOf(LENT_ONLY), data: { member: 'b', lent: '' } } as ManifestObject),
      CLUSTER_WIDE,
    ],
    ['came without join', () => send(member, namespace('b', { 'spillway.dev/host': ANOTHER })), CLUSTER_WIDE],
  ])('leaves another host what that one needs, which %s', async (_what, make, kept) => {
    grant([]);
    expect(bindings()).toEqual(CLUSTER_WIDE);
    make();
    expect((await leave(...IN_EAST)).code).toBe(5);
    expect(bindings()).toEqual(kept);
  });

  it.each<[string, () => void, string | undefined]>([
    [
      'has joined without them',
      () => send(member, recordOf(LENT_ONLY)),
      'spillway-read-services spillway-services spillway-read-exports spillway-imports spillway-privileged',
    ],
    [
      'has joined with some of them',
      () => send(member, recordOf({ ...LENT_ONLY, services: true, multiCluster: true })),
      'spillway-privileged',
    ],
    ['has joined with all of them', () => send(member, recordOf({ ...LENT_ONLY, ...EVERYTHING })), undefined],
    [
      'may be any that a namespace is lent to',
      () => send(member, namespace('b', { 'spillway.dev/allow-host': 'any' })),
      undefined,
    ],
  ])('names the bindings that may be deleted by hand where another host %s', async (_what, make, names) => {
    grant([]);
    make();
    const { notes } = await leave(...IN_EAST);
    if (names === undefined) expect(notes).not.toContain('kubectl delete clusterrolebinding');
    else expect(notes).toMatch(new RegExp(`kubectl delete clusterrolebinding ${names} there$`));
  });

  it('keeps the roles of a namespace that is lent to another host by now', async () => {
    grant(['shop']);
    member.handle({
      method: 'PATCH',
      path: '/api/v1/namespaces/shop',
      query: {},
      body: { metadata: { labels: { 'spillway.dev/allow-host': ANOTHER } } },
      contentType: 'application/merge-patch+json',
    });
    expect((await leave(...IN_EAST)).code).toBe(5);
    expect(left()).toContain('RoleBinding/spillway-workloads');
  });

  it('keeps its rights while another MemberCluster of this host needs them', async () => {
    grant([]);
    const before = left();
    register('east', MEMBER_UID);
    register('twin');
    const { code, notes } = await leave(...IN_EAST);
    expect([code, left()]).toEqual([0, before]);
    expect(notes).toContain('rights stay in the member, as it is, or may be, also: twin');
  });

  it.each<[string, () => void, string]>([
    ['joined under another name', () => register('east2', MEMBER_UID), 'is, or may be, also: east2'],
    ['joined again, and not reached yet', () => register('east'), 'is, or may be, also: east'],
  ])('keeps its rights when its cluster is %s meanwhile', async (_what, happens, words) => {
    grant([]);
    const before = left();
    register('east', MEMBER_UID);
    meanwhile = happens;
    const { code, notes } = await leave(...IN_EAST);
    expect([code, left()]).toEqual([0, before]);
    expect(notes).toContain(words);
  });

  it('keeps its rights while pods of this cluster are there after all', async () => {
    grant(['shop']);
    register('east', MEMBER_UID);
    const labels = { 'spillway.dev/host': OURS };
    send(member, { apiVersion: 'v1', kind: 'Pod', metadata: { ...inShop, labels } });
    send(member, namespace('stays-on-purpose', labels));
    const before = left();
    const dry = await leave(...IN_EAST, '--dry-run=client');
    expect([dry.code, dry.stdout]).toEqual([0, expect.stringContaining('namespace/spillway-access deleted (dry run)')]);
    const { code, notes } = await leave(...IN_EAST);
    expect([code, left()]).toEqual([5, before]);
    expect(notes).toContain('as 1 object of this cluster is still there: pod/x of namespace shop.');
  });

  it('takes nothing away in another cluster that answers at the end', async () => {
    grant([]);
    register('east', MEMBER_UID);
    const before = left();
    meanwhile = () => {
      const path = '/api/v1/namespaces/kube-system';
      const object = member.objects.get(path);
      if (object !== undefined) member.put(path, { ...object, metadata: { ...object.metadata, uid: 'another' } });
    };
    const { code, notes } = await leave(...IN_EAST);
    expect([code, left()]).toEqual([1, before]);
    expect(notes).toContain('another cluster answers by now');
  });

  it.each<[string, () => void, string]>([
    [
      'pods',
      () =>
        send(member, { apiVersion: 'v1', kind: 'Pod', metadata: { ...inShop, labels: { 'spillway.dev/host': OURS } } }),
      'as 1 object of this cluster is still there: pod/x of namespace shop.',
    ],
    [
      'namespaces',
      () => send(member, namespace('made', { 'spillway.dev/host': OURS })),
      'as 1 object of this cluster is still there: namespace/made.',
    ],
  ])('was given up, and %s of this cluster are there still: they go first', async (_what, make, words) => {
    grant(['shop']);
    make();
    const before = left();
    const { code, notes, stdout } = await leave(...IN_EAST);
    expect([code, stdout, left()]).toEqual([5, '', before]);
    expect(notes).toContain(words);
    expect(notes).toContain('First kubectl spillway orphans --member-context east --delete');
  });

  it('is another cluster: nothing is done', async () => {
    grant([]);
    const before = left();
    register('east', 'another');
    const { code, notes, stdout } = await leave(...IN_EAST);
    expect([code, stdout, left()]).toEqual([2, '', before]);
    expect(notes).toContain('the cluster of context east is not member east');
  });

  it.each(['--no-wait', '--mode=force'])('has to have left first: %s', async (flag) => {
    register('east', MEMBER_UID);
    const { code, stdout } = await leave(...IN_EAST, flag);
    expect([code, stdout]).toEqual([2, '']);
  });

  it('keeps a quota and a network policy of its owner that have the name of those of join', async () => {
    grant(['shop', 'mine']);
    const own = (kind: string, apiVersion: string, place: string): void => {
      const path = `/${apiVersion === 'v1' ? 'api' : 'apis'}/${apiVersion}/namespaces/mine/${place}`;
      member.handle({
        method: 'DELETE',
        path: `${path}/spillway`,
        query: {},
        body: {},
        contentType: 'application/json',
      });
      const managedFields = [{ manager: 'kubectl-create', operation: 'Update' }];
      const metadata = { namespace: 'mine', name: 'spillway', managedFields };
      send(member, { apiVersion, kind, metadata, spec: {} });
    };
    own('ResourceQuota', 'v1', 'resourcequotas');
    own('NetworkPolicy', 'networking.k8s.io/v1', 'networkpolicies');
    const { code, stdout, notes } = await leave(...IN_EAST);
    expect(code).toBe(0);
    const limits = [...member.objects.values()].filter(({ kind }) => /Quota|NetworkPolicy/.test(String(kind)));
    expect(limits.map(({ kind, metadata }) => `${String(kind)}/${metadata.namespace}`).toSorted()).toEqual([
      'NetworkPolicy/mine',
      'ResourceQuota/mine',
    ]);
    expect(stdout).toContain('networkpolicy.networking.k8s.io/spillway deleted\n');
    for (const name of ['resourcequota/spillway', 'networkpolicy.networking.k8s.io/spillway'])
      expect(notes).toContain(`${name} in namespace mine stays: nothing shows that join made it`);
  });

  it('is only looked at in a dry run', async () => {
    grant(['shop']);
    register('east', MEMBER_UID);
    const before = left();
    const { code, stdout } = await leave(...IN_EAST, '--dry-run=client');
    expect([code, left()]).toEqual([0, before]);
    expect(stdout).toContain('namespace/spillway-access deleted (dry run)\n');
    expect(stdout.split('\n').filter((line) => line !== '' && !line.endsWith(' (dry run)'))).toEqual([]);
    expect(host.requests('DELETE')).toEqual([]);
  });

  it('keeps what was applied without join', async () => {
    for (const object of grantedObjects(
      { lend: [], ...optionalGrants(() => false), quota: {}, networkPolicy: false },
      OURS,
    ))
      send(member, object);
    const before = left();
    const { code, notes } = await leave(...IN_EAST);
    expect([code, left()]).toEqual([0, before]);
    expect(notes).toContain('was made without join');
  });

  it('says of one that has nothing left that nothing is there', async () => {
    grant(['shop']);
    register('east', MEMBER_UID);
    await leave(...IN_EAST);
    // With its namespace, as in a real cluster.
    for (const path of member.objects.keys()) if (path.includes('/spillway-access/')) member.delete(path);
    const { code, notes } = await leave(...IN_EAST);
    expect(code).toBe(0);
    expect(notes).toContain('note: nothing that a host was granted is there any more');
    expect(notes).not.toContain('was made without join');
  });
});

it('a Secret that join did not make, or that another member uses, stays', async () => {
  register('east', MEMBER_UID);
  const path = '/api/v1/namespaces/spillway-system/secrets/member-east';
  const body = { metadata: { labels: { [RENEWED_TOKEN_LABEL]: null } } };
  host.handle({ method: 'PATCH', path, query: {}, body, contentType: 'application/merge-patch+json' });
  expect((await leave()).code).toBe(0);
  expect(host.objects.has(path)).toBe(true);
});

describe('a member that left before, when nobody waited for it', () => {
  const SECRET = '/api/v1/namespaces/spillway-system/secrets/member-east';
  const credentials = (labels: object = { [RENEWED_TOKEN_LABEL]: 'true' }): void => {
    const metadata = { namespace: 'spillway-system', name: 'member-east', labels };
    send(host, { apiVersion: 'v1', kind: 'Secret', metadata } as ManifestObject);
  };

  it('loses its credentials', async () => {
    credentials();
    const { code, stdout, notes } = await leave();
    expect([code, stdout]).toEqual([0, 'secret/member-east deleted\n']);
    expect(notes).toContain('kubectl spillway leave east --member-context CONTEXT takes it away');
    expect(host.objects.has(SECRET)).toBe(false);
    expect((await leave()).code).toBe(4);
  });

  it('loses them with its rights', async () => {
    credentials();
    grant([]);
    const { code, stdout } = await leave(...IN_EAST);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^secret\/member-east deleted\n/);
    expect(host.objects.has(SECRET)).toBe(false);
  });

  it('keeps a Secret that join did not make, and was not there', async () => {
    credentials({});
    expect((await leave()).code).toBe(4);
    expect(host.objects.has(SECRET)).toBe(true);
  });
});
