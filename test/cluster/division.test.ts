import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Cluster } from '../../hack/cluster.ts';
import { until } from '../../hack/until.ts';
import type { Node } from '../../src/api/wire.ts';
import { tiesDescend } from '../../src/placement/ties.ts';
import { countsOf, KNOWN_DIVISIONS, rolledOutAfter } from '../fixtures/divisions.ts';
import { type Fields, isReady, newNamespace, podsOf, read } from '../fixtures/live-pods.ts';
import { costsKeep, deployment, placementOf, policy, whereAre } from '../fixtures/scheduling.ts';
import { errorsOf, startTopology, type Topology } from '../fixtures/topology.ts';

/**
 * Known divisions through real Deployments: each row in a namespace of its own, all at once. What a row calls room is a
 * resource that only its own pods ask for.
 */
const LIVE = KNOWN_DIVISIONS.filter(({ live }) => live === true).map((division, index) => ({
  ...division,
  namespace: `division-${index}`,
  resource: `example.com/row-${index}`,
}));
const MEMBERS = ['a', 'b', 'c'];
const PLENTY = 1000;
/** A machine with much else to do takes its time. */
const PATIENCE = { timeoutMs: 120_000, intervalMs: 500 };

let topology: Topology;
let host: Cluster;

beforeAll(async () => {
  topology = await startTopology({
    extender: true,
    members: MEMBERS.map((name) => ({
      name,
      kwok: { nodes: 1, prefix: `${name}-n`, cpu: '1000', pods: '1000', extended: roomIn(name) },
      cluster: { audit: false },
    })),
  });
  ({ host } = topology);
});

afterAll(async () => {
  const errors = topology === undefined ? [] : errorsOf(topology.spillway);
  await topology?.close();
  expect(errors).toEqual([]);
});

/** What a member has of the resource of each row in the beginning. */
function roomIn(member: string): Record<string, string> {
  return Object.fromEntries(LIVE.map(({ resource, steps }) => [resource, String(steps[0]?.room?.[member] ?? PLENTY)]));
}

type Row = (typeof LIVE)[number];
type Counts = Readonly<Record<string, number>>;

const deploymentPath = ({ namespace }: Row): string => `/apis/apps/v1/namespaces/${namespace}/deployments/web`;
const imageOf = (version: string): string => `registry.example/app:${version}`;

function template({ resource }: Row, version: string): Fields {
  const resources = { requests: { cpu: '10m', [resource]: '1' }, limits: { [resource]: '1' } };
  return { containers: [{ name: 'main', image: imageOf(version), resources }] };
}

/** An empty Deployment under the policy. @returns whether its ties go backwards. */
async function begin(row: Row): Promise<boolean> {
  const { namespace, clusters } = row;
  await newNamespace(host, namespace);
  await host.apply([
    policy(namespace, 'known', { clusterAffinity: { clusterNames: clusters }, ...row.placement }),
    deployment(namespace, 'web', 0, '0', {}, template(row, 'v1')),
  ]);
  const made = await read<{ metadata: { uid: string } }>(host, deploymentPath(row));
  return tiesDescend(made?.metadata.uid);
}

/** Changes what the members have of the resource of a row, and waits until their virtual nodes say so. */
async function makeRoom({ resource }: Row, room: Counts): Promise<void> {
  for (const [member, count] of Object.entries(room)) {
    const quantities = { [resource]: String(count) };
    const status = { capacity: quantities, allocatable: quantities };
    await topology.member(member).cluster.api.call('PATCH', `/api/v1/nodes/${member}-n-0/status`, { status });
    await until(
      `virtual node ${member} has ${count} of ${resource}`,
      async () => {
        const node = await read<Node>(host, `/api/v1/nodes/${member}`);
        return node?.status?.allocatable?.[resource] === String(count);
      },
      PATIENCE,
    );
  }
}

/** Waits until there are so many pods, all of one version, those that have a place are ready, and each is where it should be. */
async function divided({ namespace }: Row, replicas: number, wanted: Counts, version: string): Promise<void> {
  const placed = Object.values(wanted).reduce((all, one) => all + one, 0);
  const expected = placed < replicas ? { ...wanted, waiting: replicas - placed } : wanted;
  await until(
    `${replicas} pods of ${namespace} are ${JSON.stringify(expected)}`,
    async () => {
      const pods = await podsOf(host, namespace, 'app=web');
      const counts = whereAre(pods);
      const ready = pods.filter(isReady).length;
      const current = pods.filter(({ spec }) => spec.containers[0]?.image === imageOf(version)).length;
      if (
        pods.length === replicas &&
        current === replicas &&
        ready === placed &&
        isDeepStrictEqual(new Map(Object.entries(counts)), new Map(Object.entries(expected)))
      )
        return true;
      throw new Error(`${pods.length} pods, ${current} of ${version}, ${ready} ready: ${JSON.stringify(counts)}`);
    },
    PATIENCE,
  );
}

async function rollOut(row: Row, version: string): Promise<void> {
  await host.api.call('PATCH', deploymentPath(row), { spec: { template: { spec: template(row, version) } } });
}

describe.concurrent('a Deployment ends on the exact division, grown, shrunk and rolled out:', () => {
  test.for(LIVE)('$name', { timeout: 400_000 }, async (row) => {
    const { namespace, steps } = row;
    const backwards = await begin(row);
    let version = 'v1';
    for (const [index, step] of steps.entries()) {
      const counts = countsOf(step, backwards);
      const before = steps[index - 1]?.replicas ?? 0;
      if (index > 0 && step.room !== undefined) await makeRoom(row, step.room);
      if (before > step.replicas) await costsKeep(host, namespace, counts);
      await host.api.call('PATCH', `${deploymentPath(row)}/scale`, { spec: { replicas: step.replicas } });
      await divided(row, step.replicas, counts, version);
      if (index === rolledOutAfter(steps)) {
        version = 'v2';
        await rollOut(row, version);
        await divided(row, step.replicas, counts, version);
      }
    }
    expect(version).toBe('v2');
    await told(row, countsOf(steps.at(-1) ?? { replicas: 0, counts: {} }, backwards));
  });
});

/** Waits until the WorkloadPlacement says that every cluster has what it should have, and the policy that all is well. */
async function told({ namespace }: Row, wanted: Counts): Promise<void> {
  const entries = Object.entries(wanted);
  const status = {
    policy: { kind: 'PlacementPolicy', name: 'known', generation: 1 },
    where: entries.map(([name, count]) => `${name} ${count}`).join(', '),
    waiting: 0,
    clusters: entries.map(([name, count]) => ({ name, tier: 0, target: count, actual: count })),
  };
  await until(
    `the WorkloadPlacement of ${namespace} tells of it`,
    async () => {
      const found = (await placementOf(host, namespace, 'web'))?.status;
      const { policy: source, where, waiting, clusters } = found ?? {};
      if (isDeepStrictEqual({ policy: source, where, waiting, clusters }, status)) return true;
      throw new Error(JSON.stringify(found));
    },
    PATIENCE,
  );
  const path = `/apis/spillway.dev/v1alpha1/namespaces/${namespace}/placementpolicies/known`;
  const accepted = await read<{ status?: { conditions?: { type: string; status: string }[] } }>(host, path);
  expect(accepted?.status?.conditions?.map(({ type, status: is }) => [type, is])).toEqual([
    ['Accepted', 'True'],
    ['Consistent', 'True'],
  ]);
}
