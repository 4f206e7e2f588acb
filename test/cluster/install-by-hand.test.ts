import { existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { nonLoopbackAddress } from '../../hack/addresses.ts';
import { startCluster, type Cluster } from '../../hack/cluster.ts';
import { run } from '../../hack/command.ts';
import { joinedKubeconfig } from '../../hack/joined-kubeconfig.ts';
import type { KubectlResult } from '../../hack/kubectl.ts';
import { startKwok } from '../../hack/kwok.ts';
import { repositoryRoot } from '../../hack/repository.ts';
import { installSpillway, startSpillway } from '../../hack/spillway.ts';
import { Workspace } from '../../hack/workspace.ts';
import { kubectlSpillway } from '../fixtures/kubectl-plugin.ts';

/** The commands of docs/guides/install.md for those who have kubectl only, word by word, in a shell. */
const guide = readFileSync(join(repositoryRoot(), 'docs/guides/install.md'), 'utf8');
let workspace: Workspace;
let host: Cluster;
let member: Cluster;
let kubeconfig: string;

beforeAll(async () => {
  workspace = Workspace.create();
  [host, member] = await Promise.all([
    startCluster(workspace, { name: 'host' }),
    startCluster(workspace, { name: 'east', serviceCidr: '10.97.0.0/16', bindAddress: nonLoopbackAddress() }),
  ]);
  await Promise.all([startKwok(member, { nodes: 1 }), installSpillway(host)]);
  await startSpillway(host);
  kubeconfig = join(host.dir, 'both.kubeconfig');
  writeFileSync(kubeconfig, joinedKubeconfig([host, member]), { mode: 0o600 });
  symlinkSync(join(repositoryRoot(), 'manifests'), join(host.dir, 'manifests'));
});
afterAll(async () => {
  await workspace?.close();
});

/** What a part of the guide has people do: its commands, and its objects by kubectl apply. */
function scriptOf(heading: string): string {
  const [, part = ''] = guide.split(`### ${heading}\n`);
  const [own = ''] = part.split(/^##/m);
  const objects = (_: string, text: string): string =>
    `    kubectl apply -f - <<EOF\n${text.replaceAll(/^/gm, '    ')}EOF\n`;
  const lines = own.replaceAll(/^```yaml\n([\s\S]*?)^```$/gm, objects).split('\n');
  return lines
    .filter((line) => line.startsWith('    ') || line === 'EOF')
    .join('\n')
    .replaceAll(/^ {4}/gm, '');
}

async function paste(script: string): Promise<string> {
  const env = {
    ...process.env,
    KUBECONFIG: kubeconfig,
    PATH: `${dirname(host.kubectlPath)}:${process.env['PATH'] ?? ''}`,
  };
  return await run('bash', ['-e', '-u', '-o', 'pipefail', '-c', script], { cwd: host.dir, env });
}

async function spillway(...words: string[]): Promise<KubectlResult> {
  return await kubectlSpillway(host, words, { kubeconfig, timeoutMs: 220_000 });
}

describe('a member without the program', () => {
  test('is joined by the commands of the guide', async () => {
    const script = scriptOf('Join without the program');
    expect(script.split('\n').filter((line) => line.startsWith('kubectl ')).length).toBeGreaterThan(7);
    const said = await paste(script);
    expect(said).toContain('membercluster.spillway.dev/east condition met');
    expect(existsSync(join(host.dir, 'east.kubeconfig'))).toBe(true);
  });

  test('leaves as any other, and what was applied there is left to who did', async () => {
    // A manager that began a moment ago waits for what a former one may have sent.
    const { code, stdout, stderr } = await spillway('leave', 'east', '--member-context', 'east', '--timeout', '200');
    expect([code, stdout]).toEqual([0, expect.stringContaining('secret/member-east deleted') as string]);
    expect(stderr).toContain('made without join: whoever made it takes it away');
    const [, taken = ''] =
      /(kubectl delete --context east --ignore-not-found -f[\s\S]*?read\.yaml)\n/.exec(guide) ?? [];
    await paste(`${taken}\nkubectl delete secret -n spillway-system --ignore-not-found member-east`);
    const kinds = 'namespaces,clusterroles,clusterrolebindings,validatingadmissionpolicies';
    const { stdout: left } = await member.kubectl(['get', kinds, '-o', 'name']);
    expect(left.split('\n').filter((line) => line.includes('spillway'))).toEqual([]);
  }, 240_000);
});

describe('a member that is joined by the program', () => {
  test('is not told to be ready by what was found out over a former way to it', async () => {
    const words = ['join', 'east', '--member-context', 'east'];
    const ready = expect.stringContaining('east is Ready') as string;
    expect(await spillway(...words)).toMatchObject({ code: 0, stdout: ready });
    const nowhere = await spillway(...words, '--proxy-url', 'http://127.0.0.1:9', '--timeout', '15');
    expect(nowhere.stdout).not.toContain('is Ready');
    expect(nowhere).toMatchObject({ code: 1, stderr: expect.stringContaining('ProxyFailed') as string });
    expect(await spillway(...words)).toMatchObject({ code: 0, stdout: ready });
  });
});
