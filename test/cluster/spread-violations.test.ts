import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Cluster } from '../../hack/cluster.ts';
import { until } from '../../hack/until.ts';
import type { WorkloadPlacement } from '../../src/api/workload-placement.ts';
import { eventsOf, type Fields, podsOf, read } from '../fixtures/live-pods.ts';
import { deployment, policy, settled, whereAre } from '../fixtures/scheduling.ts';
import { startMovingTopology } from '../fixtures/moving-topology.ts';
import { errorsOf, type Topology } from '../fixtures/topology.ts';

/** Two members in two regions; kube-scheduler asks Spillway where pods may run, and Spillway moves them. */
let topology: Topology;
let host: Cluster;
const namespace = 'spreading';
const PATIENT_MS = 90_000;

beforeAll(async () => {
  const members = ['east', 'west'].map((name) => ({
    name,
    kwok: { nodes: 2, cpu: '8' },
    options: { spec: { region: name, labels: { rack: 'a' } } },
  }));
  topology = await startMovingTopology(members, namespace);
  ({ host } = topology);
});
afterAll(async () => {
  const errors = topology === undefined ? [] : errorsOf(topology.spillway);
  await topology?.close();
  expect(errors).toEqual([]);
});

async function edit(name: string, spec: Fields): Promise<void> {
  await host.api.call('PATCH', `/apis/spillway.dev/v1alpha1/memberclusters/${name}`, { spec });
}

function ruled(name: string, constraint: Fields, failover: Fields, more: Fields = {}): Fields {
  const clusterAffinity = { clusterNames: ['east', 'west'] };
  const { spec, ...rest } = policy(
    namespace,
    name,
    { clusterAffinity, spreadConstraints: [constraint], ...more },
    name,
  );
  return { ...rest, spec: { ...(spec as Fields), failover } };
}

test('pods are spread again when a member is back, or labels are others, where their policy says so: no more than it takes', async () => {
  const byRegion = { spreadByField: 'region', minGroups: 2, whenUnsatisfiable: 'ScheduleAnyway' };
  const inOneRack = { spreadByLabel: 'rack', maxGroups: 1 };
  const spreadViolation = { after: '5s' };
  await edit('west', { unschedulable: true });
  await host.apply([
    ruled('regions', byRegion, { spreadViolation }),
    ruled('lazy', byRegion, {}),
    ruled('racks', inOneRack, { spreadViolation }, { replicaScheduling: {} }),
    deployment(namespace, 'regions', 4, '100m'),
    deployment(namespace, 'lazy', 4, '100m'),
  ]);
  for (const name of ['regions', 'lazy']) await settled(host, namespace, name, { east: 4 });
  await edit('west', { unschedulable: null });
  const before = await podsOf(host, namespace, 'app=regions');
  await settled(host, namespace, 'regions', { east: 3, west: 1 }, PATIENT_MS);
  await host.apply([deployment(namespace, 'racks', 4, '100m')]);
  await settled(host, namespace, 'racks', { east: 2, west: 2 });
  await edit('west', { labels: { rack: 'b' } });
  const racks = await until(
    'all are in one rack',
    async () => {
      const pods = await podsOf(host, namespace, 'app=racks');
      return pods.length === 4 && Object.values(whereAre(pods)).includes(4) ? whereAre(pods) : undefined;
    },
    { timeoutMs: PATIENT_MS },
  );
  expect([{ east: 4 }, { west: 4 }]).toContainEqual(racks);
  expect(whereAre(await podsOf(host, namespace, 'app=lazy'))).toEqual({ east: 4 });
  for (const [name, count] of [
    ['regions', 1],
    ['racks', 2],
  ] as const) {
    const path = `/apis/spillway.dev/v1alpha1/namespaces/${namespace}/workloadplacements/deployment-${name}`;
    // A move is written down a moment after it was made.
    await until(`moves of ${name} are written down`, async () => {
      const moves = (await read<WorkloadPlacement>(host, path))?.status?.moves ?? [];
      return moves.length === 1 && moves[0]?.strategy === 'SpreadViolation' && moves[0].count === count;
    });
  }
  const told = await Promise.all(before.map(async ({ metadata }) => await eventsOf(host, namespace, metadata.name)));
  expect(told.flat().find(({ reason }) => reason === 'PodSpread')?.message).toMatch(
    /^it is in member east \(its pods are in 1 values of region and not in 2\), and member west would take it for \d+s now; it was released, /,
  );
}, 240_000);
