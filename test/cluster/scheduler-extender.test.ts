import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Cluster } from '../../hack/cluster.ts';
import { startKwok } from '../../hack/kwok.ts';
import { until } from '../../hack/until.ts';
import type { Pod } from '../../src/api/wire.ts';
import { type Fields, kubectl, newNamespace, podsOf } from '../fixtures/live-pods.ts';
import { errorsOf, startTopology, type Topology } from '../fixtures/topology.ts';

/** Ordinary Deployments of the host; the extender decides where their pods run. */
let topology: Topology;
let host: Cluster;

beforeAll(async () => {
  topology = await startTopology({
    extender: true,
    members: [
      { name: 'east', kwok: { nodes: 2, cpu: '4' } },
      { name: 'west', kwok: { nodes: 2, cpu: '4' } },
    ],
  });
  ({ host } = topology);
  await startKwok(host, { nodes: 2, cpu: '2', prefix: 'local' });
});
afterAll(async () => {
  const errors = topology === undefined ? [] : errorsOf(topology.spillway);
  await topology?.close();
  expect(errors).toEqual([]);
});

function deployment(namespace: string, name: string, replicas: number, cpu: string, more: Fields = {}): Fields {
  const labels = { app: name };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace, labels },
    spec: {
      replicas,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          tolerations: [{ key: 'spillway.dev/virtual-node', operator: 'Exists' }],
          terminationGracePeriodSeconds: 1,
          containers: [{ name: 'main', image: 'registry.example/app:v1', resources: { requests: { cpu } } }],
          ...more,
        },
      },
    },
  };
}

/** Pods by where they are: `local`, a member, or `waiting`. */
async function where(namespace: string, selector: string): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { spec } of (await podsOf(host, namespace, selector)).filter(isLive)) {
    const { nodeName } = spec;
    const place = nodeName === undefined ? 'waiting' : nodeName.startsWith('local-') ? 'local' : nodeName;
    counts[place] = (counts[place] ?? 0) + 1;
  }
  return counts;
}

function isLive({ metadata }: Pod): boolean {
  return metadata.deletionTimestamp === undefined;
}

describe('a namespace that may burst', () => {
  test('fills the host first, then members', async () => {
    await newNamespace(host, 'shop');
    await kubectl(host, ['label', 'namespace', 'shop', 'spillway.dev/burst=enabled']);
    await host.apply([deployment('shop', 'web', 6, '1')]);
    await until('all pods are bound', async () => {
      const counts = await where('shop', 'app=web');
      return counts['waiting'] === undefined && counts['local'] === 4;
    });
    const counts = await where('shop', 'app=web');
    expect([counts['east'] ?? counts['west'], counts['local']]).toEqual([2, 4]);
  });
});
