import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { hostIdOf, RENEWED_TOKEN_LABEL } from '../../src/api/marks.ts';
import { recordOf } from '../../src/cli/grant-record.ts';
import { resourceOf } from '../../src/cli/known-kinds.ts';
import type { ManifestObject } from '../../src/cli/manifests.ts';
import { grantedObjects, revocableObjects } from '../../src/cli/member-grant.ts';
import { runProgram } from '../../src/cli/program.ts';
import { resourcePath } from '../../src/kube/resource.ts';
import { serveMemoryApi, type MemoryApiServer } from '../fixtures/memory-api-server.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { FakeTerminal } from './fake-terminal.ts';
import { writeKubeconfig } from './served-kubeconfig.ts';

const HOST_UID = '11111111-1111-4111-8111-111111111111';
const MEMBER_UID = '22222222-2222-4222-8222-222222222222';
const OURS = hostIdOf(HOST_UID);

let host: MemoryApi;
let member: MemoryApi;
let servers: MemoryApiServer[];
let folder: string;

beforeEach(async () => {
  host = new MemoryApi({ uid: () => HOST_UID });
  member = new MemoryApi({ uid: () => MEMBER_UID });
  servers = [await serveMemoryApi(host), await serveMemoryApi(member)];
  for (const api of [host, member]) send(api, namespace('kube-system'));
  folder = mkdtempSync(join(tmpdir(), 'spillway-grant-'));
  const [hostServer, memberServer] = servers;
  if (hostServer === undefined || memberServer === undefined) throw new Error('no servers');
  writeKubeconfig(join(folder, 'kubeconfig'), { host: hostServer, east: memberServer });
});
afterEach(async () => {
  for (const server of servers) await server.close();
  rmSync(folder, { recursive: true });
});

const namespace = (name: string, labels: object = {}): ManifestObject =>
  ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } }) as ManifestObject;

function send(api: MemoryApi, object: ManifestObject & { spec?: object; status?: object }): void {
  const path = resourcePath(resourceOf(object), object.metadata.namespace);
  api.handle({ method: 'POST', path, query: {}, body: object, contentType: 'application/json' });
}

/** As join leaves the member behind. */
function grant(lend: string[], hostId = OURS): void {
  send(member, namespace('spillway-access'));
  send(member, recordOf({ hostId, member: 'east', lent: lend }));
  for (const object of grantedObjects({ lend, nodeMetrics: true, quota: { pods: '5' } }, hostId)) {
    if (object.metadata.name !== 'spillway-access') send(member, object);
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
  const labels = { [RENEWED_TOKEN_LABEL]: 'true' };
  send(host, { apiVersion: 'v1', kind: 'Secret', metadata: { ...secretRef, labels } });
}

async function leave(...words: string[]): Promise<{ code: number; stdout: string; notes: string }> {
  const terminal = new FakeTerminal({ env: { HOME: folder } });
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

  it.each<[string, () => void]>([
    ['another host has joined', () => send(member, recordOf({ hostId: 'another0host0000', member: 'b', lent: [] }))],
    [
      'another host has anything there',
      () => send(member, namespace('b', { 'spillway.dev/host': 'another0host0000' })),
    ],
  ])('keeps account and roles when %s', async (_what, make) => {
    grant(['shop']);
    make();
    const before = left().filter((name) => /ClusterRole|ServiceAccount|Policy/.test(name));
    const { code, notes, stdout } = await leave(...IN_EAST);
    expect(code).toBe(0);
    expect(left().filter((name) => /ClusterRole|ServiceAccount|Policy/.test(name))).toEqual(before);
    expect(stdout).toContain('rolebinding.rbac.authorization.k8s.io/spillway-workloads deleted\n');
    expect(stdout).toContain(`configmap/joined-by-${OURS} deleted\n`);
    expect(notes).toContain('other hosts use them too: another0host0000');
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
    for (const object of grantedObjects({ lend: [], nodeMetrics: false, quota: {} }, OURS)) send(member, object);
    const before = left();
    const { code, notes } = await leave(...IN_EAST);
    expect([code, left()]).toEqual([0, before]);
    expect(notes).toContain('was made without join');
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
