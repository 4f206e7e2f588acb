import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Cluster } from '../../hack/cluster.ts';
import { userOf } from '../../hack/service-account.ts';
import { admitHost, MEMBER_ACCOUNT } from '../../hack/spillway.ts';
import { until } from '../../hack/until.ts';
import { parseQuantity } from '../../src/kube/quantity.ts';
import {
  condition,
  eventsOf,
  type Fields,
  getPod,
  IDLE,
  newNamespace,
  pod,
  podsOf,
  podSpec,
  read,
  readPod,
  shell,
  untilPod,
  untilRunning,
  writesOf,
} from '../fixtures/live-pods.ts';
import { startTopology, type Topology } from '../fixtures/topology.ts';

const MEMBER_CLUSTER = '/apis/spillway.dev/v1alpha1/memberclusters/east';
const WORKLOADS = '/apis/rbac.authorization.k8s.io/v1/clusterroles/spillway-workloads';
/** How soon users see what is wrong, in ms: on a busy machine it is not a moment. */
const SHOWN_MS = 15_000;
/** How long refused creations are watched for hot loops, in ms. */
const WATCHED_MS = 20_000;
/** The longest pause between two tries is a minute. */
const NEXT_TRY_MS = 80_000;
/** Of the nodes that are for the member itself. */
const OWN_USE = { dedicated: 'member' };

let topology: Topology;
let host: Cluster;
let east: Cluster;

/** A member that lends some namespaces, and keeps one node, the largest, to itself. */
beforeAll(async () => {
  const spec = {
    namespaces: { mapping: 'Explicit', explicit: [{ host: 'bank', member: 'shared' }], create: false },
    capacity: { excludeNodes: { matchLabels: OWN_USE } },
  };
  topology = await startTopology({
    members: [
      { name: 'east', kwok: { nodes: 2, cpu: '4' }, options: { rights: 'namespaced', lend: ['shared'], spec } },
    ],
  });
  ({ host } = topology);
  const member = topology.member('east');
  east = member.cluster;
  await member.kwok?.addNodes({ nodes: 1, prefix: 'own', cpu: '64', labels: OWN_USE });
  await Promise.all([newNamespace(host, 'bank'), newNamespace(host, 'desk')]);
});
afterAll(() => topology?.close());

function idle(name: string, namespace: string, more: Fields = {}): Fields {
  return pod(name, namespace, podSpec([shell(IDLE)], more));
}

async function edit(spec: Fields): Promise<void> {
  await host.api.call('PATCH', MEMBER_CLUSTER, { spec });
}

test('mapping Explicit: only listed namespaces, each to its counterpart; with create: false its owner makes it', async () => {
  await host.apply([idle('listed', 'bank'), idle('unlisted', 'desk')]);
  await untilRunning(host, 'bank', 'listed');
  expect((await podsOf(east, 'shared')).map(({ metadata }) => metadata.name)).toEqual(['listed']);
  const unlisted = await untilPod(host, 'desk', 'unlisted', 'says why', ({ status }) => status?.reason !== undefined);
  expect(unlisted.status).toMatchObject({ phase: 'Pending', reason: 'NamespaceNotAllowed' });
  expect(unlisted.status?.message).toContain('namespace desk is not listed in spec.namespaces.explicit');

  const explicit = [
    { host: 'bank', member: 'shared' },
    { host: 'desk', member: 'counter' },
  ];
  await edit({ namespaces: { explicit } });
  const missing = await untilPod(
    host,
    'desk',
    'unlisted',
    'says what is missing',
    ({ status }) => status?.reason === 'NamespaceMissing',
    { timeoutMs: NEXT_TRY_MS },
  );
  expect(missing.status?.message).toContain(
    'namespace counter does not exist there and spec.namespaces.create is false',
  );
  await sleep(2_000);
  expect(await read(east, '/api/v1/namespaces/counter')).toBeUndefined();
  // Not even tried: the rights are not what keeps it from that.
  expect(writesOf(east).filter(({ objectRef }) => objectRef?.resource === 'namespaces')).toEqual([]);
  await admitHost(east, { rights: 'namespaced', lend: ['counter'] });
  await untilRunning(host, 'desk', 'unlisted', { timeoutMs: NEXT_TRY_MS });
  expect((await podsOf(east, 'counter')).map(({ metadata }) => metadata.name)).toEqual(['unlisted']);
  for (const name of ['bank', 'desk']) expect(await read(east, `/api/v1/namespaces/${name}`)).toBeUndefined();
});

