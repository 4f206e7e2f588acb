import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startCluster, type Cluster } from '../../hack/cluster.ts';
import { startKubelet, type KubeletNode } from '../../hack/kubelet.ts';
import { startKwok } from '../../hack/kwok.ts';
import { machineNetwork } from '../../hack/machine-network.ts';
import { programImage } from '../../hack/program-image.ts';
import { addMember, waitForNode } from '../../hack/spillway.ts';
import { canRunKubelets } from '../../hack/system-packages.ts';
import { until } from '../../hack/until.ts';
import { Workspace } from '../../hack/workspace.ts';
import { kubectl, podsOf } from '../fixtures/live-pods.ts';
import { CHART, helmIn } from '../fixtures/helm.ts';

const kubelets = await canRunKubelets();
if (!kubelets.ok) console.warn(`real kubelets cannot run here, their tests are skipped: ${kubelets.reason}`);

/** The image that `make image` writes, run by a real kubelet as the chart has it. */
describe.runIf(kubelets.ok)('the image', () => {
  const IMAGE = 'spillway.test/spillway:1';
  const NAMESPACE = 'spillway-system';
  let workspace: Workspace;
  let host: Cluster;
  let member: Cluster;
  let node: KubeletNode;

  beforeAll(async () => {
    workspace = Workspace.create();
    const bindAddress = (await machineNetwork(workspace)).gateway;
    [host, member] = await Promise.all([
      startCluster(workspace, { name: 'host', bindAddress }),
      startCluster(workspace, { name: 'east', bindAddress, serviceCidr: '10.97.0.0/16' }),
    ]);
    [node] = await Promise.all([startKubelet(host, { node: 'host-1' }), startKwok(member, { nodes: 1 })]);
    const archive = join(host.dir, 'spillway.oci.tar');
    writeFileSync(archive, await programImage(IMAGE));
    await node.containerd.ctr(['images', 'import', archive]);
  });
  afterAll(async () => {
    await workspace?.close();
  });

  test('runs the manager, as nobody in particular and without a place to write, under the strictest standard', async () => {
    const helm = await helmIn(host.dir, host.kubeconfig);
    const values = ['image', IMAGE, 'replicas', '1', 'scheduler', 'Own'];
    const set = [0, 2, 4].flatMap((at) => ['--set', `${values[at] ?? ''}=${values[at + 1] ?? ''}`]);
    // In a namespace of its own the release brings spillway-system, with the label that holds pods to the standard.
    await helm.run('install', 'spillway', CHART, '--namespace', 'default', ...set);
    const level = 'jsonpath={.metadata.labels.pod-security\\.kubernetes\\.io/enforce}';
    expect(await kubectl(host, ['get', 'namespace', NAMESPACE, '-o', level])).toBe('restricted');
    // Nothing answers at addresses of Services on machines of tests.
    const { hostname, port } = new URL(host.server);
    const address = [`KUBERNETES_SERVICE_HOST=${hostname}`, `KUBERNETES_SERVICE_PORT=${port}`];
    await kubectl(host, ['set', 'env', '-n', NAMESPACE, 'deployment/spillway-manager', ...address]);
    await kubectl(host, ['rollout', 'status', '-n', NAMESPACE, 'deployment/spillway-manager', '--timeout=90s'], {
      timeoutMs: 100_000,
    });
    const [pod] = await until('one pod is left', async () => {
      const found = await podsOf(host, NAMESPACE);
      return found.length === 1 ? found : undefined;
    });
    expect(pod?.spec.nodeName).toBe('host-1');
    expect(pod?.status?.containerStatuses?.[0]).toMatchObject({ ready: true, restartCount: 0 });
    const id = pod?.status?.containerStatuses?.[0]?.containerID?.replace('containerd://', '') ?? '';
    const spec = JSON.parse(await node.containerd.ctr(['containers', 'info', id])) as {
      Spec: { process: { user: { uid: number }; args: string[] }; root: { readonly?: boolean } };
    };
    expect(spec.Spec.process.user.uid).toBe(65_532);
    expect(spec.Spec.root.readonly).toBe(true);
    expect(spec.Spec.process.args).toContain('/usr/bin/node');
  });

  test('has members like any other', async () => {
    await addMember(host, member);
    await waitForNode(host, 'east', 60_000);
  });
});
