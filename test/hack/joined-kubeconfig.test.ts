import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { joinedKubeconfig } from '../../hack/joined-kubeconfig.ts';
import { kubeconfigYaml } from '../../hack/pki.ts';

test('has a context for each cluster, with its own server and user, and the first is current', () => {
  const dir = mkdtempSync(join(tmpdir(), 'joined-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  const clusters = ['host', 'east'].map((name) => {
    const kubeconfig = join(dir, name);
    const server = `https://${name}.test:6443`;
    const client = { cert: `cert of ${name}`, key: `key of ${name}` };
    writeFileSync(kubeconfig, kubeconfigYaml({ server, ca: `ca of ${name}`, user: 'admin', client }));
    return { name, kubeconfig };
  });
  const base64 = (text: string): string => Buffer.from(text).toString('base64');
  const joined = parse(joinedKubeconfig(clusters)) as Record<string, unknown>;
  expect(joined).toMatchObject({
    'current-context': 'host',
    contexts: [
      { name: 'host', context: { cluster: 'host', user: 'host' } },
      { name: 'east', context: { cluster: 'east', user: 'east' } },
    ],
    clusters: [
      { name: 'host', cluster: { server: 'https://host.test:6443' } },
      { name: 'east', cluster: { server: 'https://east.test:6443' } },
    ],
  });
  expect(joined['users']).toMatchObject([
    { name: 'host', user: { 'client-key-data': base64('key of host') } },
    { name: 'east', user: { 'client-key-data': base64('key of east') } },
  ]);
});
