import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Cluster } from '../../hack/cluster.ts';
import { addMember, waitForNode } from '../../hack/spillway.ts';
import { until } from '../../hack/until.ts';
import { VIRTUAL_NODE_TAINT } from '../../src/api/marks.ts';
import type { Node, ResourceList, Taint } from '../../src/kube/core-v1.ts';
import {
  condition,
  type Fields,
  getPod,
  kubectl,
  newNamespace,
  pod,
  read,
  untilPod,
  untilRunning,
} from '../fixtures/live-pods.ts';
import { errorsOf, startTopology, type Topology } from '../fixtures/topology.ts';

/** Nodes with GPUs, tainted as clouds do it, as a pool of their own; the schedulers are the stock ones, and ask nobody. */
const GPU: Taint = { key: 'nvidia.com/gpu', value: 'present', effect: 'NoSchedule' };
const MEMBER = '/apis/spillway.dev/v1alpha1/memberclusters/east';

let topology: Topology;
let host: Cluster;
let east: Cluster;

beforeAll(async () => {
  topology = await startTopology({
    members: [{ name: 'east', kwok: { nodes: 1, cpu: '4', prefix: 'plain' }, unregistered: true }],
  });
  ({ host } = topology);
  const member = topology.member('east');
  east = member.cluster;
  await member.kwok?.addNodes({
    nodes: 1,
    prefix: 'gpu',
    cpu: '16',
    extended: { 'nvidia.com/gpu': '2' },
    taints: [GPU],
  });
  const virtualNodes = [{ name: 'general' }, { name: 'gpu', taints: [GPU] }];
  await addMember(host, east, { spec: { virtualNodes } });
  await Promise.all([waitForNode(host, 'east-general'), waitForNode(host, 'east-gpu'), newNamespace(host, 'lab')]);
});
afterAll(async () => {
  const errors = topology === undefined ? [] : errorsOf(topology.spillway);
  await topology?.close();
  expect(errors).toEqual([]);
});

function job(name: string, requests: ResourceList, ...tolerations: object[]): Fields {
  return pod(name, 'lab', {
    terminationGracePeriodSeconds: 1,
    tolerations: [{ key: VIRTUAL_NODE_TAINT, operator: 'Exists' }, ...tolerations],
    containers: [{ name: 'main', image: 'registry.example/train:v1', resources: { requests, limits: requests } }],
  });
}

async function virtualNode(name: string): Promise<Node | undefined> {
  return await read<Node>(host, `/api/v1/nodes/${name}`);
}

const tolerant = { key: GPU.key, operator: 'Equal', value: 'present', effect: 'NoSchedule' };

test('the tainted node is offered by the pool that has its taint, and by no other', async () => {
  const [general, gpu] = [await virtualNode('east-general'), await virtualNode('east-gpu')];
  expect(gpu?.spec?.taints).toContainEqual(GPU);
  expect(general?.spec?.taints?.some(({ key }) => key === GPU.key)).toBe(false);
  expect(gpu?.status?.allocatable).toMatchObject({ cpu: '16', 'nvidia.com/gpu': '2' });
  expect(general?.status?.allocatable?.['cpu']).toBe('4');
  expect(general?.status?.allocatable).not.toHaveProperty(['nvidia.com/gpu']);
});

test('a pod that tolerates the taint lands there by plain kubectl, one that does not stays Pending', async () => {
  await kubectl(host, ['create', '-f', '-'], {
    input: JSON.stringify(job('train', { 'nvidia.com/gpu': '1' }, tolerant)),
  });
  await kubectl(host, ['create', '-f', '-'], { input: JSON.stringify(job('stray', { 'nvidia.com/gpu': '1' })) });
  const train = await untilRunning(host, 'lab', 'train');
  expect(train.spec.nodeName).toBe('east-gpu');
  const copy = await getPod(east, 'lab', 'train');
  expect(copy.spec.nodeName).toBe('gpu-0');
  expect(copy.spec.tolerations).toContainEqual(tolerant);
  const stray = await untilPod(
    host,
    'lab',
    'stray',
    'was refused by the scheduler',
    (one) => condition(one, 'PodScheduled')?.reason === 'Unschedulable',
  );
  expect(stray.spec.nodeName).toBeUndefined();
  expect(condition(stray, 'PodScheduled')?.message).toMatch(/Insufficient nvidia\.com\/gpu.*untolerated taint/);
});

test('with another value it is another taint, and room that is gone is not offered', async () => {
  await host.apply([
    job('other', { 'nvidia.com/gpu': '1' }, { ...tolerant, value: 'absent' }),
    job('large', { 'nvidia.com/gpu': '2' }, tolerant),
  ]);
  for (const name of ['other', 'large']) {
    await untilPod(host, 'lab', name, 'waits', (one) => condition(one, 'PodScheduled')?.status === 'False');
  }
  await kubectl(host, ['delete', 'pod', 'train', '-n', 'lab']);
  expect((await untilRunning(host, 'lab', 'large')).spec.nodeName).toBe('east-gpu');
});

test('nodes that the member can get are offered where their taints are accepted', async () => {
  const group = { name: 'gpu', maxNodes: 1, taints: [GPU], nodeLabels: { group: 'gpu' } };
  const elastic = [{ ...group, resources: { cpu: '64', memory: '64Gi', 'nvidia.com/gpu': '8', pods: '110' } }];
  await host.api.call('PATCH', MEMBER, { spec: { capacity: { elastic } } });
  const gpus = await until('its room is offered', async () => {
    const node = await virtualNode('east-gpu');
    return node?.status?.allocatable?.['cpu'] === '80' ? node.status.allocatable : undefined;
  });
  expect(gpus['nvidia.com/gpu']).toBe('10');
  expect((await virtualNode('east-general'))?.status?.allocatable?.['cpu']).toBe('4');
});

test('a pool that accepts the taint no more offers the node no more', async () => {
  await host.api.call('PATCH', MEMBER, { spec: { virtualNodes: [{ name: 'general' }, { name: 'gpu' }] } });
  await until('its taint and its room are gone', async () => {
    const node = await virtualNode('east-gpu');
    const has = node?.spec?.taints?.some(({ key }) => key === GPU.key) ?? true;
    // What runs there is offered still, as the host subtracts it.
    return !has && node?.status?.allocatable?.['nvidia.com/gpu'] === '2';
  });
  expect((await getPod(host, 'lab', 'large')).status?.phase).toBe('Running');
});
