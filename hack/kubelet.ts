import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { ensureBinaries } from './binaries.ts';
import { dnsAddress, startClusterDns } from './cluster-dns.ts';
import type { Cluster } from './cluster.ts';
import { run } from './command.ts';
import { startContainerd, type Containerd } from './containerd.ts';
import { imageArchive } from './images.ts';
import { startKubeProxy } from './kube-proxy.ts';
import { Machine } from './machine.ts';
import type { ManagedProcess } from './managed-process.ts';
import { kubeconfigYaml } from './pki.ts';
import { canRunKubelets, installKubeletPackages } from './system-packages.ts';
import { GiveUp, until } from './until.ts';

export interface KubeletOptions {
  /** Node name, unique in the workspace; at most 40 characters. */
  node: string;
  labels?: Record<string, string>;
  taints?: { key: string; value?: string; effect: string }[];
  /** Kept back from pods, like `{cpu: '500m'}`: several kubelets on one machine all see the whole of it. */
  reserved?: Record<string, string>;
  /** Default 110. */
  maxPods?: number;
  /**
   * Services work for its pods: kube-proxy on the node, and DNS names of `cluster.local` in its cluster; `clusterset`: also
   * those of `clusterset.local`. Default false: they fail at once.
   */
  services?: boolean | 'clusterset';
  /**
   * `Flat` (default): its pods and those of all other such nodes of the workspace reach each other, whatever their cluster.
   * `Isolated`: its pods and those of its cluster's other nodes.
   */
  network?: 'Flat' | 'Isolated';
  /** Further fields of KubeletConfiguration. */
  configuration?: Record<string, unknown>;
  timeoutMs?: number;
}

/** A real worker node: kubelet, containerd and runc on a {@link Machine} of its own. */
export interface KubeletNode {
  readonly name: string;
  readonly machine: Machine;
  readonly kubelet: ManagedProcess;
  readonly containerd: Containerd;
  /** With `services`. */
  readonly proxy: ManagedProcess | undefined;
  /** Pulls the plug; the Node object stays until someone deletes it. */
  stop(): Promise<void>;
}

/**
 * Adds a real node to a cluster and waits until it is Ready. The cluster's API server must listen on
 * `machineNetwork(workspace).gateway`, which machines can reach.
 * @throws where {@link canRunKubelets} says no, with its reason.
 */
export async function startKubelet(cluster: Cluster, options: KubeletOptions): Promise<KubeletNode> {
  const { workspace } = cluster;
  const began = Date.now();
  const can = await canRunKubelets();
  if (!can.ok) throw new Error(can.reason);
  if (cluster.server.includes('//127.')) {
    throw new Error(`cluster ${cluster.name} listens on loopback, where its nodes cannot reach it: set bindAddress`);
  }
  await installKubeletPackages(workspace.say);
  const binaries = await ensureBinaries(['kubelet'], { say: workspace.say });
  const archive = await imageArchive(workspace.say);

  const { node } = options;
  const podNetwork = options.network === 'Isolated' ? cluster.name : undefined;
  const machine = await Machine.start(workspace, node, join(cluster.dir, 'nodes', node), podNetwork);
  const containerd = await startContainerd(machine);
  const imported = containerd.ctr(['images', 'import', archive]);
  const { services = false } = options;
  if (services === false) {
    // Nothing answers in the service range; a refusal at once is kinder than a DNS timeout.
    const noServices = ['ip', 'route', 'add', 'unreachable', cluster.serviceCidr];
    await run('nsenter', [...machine.enter(), ...noServices]);
  }
  const args = await writeConfiguration(cluster, machine, containerd, options);
  await imported;
  const kubelet = machine.run('kubelet', binaries.kubelet, args);
  await until(
    `node ${node} is Ready`,
    async () => {
      if (!kubelet.running) throw new GiveUp(kubelet.describeExit());
      return isReady(await cluster.api.call('GET', `/api/v1/nodes/${node}`));
    },
    { timeoutMs: options.timeoutMs ?? 90_000 },
  );
  const [proxy] =
    services === false
      ? []
      : await Promise.all([
          startKubeProxy(cluster, machine),
          startClusterDns(cluster, { clusterset: services === 'clusterset' }),
        ]);
  workspace.say(`node ${node} of ${cluster.name} is Ready after ${((Date.now() - began) / 1000).toFixed(1)} s`);
  return { name: node, machine, kubelet, containerd, proxy, stop: () => machine.stop() };
}

