import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { until } from '../../hack/until.ts';
import { runProgram } from '../../src/cli/program.ts';
import { serveMemoryApi, type MemoryApiServer } from '../fixtures/memory-api-server.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { FakeTerminal } from './fake-terminal.ts';
import { writeKubeconfig } from './served-kubeconfig.ts';

const SYSTEM = '/api/v1/namespaces/spillway-system';
const REFERENCES = '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/spillway-references';
const CONTROLLED = {
  ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web', uid: 'rs', controller: true }],
};

let host: MemoryApi;
let server: MemoryApiServer;
let folder: string;
/** What is refused, beside what the server refuses itself. */
let refused: (method: string, path: string) => boolean;

beforeEach(async () => {
  host = new MemoryApi();
  server = await serveMemoryApi(host);
  folder = mkdtempSync(join(tmpdir(), 'spillway-uninstall-'));
  writeKubeconfig(join(folder, 'kubeconfig'), { c: server });
  refused = () => false;
  host.fault = (request) => {
    const { method, path } = request;
    if (refused(method, path)) return { code: 403, reason: 'Forbidden', message: 'you may not' };
    if (request.contentType !== 'application/apply-patch+yaml') return undefined;
    // Near enough for what one who applies sets and never takes off.
    request.contentType = 'application/merge-patch+json';
    const status = { conditions: [{ type: 'Established', status: 'True' }] };
    if (!host.objects.has(path))
      host.put(path, { metadata: {}, ...(path.includes('/customresource') ? { status } : {}) });
    return undefined;
  };
});
afterEach(async () => {
  await server.close();
  rmSync(folder, { recursive: true });
});

async function run(...words: string[]): Promise<{ code: number; stdout: string; notes: string }> {
  const terminal = new FakeTerminal({ env: { HOME: folder } });
  const code = await runProgram([...words, '--kubeconfig', join(folder, 'kubeconfig')], terminal);
  return { code, stdout: terminal.stdout, notes: terminal.notes.join('\n') };
}
const install = async (...words: string[]) => await run('install', '--no-wait', ...words);
const upgrade = async (...words: string[]) => await run('upgrade', '--no-wait', ...words);

/** Paths of all that is there; what is in the namespace of Spillway goes with it. */
const left = (): string[] => [...host.objects.keys()].filter((path) => !path.startsWith(`${SYSTEM}/`));

function makePod(name: string, spec: object, metadata: object = CONTROLLED): void {
  const body = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'shop', ...metadata },
    spec: { containers: [{ name: 'main', image: 'app' }], ...spec },
  };
  host.handle({
    method: 'POST',
    path: '/api/v1/namespaces/shop/pods',
    query: {},
    body,
    contentType: 'application/json',
  });
}

describe('what was applied before an upgrade failed', () => {
  /** The last thing that it would have applied. */
  const FAILS = '/apis/rbac.authorization.k8s.io/v1/clusterroles/spillway-manager';
  beforeEach(async () => {
    expect((await install()).code).toBe(0);
    refused = (method, path) => method === 'PATCH' && path === FAILS;
    expect((await upgrade('--host-identity=ServiceAccount', '--multi-cluster=Exchange')).code).toBe(3);
    refused = () => false;
    // As if it had come so far.
    if (!host.objects.has(REFERENCES)) host.put(REFERENCES, { metadata: {} });
  });

  it('goes with the rest', async () => {
    expect((await run('uninstall', '--purge')).code).toBe(0);
    expect(left().filter((path) => !path.includes('multicluster.x-k8s.io'))).toEqual([]);
  });

  it('goes when it is not chosen any more, and stays as long as it is', async () => {
    expect((await upgrade()).code).toBe(0);
    expect(host.objects.has(REFERENCES)).toBe(true);
    refused = (method, path) => method === 'PATCH' && path === FAILS;
    expect((await upgrade('--host-identity=Auto')).code).toBe(3);
    refused = () => false;
    const { code, stdout } = await upgrade('--host-identity=Auto');
    expect([code, stdout]).toEqual([
      0,
      expect.stringContaining('clusterrolebinding.rbac.authorization.k8s.io/spillway-references deleted'),
    ]);
    expect(host.objects.has(REFERENCES)).toBe(false);
  });

  it('stays while a member exchanges Services, as without one that failed', async () => {
    const body = {
      apiVersion: 'spillway.dev/v1alpha1',
      kind: 'MemberCluster',
      metadata: { name: 'east' },
      spec: { credentials: { secretRef: { namespace: 'a', name: 'b' } }, services: { multiCluster: 'Exchange' } },
    };
    const path = '/apis/spillway.dev/v1alpha1/memberclusters';
    host.handle({ method: 'POST', path, query: {}, body, contentType: 'application/json' });
    const { code, notes } = await upgrade('--multi-cluster=None');
    expect([code, notes]).toEqual([1, expect.stringContaining('the rights to exchange Services are in use')]);
  });
});

