import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Cluster } from '../../hack/cluster.ts';
import { until } from '../../hack/until.ts';
import type { Node, Pod, ResourceList } from '../../src/kube/core-v1.ts';
import { addTo, type Amounts, formatAmounts, parseAmounts } from '../../src/kube/amounts.ts';
import { holdsResources, podRequests } from '../../src/capacity/pod-requests.ts';
import {
  condition,
  type Fields,
  getPod,
  newNamespace,
  ON_VIRTUAL_NODE,
  pod,
  read,
  untilGone,
  untilPod,
  untilRunning,
} from '../fixtures/live-pods.ts';
import { errorsOf, startTopology, type Topology } from '../fixtures/topology.ts';

/** Pods that ask for other amounts in the member than in the host; the schedulers are the stock ones, and ask nobody. */
const NS = 'lab';
const MEMBER_NODE = 'small-0';

let topology: Topology;
let host: Cluster;
let east: Cluster;

beforeAll(async () => {
  topology = await startTopology({
    members: [{ name: 'east', kwok: { nodes: 1, cpu: '8', memory: '8Gi', prefix: 'small' } }],
  });
  ({ host } = topology);
  east = topology.member('east').cluster;
  await newNamespace(host, NS);
  await host.apply([cpuIn('member-2', '2')]);
});
afterAll(async () => {
  const errors = topology === undefined ? [] : errorsOf(topology.spillway);
  await topology?.close();
  expect(errors).toEqual([]);
});

/** Pods with the label `cpu` of that value ask for `value` in members. */
function cpuIn(label: string, value: string): Fields {
  const plaintext = [{ path: '/spec/containers/0/resources/requests/cpu', operator: 'replace', value }];
  return {
    apiVersion: 'spillway.dev/v1alpha1',
    kind: 'OverridePolicy',
    metadata: { name: label, namespace: NS },
    spec: {
      resourceSelectors: [{ apiVersion: 'v1', kind: 'Pod', labelSelector: { matchLabels: { cpu: label } } }],
      overrideRules: [{ overriders: { plaintext } }],
    },
  };
}

function asking(name: string, requests: ResourceList, labels: Record<string, string> = {}): Fields {
  const containers = [{ name: 'main', image: 'registry.example/app:v1', resources: { requests } }];
  return pod(name, NS, { ...ON_VIRTUAL_NODE, terminationGracePeriodSeconds: 1, containers }, { labels });
}

/** What a scheduler of the cluster finds free on a node: allocatable less the requests of the pods that are bound to it. */
async function freeOn(cluster: Cluster, nodeName: string): Promise<Amounts> {
  const node = await read<Node>(cluster, `/api/v1/nodes/${nodeName}`);
  const pods = await read<{ items: Pod[] }>(cluster, `/api/v1/pods?fieldSelector=spec.nodeName=${nodeName}`);
  const free = new Map(parseAmounts(node?.status?.allocatable));
  for (const one of pods?.items ?? []) if (holdsResources(one)) addTo(free, podRequests(one), -1n);
  return free;
}

/** Until the host's scheduler finds as much on the virtual node as the member's on the node behind it, and that much of CPU. */
async function untilBothFind(cpu: string): Promise<void> {
  await until(`both clusters find ${cpu} CPUs free`, async () => {
    const [here, there] = await Promise.all([freeOn(host, 'east'), freeOn(east, MEMBER_NODE)]);
    const [mine, its] = [formatAmounts(here), formatAmounts(there)];
    const same = ['cpu', 'memory', 'pods'].every((name) => (mine[name] ?? '0') === (its[name] ?? '0'));
    return same && (its['cpu'] ?? '0') === cpu;
  });
}

async function cpuOfCopy(name: string): Promise<unknown> {
  return (await getPod(east, NS, name)).spec.containers[0]?.resources?.requests?.['cpu'];
}

async function untilRefused(name: string): Promise<void> {
  const refused = (one: Pod): boolean => condition(one, 'PodScheduled')?.reason === 'Unschedulable';
  const waiting = await untilPod(host, NS, name, 'was refused by the scheduler', refused);
  expect(condition(waiting, 'PodScheduled')?.message).toContain('Insufficient cpu');
}

async function allocatable(): Promise<string | number | undefined> {
  return (await read<Node>(host, '/api/v1/nodes/east'))?.status?.allocatable?.['cpu'];
}

test('a pod that asks for half as much in the member leaves the other half to others', async () => {
  await host.apply([asking('halved', { cpu: '4', memory: '1Gi' }, { cpu: 'member-2' })]);
  await untilRunning(host, NS, 'halved');
  expect(await cpuOfCopy('halved')).toBe('2');
  await untilBothFind('6');
  expect(await allocatable()).toBe('10');
});

test('one that asks for twice as much takes that from others', async () => {
  await host.apply([asking('doubled', { cpu: '1', memory: '1Gi' }, { cpu: 'member-2' })]);
  await untilRunning(host, NS, 'doubled');
  expect(await cpuOfCopy('doubled')).toBe('2');
  await untilBothFind('4');
  expect(await allocatable()).toBe('9');
});

test('a namespace of the member that fills requests in takes what it fills in', async () => {
  const spec = { limits: [{ type: 'Container', defaultRequest: { cpu: '1', memory: '256Mi' } }] };
  await east.apply([{ apiVersion: 'v1', kind: 'LimitRange', metadata: { name: 'defaults', namespace: NS }, spec }]);
  await host.apply([asking('modest', {})]);
  await untilRunning(host, NS, 'modest');
  expect(await cpuOfCopy('modest')).toBe('1');
  await untilBothFind('3');
  expect(await allocatable()).toBe('8');
});

test('what is left can be used to the last bit, and no more than that', async () => {
  await host.apply([asking('too-much', { cpu: '3001m' })]);
  await untilRefused('too-much');
  await host.apply([asking('rest', { cpu: '3' })]);
  await untilRunning(host, NS, 'rest');
  await untilBothFind('0');
  await host.apply([asking('more', { cpu: '1m' })]);
  await untilRefused('more');
});

test('and all of it is there again when they have gone', async () => {
  const names = ['too-much', 'more', 'rest', 'doubled', 'halved', 'modest'];
  for (const name of names) await host.api.call('DELETE', `/api/v1/namespaces/${NS}/pods/${name}`);
  await Promise.all(names.map((name) => untilGone(host, NS, name)));
  await untilBothFind('8');
  expect(await allocatable()).toBe('8');
});
