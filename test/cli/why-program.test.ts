import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { runProgram } from '../../src/cli/program.ts';
import { serveMemoryApi, type MemoryApiServer } from '../fixtures/memory-api-server.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { FakeTerminal } from './fake-terminal.ts';
import { writeKubeconfig } from './served-kubeconfig.ts';

/** As the terminal has it. */
const NOW = Date.parse('2026-03-01T12:00:00Z');
const LEASE = '/apis/coordination.k8s.io/v1/namespaces/spillway-system/leases/spillway-member-east';

let api: MemoryApi;
let server: MemoryApiServer;
let folder: string;

beforeEach(async () => {
  api = new MemoryApi();
  server = await serveMemoryApi(api);
  folder = mkdtempSync(join(tmpdir(), 'spillway-why-'));
  writeKubeconfig(join(folder, 'kubeconfig'), { c: server });
  api.put('/api/v1/nodes/pool', {
    metadata: { labels: { 'spillway.dev/member': 'east' } },
    spec: { providerID: 'spillway://east/pool' },
    status: { conditions: [{ type: 'Ready', status: 'Unknown', reason: 'MemberUnreachable' }] },
  });
  api.put('/api/v1/namespaces/shop/pods/web', {
    metadata: { namespace: 'shop' },
    spec: { nodeName: 'pool', containers: [{ name: 'main' }] },
    status: { phase: 'Pending' },
  });
});
afterEach(async () => {
  await server.close();
  rmSync(folder, { recursive: true });
});

async function why(): Promise<{ out: string; notes: string }> {
  const terminal = new FakeTerminal({ env: { HOME: folder } });
  const code = await runProgram(['why', 'web', '-n', 'shop', '--kubeconfig', join(folder, 'kubeconfig')], terminal);
  expect(code, terminal.notes.join()).toBe(0);
  return { out: terminal.stdout.replaceAll(/\s+/g, ' '), notes: terminal.notes.join('\n') };
}

const renewed = (secondsAgo: number): void => {
  const renewTime = new Date(NOW - secondsAgo * 1000).toISOString();
  const spec = { holderIdentity: 'manager_1', leaseDurationSeconds: 60, renewTime };
  api.put(LEASE, { metadata: { namespace: 'spillway-system' }, spec });
};

it('says that all moves are stopped, of a pod in a member', async () => {
  const annotations = { 'spillway.dev/moves-stopped': 'INC-7' };
  const lease = '/apis/coordination.k8s.io/v1/namespaces/spillway-system/leases/spillway-descheduler';
  api.put(lease, { metadata: { namespace: 'spillway-system', annotations } });
  const { out } = await why();
  expect(out).toContain('Spillway does not move it out of its member: all moves are stopped (annotation');
  expect(out).toContain('spillway-descheduler: INC-7).');
});

it('says of a pod that was made with its node that no scheduler was asked, and of one that was bound who did that', async () => {
  expect((await why()).out).toContain('default-scheduler bound it to virtual node pool');
  const managedFields = [
    { manager: 'kubectl-create', operation: 'Update', fieldsV1: { 'f:spec': { 'f:nodeName': {} } } },
  ];
  api.edit('/api/v1/namespaces/shop/pods/web', { metadata: { managedFields } });
  const { out } = await why();
  expect(out).toContain(
    'It was made with spec.nodeName, for virtual node pool, which stands for member east: no scheduler',
  );
  expect(out).not.toContain('default-scheduler');
});

describe('a virtual node that failed with its member, as the Lease of the member tells', () => {
  const UNSERVED = 'No manager serves virtual node pool, so nothing was made in member east';

  it.each<[string, () => void, boolean]>([
    ['is served', () => renewed(1), false],
    ['is served no more: it is stale', () => renewed(600), true],
    ['is served no more: there is none', () => undefined, true],
  ])('%s', async (_what, told, isUnserved) => {
    told();
    expect((await why()).out.includes(UNSERVED)).toBe(isUnserved);
  });

  it('is not judged by who may not read it', async () => {
    const message = 'leases.coordination.k8s.io is forbidden';
    api.fault = ({ path }) => (path === LEASE ? { code: 403, reason: 'Forbidden', message } : undefined);
    const { out, notes } = await why();
    expect(out).not.toContain(UNSERVED);
    expect(notes).toMatch(/more could be said if you were allowed to get leases/);
  });
});
