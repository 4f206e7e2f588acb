import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Cluster } from '../../hack/cluster.ts';
import { until } from '../../hack/until.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import {
  type Fields,
  getPod,
  IDLE,
  isReady,
  newNamespace,
  onNode,
  pod,
  podsOf,
  podSpec,
  shell,
  untilPod,
  untilRunning,
} from '../fixtures/live-pods.ts';
import { errorsOf, startTopology, type Topology } from '../fixtures/topology.ts';

/** What the owner of a member does to its nodes, and what becomes of pods of a host there. */
let topology: Topology;
let host: Cluster;
let east: Cluster;

beforeAll(async () => {
  topology = await startTopology({ members: [{ name: 'east', kwok: { nodes: 2, prefix: 'east' } }] });
  host = topology.host;
  east = topology.member('east').cluster;
});
afterAll(async () => {
  const errors = topology === undefined ? [] : errorsOf(topology.spillway);
  await topology?.close();
  expect(errors).toEqual([]);
});

test('a rule lets the cluster-autoscaler of a member remove nodes with pods of a host', async () => {
  const ns = await newNamespace(host, 'by-rule');
  const evictable = 'cluster-autoscaler.kubernetes.io/safe-to-evict';
  await host.apply([
    {
      apiVersion: 'spillway.dev/v1alpha1',
      kind: 'OverridePolicy',
      metadata: { name: 'evictable', namespace: ns },
      spec: {
        resourceSelectors: [{ apiVersion: 'v1', kind: 'Pod', name: 'chosen' }],
        overrideRules: [
          { overriders: { annotationsOverrider: [{ operator: 'add', value: { [evictable]: 'true' } }] } },
        ],
      },
    },
  ]);
  await host.apply(['chosen', 'other'].map((name) => pod(name, ns, podSpec([shell(IDLE)], onNode('east')))));
  const annotation = async (cluster: Cluster, name: string): Promise<string | undefined> => {
    return (await untilRunning(cluster, ns, name)).metadata.annotations?.[evictable];
  };
  expect(await Promise.all(['chosen', 'other'].map((name) => annotation(east, name)))).toEqual(['true', undefined]);
  expect(await annotation(host, 'chosen')).toBeUndefined();
});

const uids = (pods: readonly Pod[]): string[] => pods.map(({ metadata }) => metadata.uid ?? '').toSorted();

/** A bare pod, and a set of two. */
async function runAll(ns: string): Promise<void> {
  const labels = { app: 'web' };
  const spec: Fields = podSpec([shell(IDLE)], onNode('east'));
  await host.apply([
    pod('bare', ns, spec),
    {
      apiVersion: 'apps/v1',
      kind: 'ReplicaSet',
      metadata: { name: 'web', namespace: ns },
      spec: { replicas: 2, selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
    },
  ]);
  await untilRunning(host, ns, 'bare');
  await until('all run', async () => {
    const pods = await podsOf(host, ns);
    return pods.length === 3 && pods.every(isReady);
  });
}

async function drain(ns: string, ...flags: string[]): Promise<{ code: number | null; stderr: string }> {
  const nodes = [...new Set((await podsOf(east, ns)).map(({ spec }) => spec.nodeName ?? ''))];
  return await east.kubectl(['drain', ...nodes, '--ignore-daemonsets', '--timeout=60s', ...flags]);
}

test('kubectl drain in a member leaves pods of a host alone, and says so; by force it ends them, and they are replaced in the host', async () => {
  const ns = await newNamespace(host, 'drained');
  await runAll(ns);
  const [above, below] = [await podsOf(host, ns), await podsOf(east, ns)];
  const refused = await drain(ns);
  expect(refused.code).not.toBe(0);
  expect(refused.stderr).toContain('declare no controller (use --force to override)');
  for (const { metadata } of below) expect(refused.stderr).toContain(`${ns}/${metadata.name}`);
  expect(uids(await podsOf(east, ns))).toEqual(uids(below));
  expect((await podsOf(host, ns)).every(isReady)).toBe(true);
  expect((await drain(ns, '--force')).code).toBe(0);
  // Nobody makes a bare pod anew, and what ended is never run again.
  await untilPod(host, ns, 'bare', 'has failed', ({ status }) => status?.phase === 'Failed');
  const bare = await getPod(host, ns, 'bare');
  expect(uids(above)).toContain(bare.metadata.uid);
  expect(bare.status?.conditions).toContainEqual(expect.objectContaining({ type: 'DisruptionTarget', status: 'True' }));
  const { stdout } = await east.kubectl(['get', 'nodes', '-o', 'name']);
  await east.kubectl([
    'uncordon',
    ...stdout
      .trim()
      .split('\n')
      .map((one) => one.replace('node/', '')),
  ]);
  expect((await podsOf(east, ns)).filter(({ metadata }) => metadata.name === 'bare')).toEqual([]);
  await until(
    'two others run',
    async () => {
      const ready = (await podsOf(host, ns)).filter(isReady);
      return ready.length === 2 && ready.every(({ metadata }) => !uids(above).includes(metadata.uid ?? ''));
    },
    { timeoutMs: 60_000 },
  );
});
