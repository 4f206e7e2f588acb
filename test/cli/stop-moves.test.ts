import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { runProgram } from '../../src/cli/program.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { type MemoryApiServer, serveMemoryApi } from '../fixtures/memory-api-server.ts';
import { FakeTerminal } from './fake-terminal.ts';
import { writeKubeconfig } from './served-kubeconfig.ts';

const LEASES = '/apis/coordination.k8s.io/v1/namespaces/spillway-system/leases';
const LEASE = `${LEASES}/spillway-descheduler`;
const ANNOTATION = 'spillway.dev/moves-stopped';
let folder: string;
let api: MemoryApi;
let server: MemoryApiServer;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'stop-moves-'));
  api = new MemoryApi();
  server = await serveMemoryApi(api);
  writeKubeconfig(join(folder, 'config'), { host: server });
  const body = {
    kind: 'Lease',
    metadata: {
      name: 'spillway-descheduler',
      namespace: 'spillway-system',
      annotations: { 'spillway.dev/process': 'x' },
    },
    spec: { holderIdentity: 'a' },
  };
  api.handle({ method: 'POST', path: LEASES, query: {}, body, contentType: 'application/json' });
});
afterEach(async () => {
  await server.close();
  rmSync(folder, { recursive: true });
});

async function run(...words: string[]): Promise<string> {
  const terminal = new FakeTerminal();
  const code = await runProgram([...words, '--kubeconfig', join(folder, 'config')], terminal);
  return code === 0 ? terminal.stdout : `${code} ${terminal.notes.join('\n')}`;
}
const annotations = (): unknown => api.objects.get(LEASE)?.metadata.annotations;

it('puts the annotation on the Lease, with the reason, and takes it off; nothing else is changed', async () => {
  const before = { 'spillway.dev/process': 'x' };
  expect(await run('resume-moves')).toBe('lease/spillway-descheduler moves are not stopped\n');
  expect(await run('stop-moves', '--reason', 'INC-7')).toBe('lease/spillway-descheduler moves stopped\n');
  expect(annotations()).toEqual({ ...before, [ANNOTATION]: 'INC-7' });
  expect(await run('stop-moves', '--reason', 'INC-8')).toBe(
    'lease/spillway-descheduler moves stopped, before: INC-7\n',
  );
  expect(annotations()).toEqual({ ...before, [ANNOTATION]: 'INC-8' });
  expect(await run('resume-moves')).toBe('lease/spillway-descheduler moves may begin again\n');
  expect([annotations(), api.objects.get(LEASE)?.['spec']]).toEqual([before, { holderIdentity: 'a' }]);
});

it('keeps the reason of whoever stopped before, and says so, unless there is another one', async () => {
  expect(await run('stop-moves')).toBe('lease/spillway-descheduler moves stopped\n');
  expect(await run('stop-moves')).toBe('lease/spillway-descheduler moves are stopped already\n');
  expect(await run('stop-moves', '--reason', 'INC-7')).toBe('lease/spillway-descheduler moves stopped\n');
  const { length } = api.requests('PATCH');
  expect(await run('stop-moves')).toBe(
    'lease/spillway-descheduler moves are stopped already, and the reason stays: INC-7\n',
  );
  expect([annotations(), api.requests('PATCH').length]).toMatchObject([{ [ANNOTATION]: 'INC-7' }, length]);
  expect(await run('stop-moves', '--reason', '')).toBe('lease/spillway-descheduler moves stopped, before: INC-7\n');
  expect(annotations()).toMatchObject({ [ANNOTATION]: '' });
});

it('sends nothing in a dry run of the client, and stores nothing in one of the server', async () => {
  expect(await run('stop-moves', '--dry-run=client')).toBe('lease/spillway-descheduler moves stopped (dry run)\n');
  expect(api.requests('PATCH')).toEqual([]);
  expect(await run('stop-moves', '--dry-run=server')).toBe(
    'lease/spillway-descheduler moves stopped (server dry run)\n',
  );
  expect(api.requests('PATCH')).toMatchObject([{ query: { dryRun: 'All' } }]);
});

it.each(['stop-moves', 'resume-moves'])('%s says what it means that there is no Lease', async (verb) => {
  api.delete(LEASE);
  const said = await run(verb);
  expect(said).toMatch(/^4 error: there is no Lease spillway-descheduler in namespace spillway-system\n/);
  expect(said).toContain('no manager with component scheduler has run there yet, so nothing is moved');
});
