import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort, nonLoopbackAddress } from './addresses.ts';
import { ensureBinaries } from './binaries.ts';
import type { Cluster } from './cluster.ts';
import type { ManagedProcess } from './managed-process.ts';
import { serviceAccountKubeconfig } from './service-account.ts';
import { GiveUp, until } from './until.ts';

const NAMESPACE = 'kube-system';
const NAME = 'metrics-server';
const API = 'v1beta1.metrics.k8s.io';

/**
 * Starts an unmodified metrics-server on a cluster, with the rights and, but for where it runs,
 * the settings of its own manifests, and waits until the cluster serves metrics.k8s.io.
 *
 * @param options.everySeconds how often it looks, at least 10. Default 15, as in its manifests.
 */
export async function startMetricsServer(
  cluster: Cluster,
  options: { everySeconds?: number } = {},
): Promise<ManagedProcess> {
  const { workspace } = cluster;
  const { everySeconds = 15 } = options;
  const binaries = await ensureBinaries([NAME], { say: workspace.say });
  const host = new URL(cluster.server).hostname;
  // Endpoints may not be loopback addresses.
  const address = host.startsWith('127.') ? nonLoopbackAddress() : host;
  const port = await freePort(address);
  await cluster.apply(rights());
  const dir = join(cluster.dir, NAME);
  mkdirSync(dir, { recursive: true });
  const kubeconfig = join(dir, 'kubeconfig');
  writeFileSync(kubeconfig, await serviceAccountKubeconfig(cluster, NAMESPACE, NAME), { mode: 0o600 });
  const server = workspace.start({
    name: `${cluster.name}/${NAME}`,
    file: binaries[NAME],
    args: [
      `--kubeconfig=${kubeconfig}`,
      `--authentication-kubeconfig=${kubeconfig}`,
      `--authorization-kubeconfig=${kubeconfig}`,
      `--cert-dir=${dir}`,
      `--bind-address=${address}`,
      `--secure-port=${port}`,
      '--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname',
      '--kubelet-use-node-status-port',
      '--kubelet-insecure-tls',
      `--metric-resolution=${everySeconds}s`,
      // It must be less.
      `--kubelet-request-timeout=${Math.min(10, everySeconds - 1)}s`,
    ],
    logFile: join(cluster.dir, `${NAME}.log`),
  });
  await cluster.apply(service(address, port));
  await until(
    `${cluster.name} serves metrics.k8s.io`,
    async () => {
      if (!server.running) throw new GiveUp(server.describeExit());
      const { code } = await cluster.kubectl(['get', '--raw', '/apis/metrics.k8s.io/v1beta1/nodes']);
      return code === 0;
    },
    { timeoutMs: 60_000 },
  );
  return server;
}

/** As in metrics-server's manifests. */
function rights(): object[] {
  const rbac = 'rbac.authorization.k8s.io';
  const subjects = [{ kind: 'ServiceAccount', name: NAME, namespace: NAMESPACE }];
  const bind = (name: string, role: string): object => ({
    apiVersion: `${rbac}/v1`,
    kind: 'ClusterRoleBinding',
    metadata: { name },
    roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: role },
    subjects,
  });
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: NAME, namespace: NAMESPACE } },
    {
      apiVersion: `${rbac}/v1`,
      kind: 'ClusterRole',
      metadata: { name: `system:${NAME}` },
      rules: [
        { apiGroups: [''], resources: ['nodes/metrics'], verbs: ['get'] },
        { apiGroups: [''], resources: ['pods', 'nodes'], verbs: ['get', 'list', 'watch'] },
      ],
    },
    bind(`system:${NAME}`, `system:${NAME}`),
    bind(`${NAME}:system:auth-delegator`, 'system:auth-delegator'),
    {
      apiVersion: `${rbac}/v1`,
      kind: 'RoleBinding',
      metadata: { name: `${NAME}-auth-reader`, namespace: NAMESPACE },
      roleRef: { apiGroup: rbac, kind: 'Role', name: 'extension-apiserver-authentication-reader' },
      subjects,
    },
  ];
}

/** The aggregated API, by way of a Service without pods. */
function service(address: string, port: number): object[] {
  const metadata = { name: NAME, namespace: NAMESPACE };
  return [
    { apiVersion: 'v1', kind: 'Service', metadata, spec: { ports: [{ name: 'https', port: 443, targetPort: port }] } },
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { ...metadata, labels: { 'kubernetes.io/service-name': NAME } },
      addressType: 'IPv4',
      endpoints: [{ addresses: [address], conditions: { ready: true } }],
      ports: [{ name: 'https', port, protocol: 'TCP' }],
    },
    {
      apiVersion: 'apiregistration.k8s.io/v1',
      kind: 'APIService',
      metadata: { name: API },
      spec: {
        service: metadata,
        group: 'metrics.k8s.io',
        version: 'v1beta1',
        insecureSkipTLSVerify: true,
        groupPriorityMinimum: 100,
        versionPriority: 100,
      },
    },
  ];
}
