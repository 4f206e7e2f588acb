import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Cluster } from '../../hack/cluster.ts';
import { startKwok } from '../../hack/kwok.ts';
import { until } from '../../hack/until.ts';
import type { PersistentVolumeClaim } from '../../src/kube/volumes.ts';
import { condition, type Fields, newNamespace, podsOf, read, untilRunning } from '../fixtures/live-pods.ts';
import { diskClass, type Provisioner, startProvisioner } from '../fixtures/provisioner.ts';
import { burstSpec, LOCAL_PREFIX, policyInUse } from '../fixtures/scheduling.ts';
import { errorsOf, startTopology, type Topology } from '../fixtures/topology.ts';

/** What an attempt to bind takes is forgotten after ten seconds where attempts fail without a word; this one goes on for longer. */
const SLOW_MS = 30_000;
const NS = 'slow';
const NAMES = ['set-0', 'set-1', 'set-2'];

let topology: Topology;
let host: Cluster;
let disks: Provisioner;

beforeAll(async () => {
  const options = { spec: { storage: { classes: [{ host: 'spillway' }] } } };
  topology = await startTopology({ extender: true, members: [{ name: 'east', kwok: { nodes: 2 }, options }] });
  ({ host } = topology);
  const east = topology.member('east').cluster;
  disks = startProvisioner(east);
  const isDefault = { name: 'disk', annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } };
  await east.apply([diskClass('disk', { metadata: isDefault })]);
  await startKwok(host, { nodes: 1, cpu: '1', prefix: LOCAL_PREFIX });
});
afterAll(async () => {
  const errors = topology === undefined ? [] : errorsOf(topology.spillway);
  await disks?.close();
  await topology?.close();
  expect(errors).toEqual([]);
});

/** Pods that wait at a gate, each with a claim of its own. */
function gatedSet(): Fields {
  const labels = { app: 'set' };
  const spec = burstSpec('100m', {
    schedulingGates: [{ name: 'example.com/later' }],
    nodeSelector: { type: 'virtual-kubelet' },
  });
  const claim = {
    metadata: { name: 'data' },
    spec: {
      accessModes: ['ReadWriteOnce'],
      storageClassName: 'spillway',
      resources: { requests: { storage: '100Mi' } },
    },
  };
  return {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { name: 'set', namespace: NS },
    spec: {
      replicas: NAMES.length,
      podManagementPolicy: 'Parallel',
      serviceName: 'none',
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec },
      volumeClaimTemplates: [claim],
    },
  };
}

/** Pods for which the scheduler has chosen a node, and makes their volume. */
async function chosen(): Promise<string[]> {
  const claims = await Promise.all(
    NAMES.map((name) =>
      read<PersistentVolumeClaim>(host, `/api/v1/namespaces/${NS}/persistentvolumeclaims/data-${name}`),
    ),
  );
  return NAMES.filter((_, index) => {
    const { annotations } = claims[index]?.metadata ?? {};
    return annotations?.['volume.kubernetes.io/selected-node'] !== undefined;
  });
}

test('of three pods one has the only place, however long its volume takes, and no other gets it meanwhile', async () => {
  await newNamespace(host, NS);
  const clusterAffinity = { clusterNames: ['east'], max: 1 };
  const spec = { resourceSelectors: [{ apiVersion: 'apps/v1', kind: 'StatefulSet' }], placement: { clusterAffinity } };
  const metadata = { name: 'one', namespace: NS };
  await host.apply([{ apiVersion: 'spillway.dev/v1alpha1', kind: 'PlacementPolicy', metadata, spec }]);
  await policyInUse(host, NS, 'one');
  await host.apply([gatedSet()]);
  await until('all wait at the gate', async () => (await podsOf(host, NS)).length === NAMES.length);
  // Claims are bound to volumes by nobody else, and the scheduler waits for that before it binds the pod.
  const controllers = host.component('kube-controller-manager');
  controllers.signal('SIGSTOP');
  let first: string | undefined;
  try {
    for (const name of NAMES)
      await host.api.call('PATCH', `/api/v1/namespaces/${NS}/pods/${name}`, { spec: { schedulingGates: null } });
    first = await until('one has a node', async () => (await chosen())[0]);
    const since = Date.now();
    let rounds = 0;
    await until(
      'it waited for its volume for long',
      async () => {
        // Makes the scheduler try the others again.
        rounds += 1;
        const label = { metadata: { labels: { round: String(rounds) } } };
        await host.api.call('PATCH', `/api/v1/nodes/${LOCAL_PREFIX}-0`, label);
        expect(await chosen()).toEqual([first]);
        return Date.now() - since >= SLOW_MS;
      },
      { timeoutMs: SLOW_MS + 30_000, intervalMs: 2_000 },
    );
    const pods = await podsOf(host, NS);
    expect(pods.map(({ spec: { nodeName } }) => nodeName)).toEqual([undefined, undefined, undefined]);
    const others = pods.filter(({ metadata: { name } }) => name !== first);
    expect(others.map((one) => condition(one, 'PodScheduled')?.status)).toEqual(['False', 'False']);
  } finally {
    controllers.signal('SIGCONT');
  }
  await untilRunning(host, NS, first);
  expect(await chosen()).toEqual([first]);
});
