import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { runProgram } from '../../src/cli/program.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { type MemoryApiServer, serveMemoryApi } from '../fixtures/memory-api-server.ts';
import { FakeTerminal } from './fake-terminal.ts';
import { writeKubeconfig } from './served-kubeconfig.ts';

const MEMBERS = '/apis/spillway.dev/v1alpha1/memberclusters';
const STAY =
  'those that left stay where they are, and kubectl spillway rebalance brings those of a workload to where its policy wants them now';
let folder: string;
let api: MemoryApi;
let server: MemoryApiServer;
let terminal: FakeTerminal;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'cordon-'));
  api = new MemoryApi();
  server = await serveMemoryApi(api);
  writeKubeconfig(join(folder, 'config'), { host: server });
  terminal = new FakeTerminal();
  for (const name of ['east', 'west']) {
    api.put(`${MEMBERS}/${name}`, {
      apiVersion: 'spillway.dev/v1alpha1',
      kind: 'MemberCluster',
      metadata: { name },
      spec: {
        credentials: { secretRef: { namespace: 'spillway-system', name } },
        ...(name === 'west' ? { virtualNodes: [{ name: 'gpu' }] } : {}),
      },
    });
  }
});
afterEach(async () => {
  await server.close();
  rmSync(folder, { recursive: true });
});

function node(name: string, member: string, spec: object, annotations: object = {}): void {
  api.put(`/api/v1/nodes/${name}`, {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels: { 'spillway.dev/member': member }, annotations },
    spec: { providerID: `spillway://${member}/${name}`, ...spec },
  });
}

const run = async (...words: string[]): Promise<number> =>
  await runProgram([...words, '--kubeconfig', join(folder, 'config')], terminal);
const writes = (): object[] => api.seen.filter(({ method }) => method !== 'GET');

it.each([
  [['drain', 'esat'], 'there is no member esat: there are east, west\nfix: did you mean east?'],
  [['cordon', 'east', 'wset'], 'there is no member wset: there are east, west\nfix: did you mean west?'],
  [['uncordon', 'moon'], 'there is no member moon: there are east, west'],
  [['clusters', 'esat'], 'there is no member esat: there are east, west\nfix: did you mean east?'],
  [['leave', 'esat'], 'there is no member esat: there are east, west\nfix: did you mean east?'],
  [
    ['drain', 'west-gpu'],
    'there is no member west-gpu: there are east, west\n' +
      'fix: west-gpu is a virtual node of member west: name the member; for that node alone there are kubectl cordon, uncordon and drain',
  ],
])('%j says which members there are, and which one was meant', async (words, error) => {
  expect(await run(...words)).toBe(4);
  expect(terminal.notes.join('\n')).toBe(`error: ${error}`);
  expect(writes()).toEqual([]);
});

it('who may not list members is told what the API server says', async () => {
  api.fault = ({ method, path }) =>
    method === 'GET' && path === MEMBERS ? { code: 403, reason: 'Forbidden', message: 'no' } : undefined;
  expect(await run('drain', 'esat')).toBe(4);
  expect(terminal.notes[0]).toMatch(/^error: memberclusters\.spillway\.dev "esat" not found /);
});

it.each([
  ['migrate', /^error: there is no verb migrate\nfix: kubectl spillway move /],
  ['undrain', /^error: there is no verb undrain\nfix: kubectl spillway uncordon MEMBER .* spillway\.dev\/drain-$/],
  ['unjoin', /^error: there is no verb unjoin\nfix: kubectl spillway leave MEMBER /],
])('%s says which verb does that', async (verb, says) => {
  expect(await run(verb, 'east')).toBe(2);
  expect(terminal.notes.join('\n')).toMatch(says);
});

it('uncordon says what happens next, and of a member that was not cordoned that nothing was to be undone', async () => {
  node('east', 'east', {});
  expect(await run('uncordon', 'east')).toBe(0);
  api.edit(`${MEMBERS}/east`, { spec: { unschedulable: true } });
  node('east', 'east', { unschedulable: true }, { 'spillway.dev/cordoned': 'true' });
  expect(await run('uncordon', 'east')).toBe(0);
  expect(terminal.stdout).toBe('membercluster/east already uncordoned\nmembercluster/east uncordoned\n');
  expect(terminal.notes).toEqual([
    `note: nothing was to be undone, east takes new pods; ${STAY}`,
    `note: new pods come again; ${STAY}`,
  ]);
});

it('uncordon names what keeps new pods off all the same, with the command that undoes it', async () => {
  node('east', 'east', { taints: [{ key: 'spillway.dev/drain', effect: 'NoSchedule' }] });
  node('west-gpu', 'west', { unschedulable: true });
  expect(await run('uncordon', 'east', 'west')).toBe(0);
  expect(terminal.notes).toEqual([
    'note: east takes no new pods all the same, as it is to be emptied (taint spillway.dev/drain): kubectl taint node east spillway.dev/drain-',
    'note: west-gpu takes no new pods all the same, as somebody cordoned that node: kubectl uncordon west-gpu',
  ]);
});

it('cordon says nothing of all that', async () => {
  node('east', 'east', { taints: [{ key: 'spillway.dev/drain', effect: 'NoSchedule' }] });
  expect(await run('cordon', 'east')).toBe(0);
  expect(terminal.notes).toEqual([]);
});