function isReady(node: unknown): boolean {
  const status = (node as { status?: { conditions?: { type: string; status: string }[] } }).status;
  return status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false;
}

async function writeConfiguration(
  cluster: Cluster,
  machine: Machine,
  containerd: Containerd,
  options: KubeletOptions,
): Promise<string[]> {
  const { node } = options;
  const file = (name: string): string => join(machine.dir, name);
  const user = `system:node:${node}`;
  const identity = await cluster.issueServing(user, [machine.address, node], {
    groups: ['system:nodes'],
    client: true,
  });
  const { server, caPem: ca } = cluster;
  const write = (name: string, content: string): void => writeFileSync(file(name), content, { mode: 0o600 });
  write('ca.crt', ca);
  write('kubelet.crt', identity.cert);
  write('kubelet.key', identity.key);
  write('kubelet.kubeconfig', kubeconfigYaml({ server, ca, user, client: identity }));
  write('resolv.conf', '');
  for (const folder of ['kubelet', 'pki', 'podlogs', 'volume-plugins']) mkdirSync(file(folder), { recursive: true });
  write(
    'kubelet.yaml',
    stringify({
      apiVersion: 'kubelet.config.k8s.io/v1beta1',
      kind: 'KubeletConfiguration',
      containerRuntimeEndpoint: `unix://${containerd.socket}`,
      failCgroupV1: false,
      cgroupDriver: 'cgroupfs',
      // Kubelets that share one would kill each other's pods as orphans.
      cgroupRoot: `/${machine.cgroup}`,
      cgroupsPerQOS: true,
      enforceNodeAllocatable: ['pods'],
      failSwapOn: false,
      address: machine.address,
      port: 10250,
      healthzPort: 10248,
      readOnlyPort: 0,
      podLogsDir: file('podlogs'),
      volumePluginDir: file('volume-plugins'),
      resolvConf: file('resolv.conf'),
      clusterDNS: [dnsAddress(cluster)],
      clusterDomain: 'cluster.local',
      authentication: {
        anonymous: { enabled: false },
        webhook: { enabled: true },
        x509: { clientCAFile: file('ca.crt') },
      },
      authorization: { mode: 'Webhook' },
      tlsCertFile: file('kubelet.crt'),
      tlsPrivateKeyFile: file('kubelet.key'),
      oomScoreAdj: 0,
      maxOpenFiles: 20_000,
      maxPods: options.maxPods ?? 110,
      makeIPTablesUtilChains: false,
      // The disk is this machine's own, however full it is; running out of it is not what tests are about.
      evictionHard: { 'nodefs.available': '1%', 'imagefs.available': '1%', 'memory.available': '50Mi' },
      imageGCHighThresholdPercent: 100,
      imageGCLowThresholdPercent: 99,
      serializeImagePulls: false,
      nodeStatusUpdateFrequency: '4s',
      ...(options.reserved === undefined ? {} : { systemReserved: options.reserved }),
      ...(options.taints === undefined ? {} : { registerWithTaints: options.taints }),
      ...options.configuration,
    }),
  );
  const labels = Object.entries(options.labels ?? {}).map(([key, value]) => `${key}=${value}`);
  return [
    `--config=${file('kubelet.yaml')}`,
    `--kubeconfig=${file('kubelet.kubeconfig')}`,
    `--root-dir=${file('kubelet')}`,
    `--cert-dir=${file('pki')}`,
    `--hostname-override=${node}`,
    `--node-ip=${machine.address}`,
    ...(labels.length === 0 ? [] : [`--node-labels=${labels.join(',')}`]),
  ];
}
