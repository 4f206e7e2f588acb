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

it.each(['client', 'server'])('does not pretend that a dry run on the %s says what would be moved', async (mode) => {
  const terminal = new FakeTerminal();
  const words = ['rebalance', '-n', 'shop', '--kubeconfig', join(folder, 'config'), 'deploy/web', '--dry-run', mode];
  expect(await runProgram(words, terminal)).toBe(0);
  expect(terminal.stdout).toMatch(/^workloadrebalancer\.spillway\.dev\/web-\w+ created \((server )?dry run\)\n$/);
  expect(terminal.notes.join('\n')).toContain('which pods would be is not said here');
  const help = new FakeTerminal();
  await runProgram(['rebalance', '--help'], help);
  expect(help.stdout).not.toContain('only show what would be done');
});

it('says why pods are not moved that it waits for, once for all workloads', async () => {
  const message = 'all moves are stopped (INC-7: \u001b[31mAnna)';
  const observedWorkloads = ['web', 'api'].map((name) => ({
    workload: { apiVersion: 'apps/v1', kind: 'Deployment', namespace: 'shop', name },
    reason: 'Progressing',
    message,
  }));
  timer = setInterval(() => {
    for (const key of api.objects.keys()) if (key.startsWith(PATH)) api.edit(key, { status: { observedWorkloads } });
  }, 20);
  const terminal = new FakeTerminal();
  const words = ['rebalance', '-n', 'shop', '--kubeconfig', join(folder, 'config'), 'deploy/web', 'deploy/api'];
  await runProgram([...words, '--wait', '--timeout', '1'], terminal);
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
