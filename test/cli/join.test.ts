import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { hostIdOf } from '../../src/api/marks.ts';
import { runProgram } from '../../src/cli/program.ts';
import { serveMemoryApi, type MemoryApiServer } from '../fixtures/memory-api-server.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { FakeTerminal } from './fake-terminal.ts';
import { writeKubeconfig } from './served-kubeconfig.ts';

const HOST_UID = '11111111-1111-4111-8111-111111111111';
const OURS = hostIdOf(HOST_UID);
const LEVEL = 'pod-security.kubernetes.io/enforce';
const LENT = 'spillway.dev/allow-host';
const RECORD = `/api/v1/namespaces/spillway-access/configmaps/joined-by-${OURS}`;

let host: MemoryApi;
let member: MemoryApi;
let servers: MemoryApiServer[];
let folder: string;

beforeEach(async () => {
  host = new MemoryApi({ uid: () => HOST_UID });
  member = new MemoryApi();
  servers = [await serveMemoryApi(host), await serveMemoryApi(member)];
  for (const api of [host, member]) makeNamespace(api, 'kube-system');
  folder = mkdtempSync(join(tmpdir(), 'spillway-join-'));
  const [hostServer, memberServer] = servers;
  if (hostServer === undefined || memberServer === undefined) throw new Error('no servers');
  writeKubeconfig(join(folder, 'kubeconfig'), { host: hostServer, east: memberServer });
  makeObject('/api/v1/namespaces/kube-system/configmaps', 'ConfigMap', 'kube-root-ca.crt', {
    data: { 'ca.crt': 'CA' },
  });
  member.fault = (request) => {
    // Whether credentials work is not what is looked at here.
    if (request.path.endsWith('/token')) return { code: 403, reason: 'Forbidden', message: 'no tokens' };
    if (request.contentType !== 'application/apply-patch+yaml') return undefined;
    // Near enough for what one who applies sets and never takes off.
    request.contentType = 'application/merge-patch+json';
    if (!member.objects.has(request.path)) member.put(request.path, { metadata: {} });
    return undefined;
  };
});
afterEach(async () => {
  for (const server of servers) await server.close();
  rmSync(folder, { recursive: true });
});

function makeNamespace(api: MemoryApi, name: string, labels: Record<string, string> = {}): void {
  makeObject('/api/v1/namespaces', 'Namespace', name, { metadata: { name, labels } }, api);
}

function makeObject(path: string, kind: string, name: string, more: object, api = member): void {
  const body = { apiVersion: 'v1', kind, metadata: { name }, ...more };
  api.handle({ method: 'POST', path, query: {}, body, contentType: 'application/json' });
}

/** As far as the rights in the member. */
async function runJoin(...words: string[]): Promise<{ code: number; notes: string }> {
  const terminal = new FakeTerminal({ env: { HOME: folder } });
  const flags = ['--kubeconfig', join(folder, 'kubeconfig'), '--context=host', '--member-context=east'];
  const server = '--server=https://east.example:6443';
  const code = await runProgram(['join', 'east', ...flags, server, ...words], terminal);
  return { code, notes: terminal.notes.join('\n') };
}
const labels = (name: string): unknown => member.objects.get(`/api/v1/namespaces/${name}`)?.metadata.labels;

describe('namespaces that are lent to a host that joins', () => {
  it('are made with a level, and keep it when the same is said again', async () => {
    await runJoin('--lend=shop');
    expect(labels('shop')).toEqual({ [LENT]: OURS, [LEVEL]: 'baseline' });
    await runJoin('--lend=shop');
    expect(labels('shop')).toEqual({ [LENT]: OURS, [LEVEL]: 'baseline' });
  });

  it.each(['privileged', 'baseline', 'restricted'])('keep the level %s that they have', async (level) => {
    makeNamespace(member, 'shop', { [LEVEL]: level, team: 'a' });
    await runJoin('--lend=shop');
    expect(labels('shop')).toEqual({ [LENT]: OURS, [LEVEL]: level, team: 'a' });
  });

  it('stay lent to any host where they are', async () => {
    makeNamespace(member, 'shop', { [LENT]: 'any' });
    await runJoin('--lend=shop');
    expect(labels('shop')).toEqual({ [LENT]: 'any', [LEVEL]: 'baseline' });
  });

  it.each<[string, string]>([
    [LENT, 'or, where that host is to have it no more: kubectl label namespace shop spillway.dev/allow-host- there'],
    ['spillway.dev/host', 'lend another namespace: that host made this one'],
  ])('are not taken from another host, whose by %s they are', async (label, fix) => {
    makeNamespace(member, 'shop', { [label]: 'another0host0000' });
    const { code, notes } = await runJoin('--lend=bank', '--lend=shop');
    expect(code).toBe(1);
    expect(notes).toContain("namespace shop of the member is another host's, and nothing was done");
    expect(notes).toContain(`its label ${label} says another0host0000`);
    expect(notes).toContain(fix);
    expect(member.seen.filter(({ method }) => method !== 'GET')).toEqual([]);
  });
});

it('a member writes down what any join has granted', async () => {
  const written = (): unknown => member.objects.get(RECORD)?.['data'];
  const NO_MORE = { nodeMetrics: 'false', services: 'false', multiCluster: 'false', privileged: 'false' };
  await runJoin('--lend=shop');
  expect(written()).toEqual({ member: 'east', lent: 'shop', dedicated: 'false', ...NO_MORE });
  await runJoin('--lend=bank', '--node-metrics');
  expect(written()).toEqual({ member: 'east', lent: 'bank shop', dedicated: 'false', ...NO_MORE, nodeMetrics: 'true' });
  await runJoin();
  expect(written()).toEqual({ member: 'east', lent: 'bank shop', dedicated: 'true', ...NO_MORE, nodeMetrics: 'true' });
});

describe('privileged pods', () => {
  const BINDING = '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/spillway-privileged';

  it('may be in namespaces that the host makes only where the owner of the member says so, who is told what that means', async () => {
    expect((await runJoin()).notes).not.toContain('privileged');
    expect(member.objects.has(BINDING)).toBe(false);
    const { notes } = await runJoin('--allow-privileged');
    expect(notes).toContain('can do everything on the nodes that they run on. So can whoever steals the credentials');
    expect(member.objects.get(BINDING)).toMatchObject({ roleRef: { name: 'spillway-privileged' } });
    expect(member.objects.get(RECORD)).toMatchObject({ data: { privileged: 'true' } });
  });

  it('have no place in namespaces that are lent: nothing is done', async () => {
    const { code, notes } = await runJoin('--lend=shop', '--allow-privileged');
    expect(code).toBe(2);
    expect(notes).toContain(
      'kubectl label --overwrite namespace NAMESPACE pod-security.kubernetes.io/enforce=privileged',
    );
    expect(member.seen.filter(({ method }) => method !== 'GET')).toEqual([]);
  });
});
