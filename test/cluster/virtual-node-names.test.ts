import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Cluster } from '../../hack/cluster.ts';
import { SYSTEM_NAMESPACE, waitForNode, waitReady } from '../../hack/spillway.ts';
import { until } from '../../hack/until.ts';
import type { Node } from '../../src/kube/core-v1.ts';
import {
  type Fields,
  getPod,
  kubectl,
  letGo,
  newNamespace,
  pod,
  podsOf,
  podSpec,
  read,
  shell,
  untilRunning,
} from '../fixtures/live-pods.ts';
import { untilMemberCondition } from '../fixtures/member-condition.ts';
import { startTopology, type Topology } from '../fixtures/topology.ts';

const namespace = 'shop';

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

/** Another MemberCluster for the same cluster. */
async function addMemberCluster(name: string, spec: Fields = {}): Promise<void> {
  const credentials = { secretRef: { namespace: SYSTEM_NAMESPACE, name: 'member-east' } };
  const object = { apiVersion: 'spillway.dev/v1alpha1', kind: 'MemberCluster', metadata: { name } };
  await host.apply([{ ...object, spec: { credentials, ...spec } }]);
}
const nodeOf = async (name: string): Promise<Node | undefined> => await read<Node>(host, `/api/v1/nodes/${name}`);
async function restart(): Promise<void> {
  await topology.spillway.process.stop('SIGKILL');
  topology.spillway.process.restart();
  await waitReady(topology.spillway);
}

describe('a name that somebody else has', () => {
  it('is not acted for while a real node has it: its pods stay as they are', async () => {
    await host.apply([
      { apiVersion: 'v1', kind: 'Node', metadata: { name: 'worker-1' }, spec: { providerID: 'cloud:///i-1' } },
      pod('payments', namespace, podSpec([shell('true')], { nodeName: 'worker-1' })),
    ]);
    // A kubelet is ending this one: it has its grace, and is not to be called gone.
    await host.apply([
      pod(
        'database',
        namespace,
        podSpec([shell('true')], { nodeName: 'worker-1', terminationGracePeriodSeconds: 600 }),
      ),
    ]);
    await kubectl(host, ['delete', 'pod', 'database', '-n', namespace, '--wait=false']);
    const before = [await getPod(host, namespace, 'payments'), await getPod(host, namespace, 'database')];
    await addMemberCluster('worker-1');
    const message = await untilMemberCondition(host, 'worker-1', 'Ready', 'NodeNameTaken');
    expect(message).toContain('a Node named "worker-1" exists and was not made for cluster "worker-1"');
    await restart();
    await waitForNode(host, 'east');
    await host.apply([pod('other', namespace, { ...podSpec([shell('true')]), nodeName: 'east' })]);
    await untilRunning(host, namespace, 'other');
    expect([await getPod(host, namespace, 'payments'), await getPod(host, namespace, 'database')]).toEqual(before);
    expect((await podsOf(east, namespace)).map(({ metadata }) => metadata.name)).toEqual(['other']);
    await kubectl(host, ['delete', 'membercluster', 'worker-1']);
    await kubectl(host, [
      'delete',
      'pod',
      'payments',
      'database',
      'other',
      '-n',
      namespace,
      '--grace-period=0',
      '--force',
    ]);
  });

  it('stays with the MemberCluster that made its Node, in either order and over a restart', async () => {
    await addMemberCluster('pool-gpu');
    await waitForNode(host, 'pool-gpu');
    await addMemberCluster('pool', { virtualNodes: [{ name: 'gpu' }, { name: 'cpu' }] });
    await waitForNode(host, 'pool-cpu');
    const taken = 'a Node named "pool-gpu" exists and stands for cluster "pool-gpu"';
    expect(await untilMemberCondition(host, 'pool', 'Ready', 'NodeNameTaken')).toContain(taken);
    await restart();
    expect(await untilMemberCondition(host, 'pool', 'Ready', 'NodeNameTaken')).toContain(taken);
    expect((await nodeOf('pool-gpu'))?.spec?.providerID).toBe('spillway://pool-gpu/pool-gpu');
    await host.apply([pod('mine', namespace, { ...podSpec([shell('true')]), nodeName: 'pool-gpu' })]);
    await untilRunning(host, namespace, 'mine');
    // The name is free once its owner and his Node are gone.
    await kubectl(host, ['delete', 'pod', 'mine', '-n', namespace]);
    await letGo(host, 'pool-gpu');
    await kubectl(host, ['delete', 'node', 'pool-gpu']);
    await until(
      'the other one has the name',
      async () => (await nodeOf('pool-gpu'))?.spec?.providerID === 'spillway://pool/pool-gpu',
      { timeoutMs: 60_000 },
    );
    await untilMemberCondition(host, 'pool', 'Ready', 'Ready');
  });
});
