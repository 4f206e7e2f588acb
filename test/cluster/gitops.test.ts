import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { ensureBinaries } from '../../hack/binaries.ts';
import type { Cluster } from '../../hack/cluster.ts';
import { run } from '../../hack/command.ts';
import { SYSTEM_NAMESPACE } from '../../hack/spillway.ts';
import { until } from '../../hack/until.ts';
import { type Fields, newNamespace, read } from '../fixtures/live-pods.ts';
import { policy } from '../fixtures/scheduling.ts';
import { startTopology, type Topology } from '../fixtures/topology.ts';

/** What docs/guides/gitops.md says of objects that come from Git: whether they differ after Spillway has worked on them, and their health. */
let topology: Topology;
let host: Cluster;
let folder: string;
let glua: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'gitops-'));
  ({ glua } = await ensureBinaries(['glua']));
  topology = await startTopology({
    extender: true,
    members: [{ name: 'east', kwok: { nodes: 1 } }],
  });
  ({ host } = topology);
  await newNamespace(host, 'shop');
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await topology?.close();
});

/** The script that the guide has for a kind. */
function scriptFor(kind: string): string {
  const guide = readFileSync(new URL('../../docs/guides/gitops.md', import.meta.url), 'utf8');
  const blocks = [...guide.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, block = '']) => block);
  const block = blocks.find((one) => one.includes('resource.customizations')) ?? '';
  const { data } = parse(block) as { data: Record<string, string> };
  return data[`resource.customizations.health.spillway.dev_${kind}`] ?? '';
}

function luaOf(value: unknown): string {
  if (Array.isArray(value)) return `{${value.map(luaOf).join(',')}}`;
  if (typeof value !== 'object' || value === null) return value === null ? 'nil' : JSON.stringify(value);
  return `{${Object.entries(value)
    .map(([key, one]) => `[${JSON.stringify(key)}]=${luaOf(one)}`)
    .join(',')}}`;
}

/** As Argo CD works it out: the object is `obj`, the answer a table. */
async function healthOf(kind: string, object: object): Promise<string> {
  const file = join(folder, 'health.lua');
  const show = 'print(health.status .. ": " .. (health.message or ""))';
  writeFileSync(
    file,
    `obj = ${luaOf(object)}\nlocal function judge()\n${scriptFor(kind)}\nend\nlocal health = judge()\n${show}\n`,
  );
  return (await run(glua, [file])).trim();
}

describe('health', () => {
  test('of a MemberCluster', async () => {
    const east = await until('it is ready', async () => {
      const found = await read<Fields>(host, '/apis/spillway.dev/v1alpha1/memberclusters/east');
      return JSON.stringify(found).includes('"Ready"') ? found : undefined;
    });
    const metadata = { name: 'east', generation: 2 };
    const ready = (status: string, observedGeneration: number): object => ({
      metadata,
      status: { conditions: [{ type: 'Ready', status, observedGeneration, message: 'words' }] },
    });
    await until('it is healthy', async () => {
      const now = await read<Fields>(host, '/apis/spillway.dev/v1alpha1/memberclusters/east');
      return (await healthOf('MemberCluster', now ?? east)) === 'Healthy: Pods can be sent to the member.';
    });
    expect(await healthOf('MemberCluster', { metadata })).toBe('Progressing: nothing is known of it yet');
    expect(await healthOf('MemberCluster', ready('False', 2))).toBe('Degraded: words');
    expect(await healthOf('MemberCluster', ready('False', 1))).toBe('Progressing: words');
    expect(await healthOf('MemberCluster', ready('Unknown', 2))).toBe('Progressing: words');
    const leaving = { type: 'Leaving', status: 'True', observedGeneration: 2, message: 'two pods are left' };
    const going = { ...metadata, deletionTimestamp: '2026-01-01T00:00:00Z' };
    expect(await healthOf('MemberCluster', { metadata: going, status: { conditions: [leaving] } })).toBe(
      'Progressing: two pods are left',
    );
  });

  test('of a policy', async () => {
    const healthOfPolicy = async (name: string): Promise<string> => {
      const path = `/apis/spillway.dev/v1alpha1/namespaces/shop/placementpolicies/${name}`;
      return await healthOf('PlacementPolicy', (await read<Fields>(host, path)) ?? {});
    };
    expect(await healthOf('PlacementPolicy', { metadata: {} })).toBe('Progressing: nobody has looked at it yet');
    await host.apply([
      policy('shop', 'good', { clusterAffinity: { clusterNames: ['east'] } }, 'web'),
      policy('shop', 'bad', { clusterAffinity: { clusterNames: ['nowhere'] } }, 'other'),
    ]);
    await until('one is healthy', async () => (await healthOfPolicy('good')) === 'Healthy:');
    await until('the other one is not', async () => /^Degraded: .*nowhere/.test(await healthOfPolicy('bad')));
  });
});

describe('differences', () => {
  const objects = (): Fields[] => [
    {
      apiVersion: 'spillway.dev/v1alpha1',
      kind: 'MemberCluster',
      metadata: { name: 'east' },
      spec: { credentials: { secretRef: { namespace: SYSTEM_NAMESPACE, name: 'member-east' } } },
    },
    policy('shop', 'all', {
      clusterAffinity: { clusterNames: ['local'], overflowAffinities: [{ clusterNames: ['east'] }] },
      spreadConstraints: [{ spreadByField: 'cluster', maxGroups: 2, minGroups: 1 }],
    }),
    {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name: 'web', namespace: 'shop' },
      spec: { minAvailable: 1, selector: { matchLabels: { app: 'web' } } },
    },
  ];
  const AS = ['--server-side', '--field-manager=argocd-controller', '--force-conflicts'];

  test('there are none once Spillway has done its part, compared on the server side', async () => {
    const input = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects() });
    const applied = await host.kubectl(['apply', ...AS, '-f', '-'], { input });
    expect(applied.stderr).toBe('');
    await until('there is a finalizer and a status', async () => {
      const text = JSON.stringify(await read(host, '/apis/spillway.dev/v1alpha1/memberclusters/east'));
      return text.includes('spillway.dev/leaving') && text.includes('CapacityFresh');
    });
    const { code, stdout, stderr } = await host.kubectl(['diff', ...AS, '-f', '-'], { input });
    expect([code, stdout, stderr]).toEqual([0, '', '']);
  });

  test('what people change of a field in Git is one', async () => {
    const path = '/apis/spillway.dev/v1alpha1/namespaces/shop/placementpolicies/all';
    await host.api.call('PATCH', path, { spec: { placement: { clusterAffinity: { clusterNames: ['east'] } } } });
    const input = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects() });
    const { code, stdout } = await host.kubectl(['diff', ...AS, '-f', '-'], { input });
    expect(code).toBe(1);
    expect(stdout).toContain('PlacementPolicy.shop.all');
    expect(stdout.toLowerCase()).not.toContain('membercluster.');
  });
});
