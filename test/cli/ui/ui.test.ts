import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { runProgram } from '../../../src/cli/program.ts';
import type { PageState, WhyAnswer } from '../../../src/cli/ui/view.ts';
import { startFleetHost, type FleetHost } from '../../fixtures/fleet-host.ts';
import { fleetWorld } from '../../fixtures/fleet-world.ts';
import { openPage } from '../../fixtures/open-page.ts';
import { FakeTerminal } from '../fake-terminal.ts';

/** The whole verb, as it runs in a terminal, against an API server that answers as it is told. */
const dir = mkdtempSync(join(tmpdir(), 'spillway-ui-'));
const kubeconfig = join(dir, 'config');
let host: FleetHost;

beforeAll(async () => {
  host = await startFleetHost(fleetWorld(Date.parse('2026-03-01T12:00:00Z')));
  host.writeKubeconfig(kubeconfig, 'production');
});
beforeEach(() => host.forbidden.clear());
afterAll(async () => {
  await host.server.close();
  rmSync(dir, { recursive: true, force: true });
});

it('serves the page until Ctrl-C, and asks the cluster for nothing but GET', async () => {
  const page = await openPage(kubeconfig);
  expect(page.terminal.stdout).toMatch(
    /^Open this page of context production, which only reads, as you; Ctrl-C ends it:\n/,
  );
  const state = await page.get<PageState>('/api/state');
  expect(state).toMatchObject({ context: 'production', missing: [], trouble: '', managers: [{ name: 'spillway-0' }] });
  expect(state.places.map(({ name }) => name)).toContain('frankfurt');
  const pod = host.world.pods.find(({ metadata }) => metadata.name.startsWith('reports'))?.metadata.name ?? '';
  const { explanation } = await page.get<WhyAnswer>(`/api/why?namespace=shop&name=${pod}`);
  expect(explanation.answer).toContain('MandatorySecretNotFound');
  expect(await page.end()).toBe(130);
  await expect(fetch(page.url)).rejects.toThrow();
  expect(host.server.seen.filter((one) => !one.startsWith('GET '))).toEqual([]);
});

it('tells which rights are missing, and shows the rest', async () => {
  host.forbidden = new Set(['nodes', 'events', 'workloadrebalancers']);
  const page = await openPage(kubeconfig);
  expect(page.terminal.notes).toContain('note: parts stay empty, as you may not list nodes');
  const state = await page.get<PageState>('/api/state');
  expect(state.missing).toEqual([
    'list nodes',
    'list workloadrebalancers.spillway.dev',
    'list events in namespace default',
  ]);
  expect(state.places.find(({ name }) => name === 'oregon')?.pods?.running).toBe(7);
  await page.end();
});

it('shows an installation that is older and has not all kinds', async () => {
  host.absent = new Set(['workloadmigrations']);
  const page = await openPage(kubeconfig);
  expect(await page.get<PageState>('/api/state')).toMatchObject({ missing: [], trouble: '' });
  host.absent.clear();
  await page.end();
});

it('reads one namespace where that is asked for', async () => {
  const seen = host.server.seen.length;
  const page = await openPage(kubeconfig, '-n', 'other');
  const state = await page.get<PageState>('/api/state');
  expect(state).toMatchObject({ namespace: 'other', workloads: [] });
  expect(host.server.seen.slice(seen)).not.toContainEqual(expect.stringMatching(/^GET \/api\/v1\/pods/));
  await page.end();
});

it.each([[['-A']], [['-n', 'other', '--all-namespaces']]])(
  'reads all namespaces with %j, as kubectl does',
  async (words) => {
    const page = await openPage(kubeconfig, ...words);
    const state = await page.get<PageState>('/api/state');
    expect(state.namespace).toBe('');
    expect(state.workloads?.length).toBeGreaterThan(0);
    await page.end();
  },
);

it.each<[string, string[], number, RegExp]>([
  ['a cluster that does not answer', ['--kubeconfig', join(dir, 'none')], 1, /kubeconfig cannot be used/],
  ['no port', ['--port', 'x'], 2, /number from 0 to 65535/],
  ['a port that is none', ['--port', '70000'], 2, /number from 0 to 65535/],
])('ends for %s', async (_what, words, code, message) => {
  const terminal = new FakeTerminal({ env: {} });
  expect(await runProgram(['ui', '--kubeconfig', kubeconfig, ...words], terminal)).toBe(code);
  expect(terminal.notes.join('\n')).toMatch(message);
});