it('an install that fails first thing is remembered, too', async () => {
  refused = (method, path) => method === 'PATCH' && path.endsWith('/clusterroles/spillway-manager');
  expect((await install('--host-identity=ServiceAccount')).code).toBe(3);
  refused = () => false;
  host.put(REFERENCES, { metadata: {} });
  expect((await install('--host-identity=Auto')).code).toBe(0);
  expect(host.objects.has(REFERENCES)).toBe(false);
});

describe('an uninstall that failed', () => {
  it.each([
    ['a role', '/clusterroles/spillway-manager'],
    ['a kind', '/customresourcedefinitions/placementpolicies.spillway.dev'],
    ['the namespace', SYSTEM],
  ])('can be repeated, to the end: %s might not be deleted', async (_what, end) => {
    await install();
    // Of another version.
    const [former, kind] = [
      '/apis/rbac.authorization.k8s.io/v1/clusterroles/former',
      '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/former.spillway.dev',
    ];
    for (const path of [former, kind]) host.put(path, { metadata: {} });
    remember({ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name: 'former' } });
    // What is in a namespace goes with it.
    host.listeners.add(() => {
      const path = `${SYSTEM}/configmaps/spillway-installation`;
      if (!host.objects.has(SYSTEM) && host.objects.has(path)) host.delete(path);
    });
    remember({
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'former.spillway.dev' },
    });
    refused = (method, path) => method === 'DELETE' && path.endsWith(end);
    expect((await run('uninstall', '--purge')).code).toBe(3);
    refused = () => false;
    expect((await run('uninstall', '--purge')).code).toBe(0);
    expect(left()).toEqual([]);
  });

  it('can be repeated while the namespace is ending', async () => {
    await install();
    host.edit(SYSTEM, { spec: { finalizers: ['kubernetes'] } });
    const { code, notes } = await run('uninstall', '--timeout=1');
    expect([code, notes]).toEqual([1, expect.stringContaining('namespace spillway-system is gone: not within 1 s')]);
    const again = run('uninstall', '--timeout=20');
    const asked = (): boolean => host.requests('DELETE').filter(({ path }) => path === SYSTEM).length > 1;
    await until('it is deleted again', asked, { intervalMs: 5 });
    host.delete(SYSTEM);
    expect((await again).code).toBe(0);
  });

  /** As if a former version had applied it. */
  function remember(object: object): void {
    const path = `${SYSTEM}/configmaps/spillway-installation`;
    const { data } = host.objects.get(path) as unknown as { data: { objects: string } };
    host.edit(path, { data: { objects: JSON.stringify([object, ...(JSON.parse(data.objects) as object[])]) } });
  }
});

describe('pods that only Spillway lets go', () => {
  const WAITING = { schedulerName: 'spillway-scheduler' };
  const GATED = { schedulingGates: [{ name: 'spillway.dev/gang' }] };

  it.each([
    ['wait for its scheduler', WAITING],
    ['wait at the gate of gangs', GATED],
  ])('are not left behind without a word: they %s', async (_what, spec) => {
    await install();
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f', 'g']) makePod(name, spec);
    makePod('alone', spec, {});
    const before = left();
    for (const words of [[], ['--dry-run=server']]) {
      const { code, stdout, notes } = await run('uninstall', ...words);
      expect([code, stdout, left()]).toEqual([1, '', before]);
      expect(notes).toContain('8 pods wait for it\n');
      expect(notes).toContain(
        'shop/a, shop/b, shop/c, shop/d, shop/e, 2 more; without a controller, so that nobody makes others: shop/alone\n',
      );
      expect(notes).toContain('add --leave-waiting-pods, and delete them when Spillway is gone');
    }
    expect((await run('uninstall', '--leave-waiting-pods', '--dry-run=server')).code).toBe(5);
    expect(left()).toEqual(before);
    const { code, notes } = await run('uninstall', '--leave-waiting-pods');
    expect([code, notes]).toEqual([
      5,
      expect.stringContaining('note: 8 pods wait for Spillway, and without it for ever: shop/a,'),
    ]);
    expect(host.objects.has(SYSTEM)).toBe(false);
    expect(host.requests('DELETE').filter(({ path }) => path.includes('/pods/'))).toEqual([]);
  });

  it('are told of when they come last', async () => {
    await install();
    host.listeners.add(() => {
      if (!host.objects.has(SYSTEM) && !host.objects.has('/api/v1/namespaces/shop/pods/late')) makePod('late', WAITING);
    });
    const { code, notes } = await run('uninstall');
    expect([code, notes]).toEqual([
      5,
      expect.stringContaining('note: 1 pod waits for Spillway, and without it for ever: shop/late.'),
    ]);
  });

  it('are none that have a node, have ended, or wait for others', async () => {
    await install();
    makePod('bound', { ...WAITING, nodeName: 'local' });
    makePod('others', { schedulerName: 'default-scheduler', schedulingGates: [{ name: 'example.com/gate' }] });
    makePod('ended', WAITING);
    host.edit('/api/v1/namespaces/shop/pods/ended', { status: { phase: 'Failed' } });
    expect((await run('uninstall')).code).toBe(0);
  });

  it('are not those of a scheduler that is not part of the installation', async () => {
    await install('--scheduler=Own');
    makePod('web', WAITING);
    expect((await run('uninstall')).code).toBe(0);
  });
});
