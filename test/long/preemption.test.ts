import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Cluster } from '../../hack/cluster.ts';
import { freePort } from '../../hack/addresses.ts';
import { startKwok } from '../../hack/kwok.ts';
import { startSecondScheduler } from '../../hack/second-scheduler.ts';
import { startSpillway } from '../../hack/spillway.ts';
import { until } from '../../hack/until.ts';
import { UID_LABEL } from '../../src/api/marks.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { condition, type Fields, isReady, kubectl, newNamespace, podsOf } from '../fixtures/live-pods.ts';
import { evicted, PRIORITY_CLASSES, prioritised, untilSeenThatNothingIsEvicted } from '../fixtures/preemption.ts';
import { burstNamespace, deployment, LOCAL_PREFIX, policy, settled } from '../fixtures/scheduling.ts';
import { errorsOf, startTopology, type Topology } from '../fixtures/topology.ts';

/**
 * kube-scheduler tries pods without a place again after minutes, and whenever pods and nodes come, go and change. For ten minutes, in
 * a full host beside a full member, with pods of high priority that no eviction would help.
 */
const FOR_MS = 600_000;
const CHANGE_EVERY_MS = 20_000;
const PATIENCE = { timeoutMs: 120_000 };

let topology: Topology;
let host: Cluster;

beforeAll(async () => {
  topology = await startTopology({
    extender: true,
    host: { extenderTimeout: '30s' },
    members: [{ name: 'east', kwok: { nodes: 2, cpu: '8', prefix: 'east-n' } }],
  });
  ({ host } = topology);
  await startKwok(host, { nodes: 1, cpu: '10', prefix: LOCAL_PREFIX });
  await host.apply(PRIORITY_CLASSES);
});
afterAll(async () => {
  const errors = topology === undefined ? [] : errorsOf(topology.spillway);
  await topology?.close();
  expect(errors).toEqual([]);
});

const onlyIn = (name: string): Fields => ({ clusterAffinity: { clusterNames: [name] } });
const FULL = ['home', 'away'];

/** Makes the scheduler try again: a pod of low priority goes, and another one comes; labels of nodes change. */
async function change(round: number): Promise<void> {
  const namespace = FULL[round % FULL.length] ?? '';
  const [pod] = (await podsOf(host, namespace, 'app=web')).filter(isReady);
  if (pod !== undefined) await kubectl(host, ['delete', 'pod', '-n', namespace, pod.metadata.name, '--wait=false']);
  const label = { metadata: { labels: { round: String(round) } } };
  await host.api.call('PATCH', `/api/v1/nodes/${LOCAL_PREFIX}-0`, label);
  await topology.member('east').cluster.api.call('PATCH', '/api/v1/nodes/east-n-0', label);
}

test('nothing is evicted in vain for ten minutes', { timeout: FOR_MS + 400_000 }, async () => {
  for (const name of [...FULL, 'vain', 'local-only']) await newNamespace(host, name);
  await host.apply([
    policy('away', 'in-east', onlyIn('east')),
    policy('vain', 'in-east', onlyIn('east')),
    policy('local-only', 'at-home', onlyIn('local')),
    deployment('home', 'web', 10, '1', {}, { ...prioritised('low'), tolerations: [] }),
    deployment('away', 'web', 8, '2', {}, prioritised('low')),
  ]);
  await settled(host, 'home', 'web', { local: 10 }, PATIENCE.timeoutMs);
  await settled(host, 'away', 'web', { east: 8 }, PATIENCE.timeoutMs);
  await host.apply([
    // More than a node of the member has; the host's node, which the policy forbids, and the virtual node as a whole have more.
    deployment('vain', 'large', 2, '9', {}, prioritised('high')),
    // No real node has the label, which virtual nodes do not show.
    deployment('vain', 'elsewhere', 2, '1', {}, { ...prioritised('high'), nodeSelector: { disk: 'none' } }),
    // More than the host's node has; the virtual node, which the policy forbids, has more.
    deployment('local-only', 'large', 2, '11', {}, prioritised('high')),
  ]);
  await until(
    'the scheduler found no place for any of them',
    async () => {
      const pods = [...(await podsOf(host, 'vain')), ...(await podsOf(host, 'local-only'))];
      return pods.length === 6 && pods.every((pod) => condition(pod, 'PodScheduled')?.status === 'False');
    },
    PATIENCE,
  );
  const watched = new AbortController();
  const changing = (async (): Promise<void> => {
    for (let round = 0; !watched.signal.aborted; round += 1) {
      await change(round);
      const next = Date.now() + CHANGE_EVERY_MS;
      await until('it is time for the next change', () => watched.signal.aborted || Date.now() >= next, {
        timeoutMs: CHANGE_EVERY_MS * 2,
      });
    }
  })();
  try {
    await Promise.race([
      untilSeenThatNothingIsEvicted(host, [...FULL, 'vain', 'local-only'], FOR_MS),
      failing(changing),
    ]);
  } finally {
    watched.abort();
    await changing;
  }
  // Nor was that because nothing is ever evicted.
  await settled(host, 'away', 'web', { east: 8 }, PATIENCE.timeoutMs);
  await host.apply([deployment('away', 'core', 1, '2', {}, prioritised('high'))]);
  await settled(host, 'away', 'core', { east: 1 }, PATIENCE.timeoutMs);
  expect(await evicted(host, 'away')).toHaveLength(1);
});