test('capacity.excludeNodes: nodes that are left out count for nothing, and no pod goes there', async () => {
  const offered = async (): Promise<number> => {
    const node = await read<{ status: { allocatable: { cpu: string } } }>(host, '/api/v1/nodes/east');
    return Number(parseQuantity(node?.status.allocatable.cpu ?? '0').nanos / 1_000_000_000n);
  };
  await until('the virtual node offers the two others', async () => (await offered()) === 8);
  const resources = { requests: { cpu: '5' } };
  // Past the scheduler of the host: only the node that is left out would have room.
  const large = idle('large', 'bank', { containers: [shell(IDLE, { resources })], nodeName: 'east' });
  await host.apply([large, ...[0, 1, 2, 3].map((index) => idle(`small-${index}`, 'bank'))]);
  const below = await untilPod(
    east,
    'shared',
    'large',
    'has no node',
    (one) => condition(one, 'PodScheduled')?.reason === 'Unschedulable',
  );
  expect(condition(below, 'PodScheduled')?.message).toMatch(/1 node\(s\) didn't match Pod's node affinity\/selector/);
  for (const index of [0, 1, 2, 3]) await untilRunning(host, 'bank', `small-${index}`);
  const used = (await podsOf(east, 'shared')).map(({ spec }) => spec.nodeName ?? '');
  expect(used.filter((node) => node.startsWith('own'))).toEqual([]);
  await host.kubectl(['delete', 'pod', 'large', '-n', 'bank', '--wait=false']);

  await edit({ capacity: { excludeNodes: null } });
  await until('the virtual node offers all three', async () => (await offered()) === 72);
  await host.apply([idle('larger', 'bank', { containers: [shell(IDLE, { resources })] })]);
  await untilRunning(host, 'bank', 'larger');
  expect((await getPod(east, 'shared', 'larger')).spec.nodeName).toBe('own-0');
});

test('no right to create pods: the pod says so in the words of the member, tries get rarer, and it runs once the right is there', async () => {
  const role = await read<{ rules: { resources: string[]; verbs: string[] }[] }>(east, WORKLOADS);
  if (role === undefined) throw new Error('the role of the manifests is not there');
  const rules = role.rules.map((rule) =>
    rule.resources.includes('pods') ? { ...rule, verbs: rule.verbs.filter((verb) => verb !== 'create') } : rule,
  );
  const user = userOf(MEMBER_ACCOUNT);
  const may = async (): Promise<boolean> =>
    (await east.kubectl(['auth', 'can-i', 'create', 'pods', '-n', 'shared', `--as=${user}`])).code === 0;
  await east.api.call('PATCH', WORKLOADS, { rules });
  await until('the right is gone', async () => !(await may()));
  const since = Date.now();
  await host.apply([idle('barred', 'bank')]);
  const barred = await untilPod(host, 'bank', 'barred', 'says why', ({ status }) => status?.reason !== undefined, {
    timeoutMs: SHOWN_MS,
  });
  expect(barred.status).toMatchObject({ phase: 'Pending', reason: 'MemberForbidden' });
  expect(barred.status?.message).toContain(
    `Cluster "east" refused the pod: pods is forbidden: User "${user}" cannot create resource "pods"`,
  );
  await until(
    'so does kubectl describe',
    async () => {
      const events = await eventsOf(host, 'bank', 'barred');
      return events.some(({ reason, message }) => reason === 'MemberForbidden' && message.includes('Cluster "east"'));
    },
    { timeoutMs: SHOWN_MS },
  );
  await sleep(Math.max(0, WATCHED_MS - (Date.now() - since)));
  const tries = writesOf(east, since)
    .filter(({ verb, objectRef }) => verb === 'create' && objectRef?.resource === 'pods')
    .map(({ requestReceivedTimestamp }) => Date.parse(requestReceivedTimestamp));
  expect(tries.length).toBeGreaterThanOrEqual(2);
  expect(tries.length).toBeLessThanOrEqual(10);
  const told = writesOf(host, since).filter(({ objectRef }) => objectRef?.name === 'barred');
  expect(told.length).toBeLessThanOrEqual(3);
  expect(await readPod(east, 'shared', 'barred')).toBeUndefined();

  await east.api.call('PATCH', WORKLOADS, { rules: role.rules });
  const running = await untilRunning(host, 'bank', 'barred', { timeoutMs: NEXT_TRY_MS });
  expect(running.status?.reason).toBeUndefined();
  expect(running.status?.message).toBeUndefined();
});
