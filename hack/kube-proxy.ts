import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { ensureBinaries } from './binaries.ts';
import type { Cluster } from './cluster.ts';
import { run } from './command.ts';
import type { Machine } from './machine.ts';
import type { ManagedProcess } from './managed-process.ts';
import { kubeconfigYaml } from './pki.ts';
import { GiveUp, until } from './until.ts';

const USER = 'system:kube-proxy';
const HEALTH_PORT = 10256;

/**
 * Starts kube-proxy on a machine whose Node is there, and waits until cluster IPs lead to endpoints. Its nftables are those of the
 * machine's network namespace, and go with it. Addresses of pods are not rewritten.
 */
export async function startKubeProxy(cluster: Cluster, machine: Machine): Promise<ManagedProcess> {
  const binaries = await ensureBinaries(['kube-proxy'], { say: cluster.workspace.say });
  // What a pod answers to its neighbour on the bridge has to be translated back, too.
  const bridged = 'modprobe -q br_netfilter; sysctl -qw net.bridge.bridge-nf-call-iptables=1';
  await run('nsenter', [...machine.enter(), 'sh', '-c', `${bridged} || :`]);
  const { server, caPem: ca } = cluster;
  const client = await cluster.issueClient(USER);
  const file = (name: string): string => join(machine.dir, name);
  const write = (name: string, content: string): void => writeFileSync(file(name), content, { mode: 0o600 });
  write('kube-proxy.kubeconfig', kubeconfigYaml({ server, ca, user: USER, client }));
  write('kube-proxy.yaml', stringify(configuration(machine, file('kube-proxy.kubeconfig'))));
  const proxy = machine.run('kube-proxy', binaries['kube-proxy'], [`--config=${file('kube-proxy.yaml')}`]);
  await until(
    `kube-proxy of ${machine.name} is healthy`,
    async () => {
      if (!proxy.running) throw new GiveUp(proxy.describeExit());
      const answer = await fetch(`http://${machine.address}:${HEALTH_PORT}/healthz`);
      return answer.ok;
    },
    { timeoutMs: 30_000, intervalMs: 50 },
  );
  return proxy;
}

function configuration({ name, address, podCidr }: Machine, kubeconfig: string): object {
  return {
    apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
    kind: 'KubeProxyConfiguration',
    mode: 'nftables',
    clientConnection: { kubeconfig },
    hostnameOverride: name,
    clusterCIDR: podCidr,
    detectLocalMode: 'ClusterCIDR',
    healthzBindAddress: `${address}:${HEALTH_PORT}`,
    metricsBindAddress: '127.0.0.1:10249',
    // The table of connections is the whole kernel's: its size stays as it is.
    conntrack: { maxPerCore: 0, min: 0 },
  };
}