/** The same where pods have a scheduler of their own, which asks with the certificate that Spillway gives it. */
test('the second scheduler, as it is shipped, evicts the fewest on one node of the member, and nothing in vain', async () => {
  await kubectl(host, ['delete', 'deployment', '--all', '-A', '--wait=false']);
  await until(
    'no pods are left',
    async () => ((await host.api.call('GET', '/api/v1/pods')) as { items: unknown[] }).items.length === 0,
    PATIENCE,
  );
  const extenderPort = await freePort();
  const replica = await startSpillway(host, { name: 'shipped', extenderPort, extenderCertificates: 'SelfManaged' });
  await until('it knows the room of the member', async () => {
    const text = await (await fetch(`${replica.url}/metrics`)).text();
    return text.includes('spillway_member_observed{member="east"} 1');
  });
  const second = await startSecondScheduler(host, { extenderPort });
  try {
    await burstNamespace(host, 'second');
    const spec = (name: 'low' | 'high'): Fields => ({ ...prioritised(name), schedulerName: 'spillway-scheduler' });
    await host.apply([
      policy('second', 'in-east', onlyIn('east')),
      deployment('second', 'batch', 8, '2', {}, spec('low')),
    ]);
    const batch = await settled(host, 'second', 'batch', { east: 8 }, PATIENCE.timeoutMs);
    const { items } = (await topology.member('east').cluster.api.call('GET', '/api/v1/pods')) as { items: Pod[] };
    const nodeOf = (name: string): string | undefined => {
      const uid = batch.find(({ metadata }) => metadata.name === name)?.metadata.uid;
      return items.find(({ metadata }) => metadata.labels?.[UID_LABEL] === uid)?.spec.nodeName;
    };
    // More than a node of the member has.
    await host.apply([deployment('second', 'large', 1, '9', {}, spec('high'))]);
    await untilSeenThatNothingIsEvicted(host, ['second'], 45_000);
    await host.apply([deployment('second', 'core', 1, '4', {}, spec('high'))]);
    await settled(host, 'second', 'core', { east: 1 }, PATIENCE.timeoutMs);
    const gone = await evicted(host, 'second');
    expect(gone).toHaveLength(2);
    expect(new Set(gone.map(nodeOf)).size).toBe(1);
    await untilSeenThatNothingElseIsEvicted('second', gone);
  } finally {
    await second.stop();
    await replica.process.stop();
  }
}, 400_000);

/** Those that came in their place, and the large one, take nothing back. */
async function untilSeenThatNothingElseIsEvicted(namespace: string, gone: readonly string[]): Promise<void> {
  const since = Date.now();
  await until(
    'nothing else was evicted for long enough',
    async () => {
      expect(await evicted(host, namespace)).toEqual(gone);
      return Date.now() - since >= 45_000;
    },
    { timeoutMs: 75_000, intervalMs: 1_000 },
  );
}

/** Rejects when the other does, and never resolves. */
async function failing(other: Promise<void>): Promise<never> {
  await other;
  return await new Promise<never>(() => undefined);
}
