import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { runProgram } from '../../src/cli/program.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { type MemoryApiServer, serveMemoryApi } from '../fixtures/memory-api-server.ts';
import { AGAINST_BUDGET } from '../fixtures/eviction-refusals.ts';
import { FakeTerminal } from './fake-terminal.ts';
import { writeKubeconfig } from './served-kubeconfig.ts';

const MEMBER = '/apis/spillway.dev/v1alpha1/memberclusters/east';
const UNDONE = 'note: member east stays cordoned, so no new pods come; kubectl spillway uncordon east undoes that';
let folder: string;
let api: MemoryApi;
let server: MemoryApiServer;
let terminal: FakeTerminal;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'drain-'));
  api = new MemoryApi();
  server = await serveMemoryApi(api);
  writeKubeconfig(join(folder, 'config'), { host: server });
  terminal = new FakeTerminal();
  api.put(MEMBER, {
    apiVersion: 'spillway.dev/v1alpha1',
    kind: 'MemberCluster',
    metadata: { name: 'east' },
    spec: { credentials: { secretRef: { namespace: 'spillway-system', name: 'east' } } },
  });
  isCordoned(true);
  const ownerReferences = [{ apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'db', uid: 'db', controller: true }];
  api.put('/api/v1/namespaces/shop/pods/db-0', {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'db-0', namespace: 'shop', ownerReferences },
    spec: { nodeName: 'east', containers: [] },
    status: { phase: 'Running' },
  });
});
afterEach(async () => {
  await server.close();
  rmSync(folder, { recursive: true });
});

/** What the manager makes of it. */
function isCordoned(unschedulable: boolean): void {
  api.put('/api/v1/nodes/east', {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'east', labels: { 'spillway.dev/member': 'east' } },
    spec: { providerID: 'spillway://east/east', unschedulable },
  });
}

const drain = async (...words: string[]): Promise<number> =>
  await runProgram(['drain', 'east', '--kubeconfig', join(folder, 'config'), ...words], terminal);
const isKept = (): unknown => api.objects.get(MEMBER)?.['spec'];

it('that is late says that the member stays cordoned, and how to undo that', async () => {
  api.fault = ({ path }) => (path.endsWith('/eviction') ? AGAINST_BUDGET : undefined);
  expect(await drain('--timeout', '1')).toBe(1);
  const notes = terminal.notes.join('\n');
  expect(notes).toContain('pod shop/db-0 waits: its disruption budget allows no eviction now');
  expect(notes).toContain(
    `${UNDONE}\nerror: pod shop/db-0 was not evicted in time: its disruption budget allows no eviction now`,
  );
  expect(isKept()).toMatchObject({ unschedulable: true });
});

it('in a dry run of the server says of pods that budgets keep that they would be waited for', async () => {
  api.fault = ({ path }) => (path.endsWith('/eviction') ? AGAINST_BUDGET : undefined);
  expect(await drain('--dry-run=server')).toBe(0);
  expect(terminal.stdout).toContain(
    'membercluster/east drained, once disruption budgets let 1 pod go (server dry run)\n',
  );
  api.fault = undefined;
  expect(await drain('--dry-run=server')).toBe(0);
  expect(terminal.stdout).toContain('membercluster/east drained (server dry run)\n');
});

it('that a cluster with too much to do holds up does not blame a budget', async () => {
  api.fault = ({ path }) => (path.endsWith('/eviction') ? { code: 429, reason: 'TooManyRequests' } : undefined);
  expect(await drain('--timeout', '1')).toBe(1);
  const notes = terminal.notes.join('\n');
  expect(notes).toContain(
    'pod shop/db-0 waits: the API server, or a webhook of it, has too much to do to evict it now',
  );
  expect(notes).toContain('error: pod shop/db-0 was not evicted in time: the API server, or');
  expect(notes).not.toContain('budget');
  expect(await drain('--dry-run=server', '--timeout', '1')).toBe(1);
  expect(terminal.stdout).not.toContain('drained');
});

it('that is told of a conflict asks again, unless the pod is another one by now', async () => {
  const message = 'Operation cannot be fulfilled on poddisruptionbudgets.policy "db": the object has been modified';
  api.fault = ({ path }) => (path.endsWith('/eviction') ? { code: 409, reason: 'Conflict', message } : undefined);
  expect(await drain('--timeout', '1')).toBe(1);
  expect(terminal.notes.join('\n')).toContain('error: pod shop/db-0 was not evicted in time: the API server, or');
});

it('in a dry run of a cluster that goes on having too much to do ends, and says of how many pods it does not know', async () => {
  let asked = 0;
  api.fault = ({ path }) => {
    if (!path.endsWith('/eviction')) return undefined;
    asked += 1;
    return { code: 429, reason: 'TooManyRequests' };
  };
  expect(await drain('--dry-run=server')).toBe(1);
  expect(asked).toBe(4);
  const notes = terminal.notes.join('\n');
  expect(notes).toContain('error: it is not known of 1 pod of east whether they may go\nreason: the API server, or a');
  expect(terminal.stdout).not.toContain('drained');
});

it('that a webhook denies says what it said, whatever its code', async () => {
  const message = 'admission webhook "keep.example" denied the request: not on Fridays';
  api.fault = ({ path }) =>
    path.endsWith('/eviction') ? { code: 429, reason: 'TooManyRequests', message } : undefined;
  expect(await drain('--timeout', '1')).toBe(1);
  expect(terminal.notes.join('\n')).toContain('not on Fridays');
});

it('that no manager listens to says so, too', async () => {
  isCordoned(false);
  expect(await drain('--timeout', '1')).toBe(1);
  expect(terminal.notes.join('\n')).toMatch(
    new RegExp(`${UNDONE}\nerror: the virtual nodes of east are cordoned: not`),
  );
});

it('that changed nothing does not', async () => {
  api.edit('/api/v1/namespaces/shop/pods/db-0', { metadata: { ownerReferences: null } });
  expect(await drain()).toBe(1);
  expect(terminal.notes.join('\n')).toContain('it has no controller');
  expect(await drain('--dry-run=client', '--force')).toBe(0);
  expect(terminal.notes.join('\n')).not.toContain(UNDONE);
});

it('that is done says nothing about it', async () => {
  expect(await drain()).toBe(0);
  expect(terminal.stdout).toContain('membercluster/east drained\n');
  expect(terminal.notes).not.toContain(UNDONE);
});

it('that somebody undoes ends with an error, evicts nothing more, and does not say drained', async () => {
  let asked = 0;
  api.fault = ({ path }) => {
    if (!path.endsWith('/eviction')) return undefined;
    asked += 1;
    api.edit(MEMBER, { spec: { unschedulable: null } });
    return AGAINST_BUDGET;
  };
  expect(await drain()).toBe(1);
  expect(asked).toBe(1);
  const notes = terminal.notes.join('\n');
  expect(notes).toContain(
    'error: member east is not drained: it takes new pods again\nreason: spec.unschedulable of its MemberCluster was taken back meanwhile; 0 pods were evicted before',
  );
  expect(notes).toContain('then kubectl spillway drain east to go on');
  expect(notes).not.toContain('stays cordoned');
  expect(terminal.stdout).not.toContain('drained\n');
});

it('that somebody undoes right before it is done says so, too', async () => {
  api.fault = ({ path }) => {
    if (path.endsWith('/eviction')) isCordoned(false);
    return undefined;
  };
  expect(await drain()).toBe(1);
  expect(terminal.notes.join('\n')).toContain(
    'reason: east is not cordoned any more meanwhile; 1 pod was evicted before',
  );
  expect(terminal.stdout).not.toContain('drained\n');
});
