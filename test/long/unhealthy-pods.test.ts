import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Cluster } from '../../hack/cluster.ts';
import { until } from '../../hack/until.ts';
import type { WorkloadPlacement } from '../../src/api/workload-placement.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { eventsOf, type Fields, kubectl, podsOf, read } from '../fixtures/live-pods.ts';
import { deployment, policy, settled, whereAre } from '../fixtures/scheduling.ts';
import { startMovingTopology } from '../fixtures/moving-topology.ts';
import { errorsOf, type Topology } from '../fixtures/topology.ts';

/** Two members whose pods fall ill; kube-scheduler asks Spillway where pods may run, and Spillway moves them. */
let topology: Topology;
let host: Cluster;
const namespace = 'illness';
/** Ready for a minute, ill for 15 s, 10 s for all to know. */
const PATIENT = { timeoutMs: 150_000 };

beforeAll(async () => {
  const members = ['east', 'west'].map((name) => ({ name, kwok: { nodes: 2, cpu: '8' } }));
  topology = await startMovingTopology(members, namespace);
  ({ host } = topology);
});
afterAll(async () => {
  const errors = topology === undefined ? [] : errorsOf(topology.spillway);
  await topology?.close();
  expect(errors).toEqual([]);
});

/** What kubelets say of containers that crash over and over, or of those that run well again. */
async function tell(copies: readonly Pod[], member: string, isWell: boolean): Promise<void> {
  const { cluster } = topology.member(member);
  for (const { metadata, status } of copies) {
    const conditions = (status?.conditions ?? []).map((one) =>
      ['Ready', 'ContainersReady'].includes(one.type) ? { ...one, status: isWell ? 'True' : 'False' } : one,
    );
    const state = isWell ? { running: {} } : { waiting: { reason: 'CrashLoopBackOff' } };
    const containerStatuses = (status?.containerStatuses ?? []).map((one) => ({ ...one, ready: isWell, state }));
    const patch = JSON.stringify({ status: { conditions, containerStatuses } });
    const how = ['--subresource=status', '--type=merge', '-p', patch];
    await kubectl(cluster, ['patch', 'pod', metadata.name, '-n', namespace, ...how]);
  }
}

const copiesOf = async (app: string, member: string): Promise<Pod[]> =>
  await podsOf(topology.member(member).cluster, namespace, `app=${app}`);

function ruled(name: string, application: Fields | undefined): Fields {
  const clusterAffinity = { clusterNames: ['east'], max: 3, overflowAffinities: [{ clusterNames: ['west'] }] };
  const { spec, ...rest } = policy(namespace, name, { clusterAffinity }, name);
  return {
    ...rest,
    spec: { ...(spec as Fields), ...(application === undefined ? {} : { failover: { application } }) },
  };
}

test('a pod that is ill in one member makes way for one elsewhere where its policy says so, and a bad image moves nothing', async () => {
  const application = { decisionConditions: { tolerationSeconds: 15 } };
  const apps = ['one', 'all', 'quiet'];
  await host.apply([
    ruled('one', application),
    ruled('all', application),
    ruled('quiet', undefined),
    ...apps.map((name) => deployment(namespace, name, 4, '100m')),
  ]);
  for (const name of apps) await settled(host, namespace, name, { east: 3, west: 1 });
  const [sick] = await copiesOf('one', 'east');
  const [quiet] = await copiesOf('quiet', 'east');
  const bad = await copiesOf('all', 'east');
  if (sick === undefined || quiet === undefined) throw new Error('no copies');
  await tell([sick], 'east', false);
  await tell([quiet], 'east', false);
  await tell(bad, 'east', false);
  await tell(await copiesOf('all', 'west'), 'west', false);
  const events = await until(
    'another pod runs in west',
    async () => {
      const pods = await podsOf(host, namespace, 'app=one');
      const found = await eventsOf(host, namespace, sick.metadata.name);
      return whereAre(pods)['west'] === 2 && pods.length === 4 ? found : undefined;
    },
    PATIENT,
  );
  await settled(host, namespace, 'one', { east: 2, west: 2 });
  expect(events.find(({ reason }) => reason === 'UnhealthyPodReplaced')?.message).toMatch(
    /^it has not been well in member east for \d+s, and others of its revision are well elsewhere; it was evicted, so that ReplicaSet one-\S+ makes another one, which goes elsewhere: east is avoided for a while$/,
  );
  const path = `/apis/spillway.dev/v1alpha1/namespaces/${namespace}/workloadplacements/deployment-one`;
  const status = await until('it is written down', async () => {
    const found = (await read<WorkloadPlacement>(host, path))?.status;
    return found?.moves === undefined || found.avoided === undefined ? undefined : found;
  });
  expect(status.moves).toMatchObject([{ strategy: 'UnhealthyInMember', from: 'east', count: 1 }]);
  expect(status.avoided).toMatchObject([{ cluster: 'east', reason: 'PodUnhealthy' }]);
  // Those of the bad image were ill for as long, and say why they stay.
  const told = await until('they say why they stay', async () => {
    const all = await Promise.all(bad.map(async ({ metadata }) => await eventsOf(host, namespace, metadata.name)));
    return all.flat().find(({ reason }) => reason === 'UnhealthyPodStays')?.message;
  });
  expect(told).toMatch(/no other pod of its revision is well in another cluster, .* \(CrashLoopBackOff\)$/);
  for (const name of ['all', 'quiet']) {
    const pods = await podsOf(host, namespace, `app=${name}`);
    expect([name, whereAre(pods), pods.length]).toEqual([name, { east: 3, west: 1 }, 4]);
  }
  const evicted = host
    .auditEvents()
    .filter(({ objectRef, verb }) => verb === 'create' && objectRef?.subresource === 'eviction');
  expect(evicted.map(({ objectRef }) => objectRef?.name)).toEqual([sick.metadata.name]);
});
