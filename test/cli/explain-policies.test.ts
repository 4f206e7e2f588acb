import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { runProgram } from '../../src/cli/program.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { type MemoryApiServer, serveMemoryApi } from '../fixtures/memory-api-server.ts';
import { FakeTerminal } from './fake-terminal.ts';
import { writeKubeconfig } from './served-kubeconfig.ts';

const GROUP = '/apis/spillway.dev/v1alpha1';

describe('explain-policy --all-namespaces', () => {
  let folder: string;
  let api: MemoryApi;
  let server: MemoryApiServer;
  let terminal: FakeTerminal;

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'explain-'));
    api = new MemoryApi();
    server = await serveMemoryApi(api);
    writeKubeconfig(join(folder, 'config'), { host: server });
    terminal = new FakeTerminal();
    for (const namespace of ['shop', 'bank']) make('/api/v1/namespaces', { metadata: { name: namespace } });
  });
  afterEach(async () => {
    await server.close();
    rmSync(folder, { recursive: true });
  });

  const make = (path: string, body: object): void =>
    void api.handle({ method: 'POST', path, query: {}, body, contentType: 'application/json' });
  const overriding = (name: string, namespace: string, clusterNames: string[]): void => {
    const overriders = { labelsOverrider: [{ operator: 'add', value: { a: 'b' } }] };
    const spec = { resourceSelectors: [], overrideRules: [{ targetCluster: { clusterNames }, overriders }] };
    const metadata = { name, namespace };
    make(`${GROUP}/namespaces/${namespace}/overridepolicies`, { kind: 'OverridePolicy', metadata, spec });
  };
  const explain = async (...words: string[]): Promise<number> =>
    await runProgram(['explain-policy', '--kubeconfig', join(folder, 'config'), ...words], terminal);

  it('says it of each, whatever -n says, and ends as the worst of them', async () => {
    overriding('gold', 'shop', []);
    overriding('typo', 'bank', ['moon']);
    const overrideRules = [{ overriders: { labelsOverrider: [{ operator: 'add', value: { c: 'd' } }] } }];
    make(`${GROUP}/clusteroverridepolicies`, { metadata: { name: 'wide' }, spec: { overrideRules } });
    expect(await explain('-A', '-n', 'shop')).toBe(5);
    const heads = terminal.stdout.split('\n').filter((line) => /^(Cluster)?OverridePolicy /.test(line));
    expect(heads.sort()).toEqual([
      'ClusterOverridePolicy wide',
      'OverridePolicy gold in shop',
      'OverridePolicy typo in bank',
    ]);
    expect(terminal.stdout).toContain('there is no member moon');
    terminal = new FakeTerminal();
    expect(await explain('overridepolicies', '-A', '-o', 'json')).toBe(5);
    expect(JSON.parse(terminal.stdout)).toMatchObject({
      kind: 'ExplainedPolicyList',
      items: [
        { kind: 'ExplainedOverride', policy: 'OverridePolicy typo' },
        { kind: 'ExplainedOverride', policy: 'OverridePolicy gold' },
      ],
    });
  });

  it('of nothing is no failure, and a list without items', async () => {
    expect(await explain('-A')).toBe(0);
    expect([terminal.stdout, terminal.notes]).toEqual(['', ['There are no policies.']]);
    expect(await explain('-A', '-o', 'json')).toBe(0);
    expect(JSON.parse(terminal.stdout)).toMatchObject({ kind: 'ExplainedPolicyList', items: [] });
  });

  it('takes no single policy', async () => {
    const file = join(folder, 'policy.yaml');
    writeFileSync(file, '{}');
    for (const words of [['op/gold'], ['gold'], ['-f', file]]) {
      expect(await explain('-A', ...words)).toBe(2);
      expect(terminal.notes.join('\n')).toContain('with --all-namespaces it takes no policy by its name');
    }
  });
});
