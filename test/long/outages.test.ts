import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Cluster } from '../../hack/cluster.ts';
import { startKwok } from '../../hack/kwok.ts';
import { waitForNode, waitReady } from '../../hack/spillway.ts';
import { until } from '../../hack/until.ts';
import { HOST_LABEL } from '../../src/api/marks.ts';
import {
  eventsOf,
  type Fields,
  getPod,
  IDLE,
  isReady,
  kubectl,
  newNamespace,
  onNode,
  pod,
  podsOf,
  podSpec,
  readPod,
  shell,
  untilGone,
  untilPod,
  untilRunning,
} from '../fixtures/live-pods.ts';
import { ownTaints } from '../fixtures/own-taints.ts';
import { startTopology, type Topology } from '../fixtures/topology.ts';

/** Longer than twenty tries with backoff take, and than watches that were not heard of count as current. */
const OUTAGE_MS = 130_000;
/** From the end of an outage to that of our taints. */
const OPEN_MS = 5_000;

/** What shows only after minutes. */
let topology: Topology;
let host: Cluster;
let east: Cluster;

beforeAll(async () => {
  // Else the member's own controllers may find its nodes silent before these notice that their API server is back, and call
  // their pods unready, which fake kubelets do not mend.
  const cluster = { controllerManagerFlags: { 'node-monitor-grace-period': '30m' } };
  topology = await startTopology({ members: [{ name: 'east', kwok: { nodes: 2, prefix: 'east' }, cluster }] });
  host = topology.host;
  east = topology.member('east').cluster;
  // As it is unless somebody says otherwise.
  const probe = { periodSeconds: 10 };
  await host.kubectl(['patch', 'membercluster', 'east', '--type=merge', '-p', JSON.stringify({ spec: { probe } })]);
  await startKwok(host, { nodes: 1, prefix: 'local' });
});
afterAll(() => topology?.close());

test('nothing that was asked for during a long outage of a member is forgotten', async () => {
  const ns = await newNamespace(host, 'outage');
  const numbered = (prefix: string): string[] => Array.from({ length: 5 }, (_, index) => `${prefix}-${index}`);
  const idle = (name: string): Fields => pod(name, ns, podSpec([shell(IDLE)], onNode('east')));
  const leaving = numbered('leaving');
  const coming = numbered('coming');
  await host.apply(['stays', ...leaving].map(idle));
  await until('they run', async () => (await podsOf(host, ns)).every(isReady));
  const { uid } = (await getPod(east, ns, 'stays')).metadata;
  const server = east.component('kube-apiserver');
  await server.stop('SIGKILL');
  const began = Date.now();
  await host.apply(coming.map(idle));
  await kubectl(host, ['delete', 'pod', ...leaving, '-n', ns, '--wait=false']);
  for (const name of coming) {
    await untilPod(
      host,
      ns,
      name,
      'says why it waits',
      ({ spec, status }) => spec.nodeName === undefined || status?.reason === 'MemberUnreachable',
    );
  }
  await sleep(OUTAGE_MS - (Date.now() - began));
  expect(await ownTaints(host, 'east')).toHaveLength(1);
  const pods = await podsOf(host, ns);
  expect(pods).toHaveLength(11);
  for (const { metadata, status } of pods) expect(['Pending', 'Running'], metadata.name).toContain(status?.phase);
  server.restart();
  await east.whenReady();
  const back = Date.now();
  await until('its virtual node takes pods again', async () => (await ownTaints(host, 'east')).length === 0, {
    timeoutMs: 30_000,
  });
  const openMs = Date.now() - back;
  console.info(`our taint was gone ${String(openMs)} ms after the member was ready again`);
  expect(openMs).toBeLessThan(OPEN_MS);
  await until(
    'all that was asked for has been passed on',
    async () => {
      const below = new Map((await podsOf(east, ns)).map((one) => [one.metadata.name, one.metadata]));
      const left = leaving.every((name) => below.get(name)?.deletionTimestamp !== undefined || !below.has(name));
      return left && coming.every((name) => below.has(name));
    },
    { timeoutMs: 15_000 },
  );
  // The member's own scheduler and (fake) kubelets take up to a minute to notice that their API server is back.
  for (const name of coming) await untilRunning(host, ns, name, { timeoutMs: 90_000 });
  for (const name of leaving) await untilGone(host, ns, name, { timeoutMs: 30_000 });
  expect((await podsOf(east, ns)).map(({ metadata }) => metadata.name)).toEqual([...coming, 'stays']);
  expect((await getPod(east, ns, 'stays')).metadata.uid).toBe(uid);
  expect(isReady(await untilRunning(host, ns, 'stays'))).toBe(true);
  expect((await eventsOf(host, ns, 'stays')).filter(({ type }) => type === 'Warning')).toEqual([]);
  // With more than five pods that vanish at once the other test would be one of the deletion breaker.
  await kubectl(host, ['delete', 'pod', '-n', ns, '--all', '--now']);
}, 300_000);

test('a Node deleted while nobody keeps it: the host gives its pods up, and none of them runs twice', async () => {
  const ns = await newNamespace(host, 'given-up');
  await kubectl(host, ['cordon', 'local-0']);
  const labels = { app: 'web' };
  const template = {
    metadata: { labels },
    spec: {
      tolerations: [{ key: 'spillway.dev/virtual-node', operator: 'Exists' }],
      terminationGracePeriodSeconds: 1,
      containers: [shell(IDLE)],
    },
  };
  await host.apply([
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'web', namespace: ns },
      spec: { replicas: 1, selector: { matchLabels: labels }, template },
    },
  ]);
  await until('its pod runs', async () => (await podsOf(host, ns)).filter(isReady).length === 1);
  const name = (await podsOf(host, ns))[0]?.metadata.name ?? '';
  await kubectl(host, ['uncordon', 'local-0']);
  const { process: manager } = topology.spillway;
  await manager.stop('SIGKILL');
  await kubectl(host, ['delete', 'node', 'east']);
  // The garbage collector of pods looks every 20 s, and believes that a node is gone after 40 s.
  await until('the host has given the pod up', async () => (await readPod(host, ns, name)) === undefined, {
    timeoutMs: 110_000,
    intervalMs: 500,
  });
  // Its copy knows nothing of that; the replacement is on the local node.
  expect(await podsOf(east, ns, HOST_LABEL)).toHaveLength(1);
  await until('the replacement runs', async () => (await podsOf(host, ns)).filter(isReady).length === 1);
  manager.restart();
  await waitReady(topology.spillway);
  await waitForNode(host, 'east', 60_000);
  // It was not seen being deleted, so its host is asked again after a minute.
  await untilGone(east, ns, name, { timeoutMs: 100_000, intervalMs: 250 });
  expect(await podsOf(east, ns, HOST_LABEL)).toEqual([]);
  const left = await podsOf(host, ns);
  expect(left.map(({ spec, status }) => [spec.nodeName, status?.phase])).toEqual([['local-0', 'Running']]);
}, 300_000);
