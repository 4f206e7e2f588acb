import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Cluster } from '../../hack/cluster.ts';
import { waitForNode, waitReady } from '../../hack/spillway.ts';
import { until } from '../../hack/until.ts';
import type { Node, Pod } from '../../src/kube/core-v1.ts';
import { kubectl, newNamespace, podsOf, podSpec, read, shell, untilGone } from '../fixtures/live-pods.ts';
import { untilMemberCondition } from '../fixtures/member-condition.ts';
import { startTopology, type Topology } from '../fixtures/topology.ts';

const EAST = '/apis/spillway.dev/v1alpha1/memberclusters/east';
const namespace = 'shop';

/** A restarted manager waits for creations that the former one may have sent: only then does an empty virtual node go. */
let topology: Topology;
let host: Cluster;
let east: Cluster;

beforeAll(async () => {
  topology = await startTopology({ members: [{ name: 'east', kwok: { nodes: 2 } }] });
  ({ host } = topology);
  east = topology.member('east').cluster;
  await newNamespace(host, namespace);
});
afterAll(async () => {
  await topology?.close();
});

const nodeOf = async (name: string): Promise<Node | undefined> => await read<Node>(host, `/api/v1/nodes/${name}`);
const labels = { app: 'web' };
const running = async (where: Cluster): Promise<Pod[]> =>
  (await podsOf(where, namespace, 'app=web')).filter(({ status }) => status?.phase === 'Running');

test('a virtual node whose pool is gone from the spec keeps its pods over a restart, cordoned; they can be drained, and it goes', async () => {
  const spec = { ...podSpec([shell('true')]), nodeSelector: { 'spillway.dev/member': 'east' } };
  await host.apply([
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'web', namespace },
      spec: { replicas: 4, selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
    },
  ]);
  await until('all run', async () => (await running(host)).length === 4, { timeoutMs: 60_000 });
  const uids = async (where: Cluster) => (await running(where)).map(({ metadata }) => metadata.uid ?? '');
  const [hostBefore, memberBefore] = [await uids(host), await uids(east)];
  await host.api.call('PATCH', EAST, { spec: { virtualNodes: [{ name: 'cpu' }] } });
  await waitForNode(host, 'east-cpu');
  expect(await untilMemberCondition(host, 'east', 'NodesRetired', 'PodsRemain')).toContain(
    'Virtual node east is not in the spec any more, and 4 pods are on it',
  );
  await topology.spillway.process.stop('SIGKILL');
  topology.spillway.process.restart();
  await waitReady(topology.spillway);
  // The program may have been killed between the condition and the Node.
  await until('it is cordoned', async () =>
    /\sReady,SchedulingDisabled\s/.test(await kubectl(host, ['get', 'node', 'east'])),
  );
  // It works: what its pods do in the member is seen, and one that is deleted ends there.
  const [victim] = await running(host);
  await kubectl(host, ['delete', 'pod', victim?.metadata.name ?? '', '-n', namespace]);
  await untilGone(east, namespace, victim?.metadata.name ?? '');
  await until('its successor runs on the new one', async () => (await running(host)).length === 4);
  const kept = hostBefore.filter((uid) => uid !== victim?.metadata.uid);
  expect(await uids(host)).toEqual(expect.arrayContaining(kept));
  expect((await uids(east)).filter((uid) => memberBefore.includes(uid))).toHaveLength(3);
  expect((await nodeOf('east'))?.status?.conditions?.find(({ type }) => type === 'Ready')?.status).toBe('True');
  await kubectl(host, ['drain', 'east', '--ignore-daemonsets', '--force', '--timeout=60s']);
  await until('the Node is removed', async () => (await nodeOf('east')) === undefined, { timeoutMs: 180_000 });
  await untilMemberCondition(host, 'east', 'NodesRetired', 'NoneLeft');
  await until('all run', async () => (await running(east)).length === 4, { timeoutMs: 60_000 });
  const hosts = (await running(host)).map((one) => one.spec.nodeName);
  expect(new Set(hosts)).toEqual(new Set(['east-cpu']));
});
