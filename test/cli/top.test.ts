import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runProgram } from '../../src/cli/program.ts';
import { table } from '../../src/cli/table.ts';
import { topColumns, topLines } from '../../src/cli/top-lines.ts';
import { parseAmounts, type Amounts } from '../../src/kube/amounts.ts';
import type { Node, Pod } from '../../src/kube/core-v1.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { serveMemoryApi, type MemoryApiServer } from '../fixtures/memory-api-server.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { hostPod } from '../fixtures/pods.ts';
import { FakeTerminal } from './fake-terminal.ts';
import { writeKubeconfig } from './served-kubeconfig.ts';

const member = (name: string): KubeObject => ({ metadata: { name } });
const node = (name: string, of: string): Node => ({
  metadata: { name, labels: { 'spillway.dev/member': of } },
  spec: { providerID: `spillway://${of}/${name}` },
  status: { allocatable: { cpu: '8', memory: '16Gi', pods: '110' } },
});
const podOn = (nodeName: string, name: string, phase: 'Running' | 'Succeeded' = 'Running'): Pod =>
  hostPod({
    metadata: { name },
    spec: {
      nodeName,
      containers: [{ name: 'main', resources: { requests: { cpu: '1500m', memory: '1Gi' } } }],
    },
    status: { phase },
  });
const FACTS = {
  members: [member('west'), member('east')],
  nodes: [node('east', 'east'), node('east-gpu', 'east'), node('west', 'west'), node('eastern', 'another')],
  pods: [podOn('east', 'a'), podOn('east-gpu', 'b'), podOn('east', 'over', 'Succeeded'), podOn('west', 'c')],
};
const usage = (...of: [name: string, cpu: string, memory: string][]): Map<string, Amounts> =>
  new Map(of.map(([name, cpu, memory]) => [name, parseAmounts({ cpu, memory })]));
const USED = usage(['east', '250m', '512Mi'], ['east-gpu', '1', '1Gi'], ['west', '10m', '64Mi']);

describe('what pods take of members', () => {
  it('is summed up over virtual nodes, without pods that have ended', () => {
    expect(topLines(FACTS, USED, 'members')).toEqual([
      {
        name: 'east',
        cluster: 'east',
        pods: 2,
        allocatable: { cpu: 16, memory: 32 * 2 ** 30, pods: 220 },
        requested: { cpu: 3, memory: 2 * 2 ** 30 },
        used: { cpu: 1.25, memory: 1.5 * 2 ** 30 },
      },
      expect.objectContaining({ name: 'west', pods: 1, used: { cpu: 0.01, memory: 64 * 2 ** 20 } }),
    ]);
  });

  it('is shown for each virtual node, too', () => {
    const lines = topLines(FACTS, USED, 'nodes');
    expect(lines.map(({ name, cluster, pods }) => [name, cluster, pods])).toEqual([
      ['east', 'east', 1],
      ['east-gpu', 'east', 1],
      ['west', 'west', 1],
    ]);
    expect(table(lines.slice(0, 1), topColumns('nodes'), { wide: true }).split('\n')[1]?.split(/ +/)).toEqual([
      'east',
      'east',
      '1/110',
      '250m',
      '1500m',
      '8000m',
      '512Mi',
      '1024Mi',
      '16384Mi',
      '3%',
      '3%',
    ]);
  });

  it('is not known where a part of it is not, or nobody may look', () => {
    const [east, west] = topLines(FACTS, usage(['east', '1', '1Gi'], ['west', '1', '1Gi']), 'members');
    expect([east?.used, west?.used]).toEqual([null, { cpu: 1, memory: 2 ** 30 }]);
    const blind = topLines({ members: FACTS.members, nodes: undefined, pods: undefined }, undefined, 'members');
    expect(blind[0]).toEqual({
      name: 'east',
      cluster: 'east',
      pods: null,
      allocatable: null,
      requested: null,
      used: null,
    });
    expect(table(blind, topColumns('members'), { headers: false }).split('\n')[0]).toMatch(/^east +\?\/\?( +\?){6}$/);
  });
});

describe('the verb', () => {
  let api: MemoryApi;
  let server: MemoryApiServer;
  let folder: string;
  let terminal: FakeTerminal;

  beforeEach(async () => {
    api = new MemoryApi();
    server = await serveMemoryApi(api);
    folder = mkdtempSync(join(tmpdir(), 'spillway-top-'));
    writeKubeconfig(join(folder, 'kubeconfig'), { c: server });
    terminal = new FakeTerminal({ env: { HOME: folder } });
    for (const one of FACTS.members)
      api.put(`/apis/spillway.dev/v1alpha1/memberclusters/${one.metadata.name}`, { ...one, spec: {} });
    for (const one of FACTS.nodes) api.put(`/api/v1/nodes/${one.metadata.name}`, one);
  });
  afterEach(async () => {
    await server.close();
    rmSync(folder, { recursive: true });
  });
  const run = async (...words: string[]): Promise<number> =>
    await runProgram(['top', '--kubeconfig', join(folder, 'kubeconfig'), ...words], terminal);

  it.each([
    [404, 'NotFound', /nobody serves metrics\.k8s\.io/],
    [403, 'Forbidden', /you may not list nodes\.metrics\.k8s\.io/],
    [503, 'ServiceUnavailable', /metrics\.k8s\.io does not answer/],
  ])('says why it is not known what is used (%d)', async (code, reason, words) => {
    api.fault = ({ path }) => (path.startsWith('/apis/metrics.k8s.io/') ? { code, reason } : undefined);
    expect(await run('east', '-o', 'json')).toBe(0);
    expect(terminal.notes).toEqual([expect.stringMatching(words)]);
    expect(JSON.parse(terminal.stdout)).toMatchObject({
      kind: 'ClusterUsageList',
      items: [{ name: 'east', requested: { cpu: 0 }, used: null }],
    });
  });

  it('ends with 4 for a member that is not there, and with 2 for a watch that is no table', async () => {
    expect(await run('moon')).toBe(4);
    expect(await run('--watch', '-o', 'json')).toBe(2);
    expect(terminal.stdout).toBe('');
  });
});
