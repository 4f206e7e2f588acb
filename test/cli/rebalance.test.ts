import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { runProgram } from '../../src/cli/program.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { type MemoryApiServer, serveMemoryApi } from '../fixtures/memory-api-server.ts';
import { FakeTerminal } from './fake-terminal.ts';
import { writeKubeconfig } from './served-kubeconfig.ts';

const PATH = '/apis/spillway.dev/v1alpha1/workloadrebalancers';
let folder: string;
let api: MemoryApi;
let server: MemoryApiServer;
let timer: NodeJS.Timeout | undefined;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'rebalance-'));
  api = new MemoryApi();
  server = await serveMemoryApi(api);
  writeKubeconfig(join(folder, 'config'), { host: server });
  for (const name of ['web', 'api']) {
    const body = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name, namespace: 'shop' } };
    api.put(`/apis/apps/v1/namespaces/shop/deployments/${name}`, body);
  }
});
afterEach(async () => {
  clearInterval(timer);
  await server.close();
  rmSync(folder, { recursive: true });
});

/** The manager answers whatever is there with that status. */
function answer(status: () => object): void {
  timer = setInterval(() => {
    for (const key of api.objects.keys()) if (key.startsWith(PATH)) api.edit(key, { status: { ...status() } });
  }, 20);
}

const words = (...more: string[]): string[] => {
  const config = join(folder, 'config');
  return ['rebalance', '-n', 'shop', '--kubeconfig', config, 'deploy/web', 'deploy/api', ...more];
};
const workload = (name: string): object => ({ apiVersion: 'apps/v1', kind: 'Deployment', namespace: 'shop', name });

it('a dry run on the client sends nothing, and says who knows what would be moved', async () => {
  const terminal = new FakeTerminal();
  expect(await runProgram(words('--dry-run=client'), terminal)).toBe(0);
  expect(terminal.stdout).toMatch(/^workloadrebalancer\.spillway\.dev\/web-\w+ created \(dry run\)\n$/);
  expect(terminal.notes.join('\n')).toContain('use --dry-run=server');
  expect(api.requests('POST')).toEqual([]);
});

it('a dry run on the server prints what the manager would move, and why, and leaves nothing behind', async () => {
  const move = { pod: 'web-1', from: 'east', to: 'local', why: 'Repatriate: \u001b[31mlocal comes first' };
  const asked: unknown[] = [];
  answer(() => {
    asked.push(...[...api.objects].filter(([key]) => key.startsWith(PATH)).map(([, one]) => one['spec']));
    return {
      finishTime: '2026-01-01T00:00:00Z',
      observedWorkloads: [
        {
          workload: workload('web'),
          result: 'Successful',
          reason: 'DryRun',
          message: 'now they would wait',
          moves: [move],
        },
        { workload: workload('api'), result: 'Failed', reason: 'NoPolicy', message: 'none' },
      ],
    };
  });
  const terminal = new FakeTerminal();
  expect(await runProgram(words('--dry-run=server'), terminal)).toBe(5);
  expect(terminal.stdout.replace(/web-[0-9a-f]{6}/, 'web-x')).toBe(
    'workloadrebalancer.spillway.dev/web-x created (server dry run)\n' +
      'deployment/web: 1 pod would be moved: now they would wait\n' +
      '  web-1: member east to local (Repatriate: [31mlocal comes first)\n' +
      'deployment/api Failed: NoPolicy: none\n',
  );
  expect(asked[0]).toMatchObject({ dryRun: true, ttlSecondsAfterFinished: 60 });
  expect([...api.objects.keys()].filter((key) => key.startsWith(PATH))).toEqual([]);
});

it('asks nothing of a CRD that does not know dry runs: it would be done', async () => {
  api.fault = ({ method, path, body }) => {
    if (method === 'POST' && path === PATH) delete (body as { spec: { dryRun?: boolean } }).spec.dryRun;
    return undefined;
  };
  const terminal = new FakeTerminal();
  expect(await runProgram(words('--dry-run=server'), terminal)).toBe(1);
  expect(terminal.notes.join('\n')).toContain('fix: kubectl spillway upgrade');
  expect([...api.objects.keys()].filter((key) => key.startsWith(PATH))).toEqual([]);
});

it('says why pods are not moved that it waits for, once for all workloads', async () => {
  const message = 'all moves are stopped (INC-7: \u001b[31mAnna)';
  const observedWorkloads = ['web', 'api'].map((name) => ({
    workload: workload(name),
    reason: 'Progressing',
    message,
  }));
  answer(() => ({ observedWorkloads }));
  const terminal = new FakeTerminal();
  await runProgram(words('--wait', '--timeout', '1'), terminal);
  const notes = terminal.notes.join('\n');
  expect(notes).toMatch(
    /waiting: pods of deployment\/web, deployment\/api to be where they would go: all moves are stopped \(INC-7: /,
  );
  expect(notes.match(/reason: .*/)?.[0]).toMatch(/^reason: pods of deployment\/web.*stopped \(INC-7/);
  expect(notes).not.toContain('\u001B');
  expect(
    notes
      .match(/waiting: .*/g)
      ?.at(-1)
      ?.match(/all moves/g),
  ).toHaveLength(1);
});
