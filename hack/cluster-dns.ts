import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from './addresses.ts';
import { ensureBinaries } from './binaries.ts';
import type { Cluster } from './cluster.ts';
import { firstServiceAddress } from './control-plane.ts';
import type { ManagedProcess } from './managed-process.ts';
import { manifest } from './manifest.ts';
import { kubeconfigYaml } from './pki.ts';
import { GiveUp, until } from './until.ts';

const USER = 'system:coredns';
const SERVICE = { name: 'kube-dns', namespace: 'kube-system' };

const started = new WeakMap<Cluster, Promise<ManagedProcess>>();

/** Where pods ask for names, see {@link startClusterDns}. */
export function dnsAddress({ serviceCidr }: Cluster): string {
  return firstServiceAddress(serviceCidr).replace(/\.1$/, '.10');
}

/**
 * Starts CoreDNS for `cluster.local` beside the API server, once for a cluster: pods reach it at {@link dnsAddress} by way of a Service
 * without pods. It knows no other names but, if asked to, those below `clusterset.local` of Services that clusters export.
 */
export function startClusterDns(cluster: Cluster, { clusterset = false } = {}): Promise<ManagedProcess> {
  const known = started.get(cluster);
  if (known !== undefined) return known;
  const starting = start(cluster, clusterset);
  started.set(cluster, starting);
  return starting;
}

async function start(cluster: Cluster, clusterset: boolean): Promise<ManagedProcess> {
  const { workspace, server, caPem: ca } = cluster;
  const binaries = await ensureBinaries(['coredns'], { say: workspace.say });
  const address = new URL(server).hostname;
  const [port, readyPort] = [await freePort(address), await freePort(address)];
  // It is ready once it has seen all kinds.
  if (clusterset) await cluster.apply(manifest('multi-cluster/crds.yaml'));
  await cluster.apply([...rights(), ...service(dnsAddress(cluster), address, port)]);
  const dir = join(cluster.dir, 'coredns');
  mkdirSync(dir, { recursive: true });
  const kubeconfig = join(dir, 'kubeconfig');
  const client = await cluster.issueClient(USER);
  writeFileSync(kubeconfig, kubeconfigYaml({ server, ca, user: USER, client }), { mode: 0o600 });
  const corefile = join(dir, 'Corefile');
  writeFileSync(corefile, configuration({ kubeconfig, address, port, readyPort, clusterset }));
  const coredns = workspace.start({
    name: `${cluster.name}/coredns`,
    file: binaries.coredns,
    args: ['-conf', corefile],
    logFile: join(cluster.dir, 'coredns.log'),
  });
  await until(
    `CoreDNS of ${cluster.name} is ready`,
    async () => {
      if (!coredns.running) throw new GiveUp(coredns.describeExit());
      return (await fetch(`http://${address}:${readyPort}/ready`)).ok;
    },
    { timeoutMs: 30_000, intervalMs: 50 },
  );
  return coredns;
}

interface Place {
  kubeconfig: string;
  address: string;
  port: number;
  readyPort: number;
  clusterset: boolean;
}

/** As kubeadm has it, but for names outside of the cluster; answers are kept for as long as the plugin says, 5 s. */
function configuration({ kubeconfig, address, port, readyPort, clusterset }: Place): string {
  return `.:${port} {
  bind ${address}
  errors
  ready ${address}:${readyPort}
  kubernetes cluster.local${clusterset ? ' clusterset.local' : ''} in-addr.arpa ip6.arpa {
    kubeconfig ${kubeconfig}
    pods insecure${clusterset ? '\n    multicluster clusterset.local' : ''}
  }
  cache 30
}
`;
}

/** As in kubeadm's manifests, and what the names of other clusters take. */
function rights(): object[] {
  const rbac = 'rbac.authorization.k8s.io';
  const read = ['list', 'watch'];
  return [
    {
      apiVersion: `${rbac}/v1`,
      kind: 'ClusterRole',
      metadata: { name: USER },
      rules: [
        { apiGroups: [''], resources: ['services', 'pods', 'namespaces'], verbs: read },
        { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: read },
        { apiGroups: ['multicluster.x-k8s.io'], resources: ['serviceimports'], verbs: read },
      ],
    },
    {
      apiVersion: `${rbac}/v1`,
      kind: 'ClusterRoleBinding',
      metadata: { name: USER },
      roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: USER },
      subjects: [{ apiGroup: rbac, kind: 'User', name: USER }],
    },
  ];
}

function service(clusterIP: string, address: string, targetPort: number): object[] {
  const transports = [
    { name: 'dns', protocol: 'UDP' },
    { name: 'dns-tcp', protocol: 'TCP' },
  ];
  return [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: SERVICE,
      spec: { clusterIP, ports: transports.map((one) => ({ ...one, port: 53, targetPort })) },
    },
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { ...SERVICE, labels: { 'kubernetes.io/service-name': SERVICE.name } },
      addressType: 'IPv4',
      endpoints: [{ addresses: [address], conditions: { ready: true } }],
      ports: transports.map((one) => ({ ...one, port: targetPort })),
    },
  ];
}
