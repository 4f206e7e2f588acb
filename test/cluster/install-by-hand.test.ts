import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { nonLoopbackAddress } from '../../hack/addresses.ts';
import { startCluster, type Cluster } from '../../hack/cluster.ts';
import type { KubectlResult } from '../../hack/kubectl.ts';
import { startKwok } from '../../hack/kwok.ts';
import { installSpillway, startSpillway } from '../../hack/spillway.ts';
import { Workspace } from '../../hack/workspace.ts';
import { GuideShell } from '../fixtures/guide-shell.ts';
import { Guide } from '../fixtures/guide.ts';
import { kubectlSpillway } from '../fixtures/kubectl-plugin.ts';

/** The commands of the guide for those who have kubectl only, word by word, in a shell. */
const guide = new Guide('docs/guides/install.md');
let workspace: Workspace;
let host: Cluster;
let member: Cluster;
let shell: GuideShell;

beforeAll(async () => {
  workspace = Workspace.create();
  [host, member] = await Promise.all([
    startCluster(workspace, { name: 'host' }),
    startCluster(workspace, { name: 'east', serviceCidr: '10.97.0.0/16', bindAddress: nonLoopbackAddress() }),
  ]);
  await Promise.all([startKwok(member, { nodes: 1 }), installSpillway(host)]);
  await startSpillway(host);
  shell = new GuideShell(host, [member]);
});
afterAll(async () => {
  await workspace?.close();
});

async function spillway(...words: string[]): Promise<KubectlResult> {
  return await kubectlSpillway(host, words, { kubeconfig: shell.kubeconfig, timeoutMs: 220_000 });
}

describe('a member without the program', () => {
  test('is joined by the commands of the guide', async () => {
    const script = guide.part('Join without the program');
    expect(script.split('\n').filter((line) => line.startsWith('kubectl ')).length).toBeGreaterThan(7);
    const said = await shell.paste(script);
    expect(said).toContain('membercluster.spillway.dev/east condition met');
    expect(existsSync(join(shell.dir, 'east.kubeconfig'))).toBe(true);
  });

  test('leaves as any other, and what was applied there is left to who did', async () => {
    // A manager that began a moment ago waits for what a former one may have sent.
    const { code, stdout, stderr } = await spillway('leave', 'east', '--member-context', 'east', '--timeout', '200');
    expect([code, stdout]).toEqual([0, expect.stringContaining('secret/member-east deleted') as string]);
    expect(stderr).toContain('made without join: whoever made it takes it away');
    await shell.paste(
      guide.script('kubectl delete --context east --ignore-not-found -f manifests/member/dedicated.yaml'),
    );
    expect(await ofOurs('namespaces,clusterroles,clusterrolebindings,validatingadmissionpolicies')).toEqual([]);
  }, 240_000);
});

async function ofOurs(kinds: string, ...where: string[]): Promise<string[]> {
  const { stdout } = await member.kubectl(['get', kinds, ...where, '-o', 'name']);
  return stdout.split('\n').filter((line) => line.includes('spillway'));
}

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

  test('lends one namespace with limits, and takes them along when it leaves', async () => {
    const said = await shell.paste(guide.script('kubectl spillway join east --member-context east --lend shop'));
    expect(said).toContain('east is Ready');
    expect(await member.api.call('GET', '/api/v1/namespaces/shop/resourcequotas/spillway')).toMatchObject({
      spec: { hard: { 'requests.cpu': '32', 'requests.memory': '128Gi' } },
    });
    const lent = 'rolebindings,resourcequotas,networkpolicies';
    expect(await ofOurs(lent, '-n', 'shop')).toHaveLength(3);
    const left = await shell.tryTo(guide.script('kubectl spillway leave east --member-context east'), 200_000);
    expect(left, left.stderr).toMatchObject({ code: 0 });
    // What remains to be done by hand is nothing here, and does no harm.
    await shell.paste(guide.script('kubectl delete --context east --ignore-not-found -n shop'));
    expect(await ofOurs(lent, '-n', 'shop')).toEqual([]);
    const { metadata } = (await member.api.call('GET', '/api/v1/namespaces/shop')) as { metadata: { labels: object } };
    expect(Object.keys(metadata.labels)).not.toContain('spillway.dev/allow-host');
  }, 240_000);
});
