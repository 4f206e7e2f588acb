import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { freePort, nonLoopbackAddress } from './addresses.ts';
import { ensureBinaries } from './binaries.ts';
import type { Cluster } from './cluster.ts';
import { stagesWith, type Stage } from './kwok-stages.ts';
import type { ManagedProcess } from './managed-process.ts';
import { GiveUp, until } from './until.ts';

export interface KwokNodes {
  /** How many Node objects to make. */
  nodes: number;
  /** Names are PREFIX-0, PREFIX-1, ... Default `kwok`. */
  prefix?: string;
  /** Quantities of every node. Defaults: 32, 256Gi, 110. */
  cpu?: string;
  memory?: string;
  pods?: string;
  /** Further resources, like `nvidia.com/gpu: "8"`. */
  extended?: Record<string, string>;
  labels?: Record<string, string>;
  taints?: { key: string; value?: string; effect: string }[];
}

export interface KwokOptions extends KwokNodes {
  /** Added to the fast set of stages, or replacing one of the same name. */
  stages?: readonly Stage[];
  /** Pod addresses. Default 10.128.0.0/14. */
  podCidr?: string;
  /** Let `kubectl logs` and `attach` show a made-up log, for a demo without real containers. Default false. */
  simulate?: boolean;
  /** Let `kubectl exec` run the command on this machine (as nobody when we are root). Default false. */
  execHere?: boolean;
  /** Nodes measure what pods use, see {@link USAGE_ANNOTATIONS}, as real kubelets do. Default false. */
  usage?: boolean;
}

/** What a pod uses, as quantities on the pod: 1m and 1Mi per container unless it says otherwise. */
export const USAGE_ANNOTATIONS = { cpu: 'kwok.x-k8s.io/usage-cpu', memory: 'kwok.x-k8s.io/usage-memory' } as const;

/** Where the port that all nodes share serves the metrics of one of them. */
const metricsPath = (node: string): string => `/metrics/nodes/${node}/metrics/resource`;

/** Label of every Node that kwok plays. */
const KWOK_LABEL = { type: 'kwok' };

/** The kwok process of a cluster: it plays kubelet for any number of Node objects. */
export class Kwok {
  readonly cluster: Cluster;
  readonly process: ManagedProcess;
  readonly address: string;
  readonly #usage: boolean;

  constructor(cluster: Cluster, process: ManagedProcess, address: string, usage: boolean) {
    this.#usage = usage;
    this.cluster = cluster;
    this.process = process;
    this.address = address;
  }

  /** Creates Node objects and waits until all are Ready. @returns their names. */
  async addNodes(options: KwokNodes): Promise<string[]> {
    const names = Array.from({ length: options.nodes }, (_, index) => `${options.prefix ?? 'kwok'}-${index}`);
    const waiting = new Set(names);
    const queue = names.values();
    const worker = async (): Promise<void> => {
      for (const name of queue) await this.cluster.api.ensure('/api/v1/nodes', this.#node(name, options));
    };
    await Promise.all(Array.from({ length: 16 }, worker));
    await until(
      `${names.length} kwok nodes of ${this.cluster.name} are Ready`,
      async () => {
        if (!this.process.running) throw new GiveUp(this.process.describeExit());
        for (const name of await this.#readyNodes()) waiting.delete(name);
        return waiting.size === 0;
      },
      { timeoutMs: 30_000 + names.length * 100 },
    );
    return names;
  }

  async #readyNodes(): Promise<string[]> {
    const list = (await this.cluster.api.call('GET', '/api/v1/nodes?labelSelector=type%3Dkwok')) as {
      items: { metadata: { name: string }; status?: { conditions?: { type: string; status: string }[] } }[];
    };
    return list.items
      .filter((node) => node.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True'))
      .map((node) => node.metadata.name);
  }

  #node(name: string, options: KwokNodes): object {
    const resources = {
      cpu: options.cpu ?? '32',
      memory: options.memory ?? '256Gi',
      pods: options.pods ?? '110',
      ...options.extended,
    };
    const architecture = process.arch === 'x64' ? 'amd64' : process.arch;
    return {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: {
        name,
        annotations: {
          'kwok.x-k8s.io/node': 'fake',
          'node.alpha.kubernetes.io/ttl': '0',
          ...(this.#usage ? { 'metrics.k8s.io/resource-metrics-path': metricsPath(name) } : {}),
        },
        labels: {
          'kubernetes.io/hostname': name,
          'kubernetes.io/os': 'linux',
          'kubernetes.io/arch': architecture,
          ...KWOK_LABEL,
          ...options.labels,
        },
      },
      spec: options.taints === undefined ? {} : { taints: options.taints },
      status: {
        capacity: resources,
        allocatable: resources,
        addresses: [
          { type: 'InternalIP', address: this.address },
          { type: 'Hostname', address: name },
        ],
        nodeInfo: {
          architecture,
          operatingSystem: 'linux',
          kubeletVersion: 'v1.36.3',
          containerRuntimeVersion: 'kwok://fake',
          kernelVersion: 'kwok',
          kubeProxyVersion: '',
          osImage: 'kwok',
          bootID: '',
          machineID: '',
          systemUUID: '',
        },
      },
    };
  }
}

/** Starts kwok on a cluster, makes its nodes and waits until they are Ready. Once per cluster; then `addNodes`. */
export async function startKwok(cluster: Cluster, options: KwokOptions): Promise<Kwok> {
  const { workspace } = cluster;
  const binaries = await ensureBinaries(['kwok'], { say: workspace.say });
  // kwok does not ask who is calling: its port stays on loopback, which is enough for the API server beside it. Metrics
  // are asked for by nodes/proxy, and that never goes to loopback addresses.
  const address = options.usage === true ? nonLoopbackAddress() : '127.0.0.1';
  const port = await freePort(address);
  const file = (name: string): string => join(cluster.dir, name);
  const serving = await cluster.issueServing('kwok', [address, 'localhost'], { groups: ['system:nodes'] });
  writeFileSync(file('kwok.crt'), serving.cert);
  writeFileSync(file('kwok.key'), serving.key, { mode: 0o600 });
  const parallelism = 32;
  const documents = [
    {
      apiVersion: 'config.kwok.x-k8s.io/v1alpha1',
      kind: 'KwokConfiguration',
      options: {
        podPlayStageParallelism: parallelism,
        nodePlayStageParallelism: parallelism,
        nodeLeaseParallelism: parallelism,
        enableDebuggingHandlers: options.simulate === true || options.execHere === true,
      },
    },
    ...stagesWith(options.stages ?? []),
    ...(options.simulate === true ? madeUpLogs(file('kwok-pod.log')) : []),
    ...(options.execHere === true ? [execHere()] : []),
    ...(options.usage === true ? usageDocuments() : []),
  ];
  writeFileSync(file('kwok.yaml'), documents.map((document) => stringify(document)).join('---\n'));
  const started = workspace.start({
    name: `${cluster.name}/kwok`,
    file: binaries.kwok,
    args: [
      `--kubeconfig=${cluster.kubeconfig}`,
      `--config=${file('kwok.yaml')}`,
      '--manage-all-nodes=false',
      '--manage-nodes-with-label-selector=type=kwok',
      '--node-lease-duration-seconds=40',
      `--cidr=${options.podCidr ?? '10.128.0.0/14'}`,
      `--node-ip=${address}`,
      `--node-port=${port}`,
      `--server-address=${address}:${port}`,
      `--tls-cert-file=${file('kwok.crt')}`,
      `--tls-private-key-file=${file('kwok.key')}`,
    ],
    logFile: file('kwok.log'),
  });
  const kwok = new Kwok(cluster, started, address, options.usage === true);
  await kwok.addNodes(options);
  return kwok;
}

function simulation(kind: string, spec: object): object {
  return { apiVersion: 'kwok.x-k8s.io/v1alpha1', kind, metadata: { name: 'simulated' }, spec };
}

function madeUpLogs(logFile: string): object[] {
  writeFileSync(logFile, `${new Date().toISOString()} stdout F this pod is simulated: its log is made up\n`);
  return [
    simulation('ClusterLogs', { logs: [{ logsFile: logFile, follow: true }] }),
    simulation('ClusterAttach', { attaches: [{ logsFile: logFile }] }),
  ];
}

function execHere(): object {
  const nobody = 65_534;
  const local = process.getuid?.() === 0 ? { securityContext: { runAsUser: nobody, runAsGroup: nobody } } : {};
  return simulation('ClusterExec', { execs: [{ local: { workDir: '/', ...local } }] });
}

/** The metrics of a kubelet's /metrics/resource, made up from the annotations of pods. */
function usageDocuments(): object[] {
  const quantity = (annotation: string, otherwise: string): object => ({
    expression: `"${annotation}" in pod.metadata.annotations
      ? Quantity(pod.metadata.annotations["${annotation}"]) : Quantity("${otherwise}")`,
  });
  const labels = (...names: readonly string[]): object[] =>
    Object.entries({ container: 'container.name', namespace: 'pod.metadata.namespace', pod: 'pod.metadata.name' })
      .filter(([name]) => names.includes(name))
      .map(([name, value]) => ({ name, value }));
  const ofContainer = labels('container', 'namespace', 'pod');
  const ofPod = labels('namespace', 'pod');
  const metric = (name: string, dimension: string, kind: string, value: string, more: object = {}): object => ({
    name,
    help: name,
    dimension,
    kind,
    value,
    ...more,
  });
  return [
    {
      apiVersion: 'kwok.x-k8s.io/v1alpha1',
      kind: 'ClusterResourceUsage',
      metadata: { name: 'annotations' },
      spec: {
        usages: [
          { usage: { cpu: quantity(USAGE_ANNOTATIONS.cpu, '1m'), memory: quantity(USAGE_ANNOTATIONS.memory, '1Mi') } },
        ],
      },
    },
    {
      apiVersion: 'kwok.x-k8s.io/v1alpha1',
      kind: 'Metric',
      metadata: { name: 'resource' },
      spec: {
        path: metricsPath('{nodeName}'),
        metrics: [
          metric(
            'container_cpu_usage_seconds_total',
            'container',
            'counter',
            'pod.CumulativeUsage("cpu", container.name)',
            {
              labels: ofContainer,
            },
          ),
          metric('container_memory_working_set_bytes', 'container', 'gauge', 'pod.Usage("memory", container.name)', {
            labels: ofContainer,
          }),
          metric('pod_cpu_usage_seconds_total', 'pod', 'counter', 'pod.CumulativeUsage("cpu")', { labels: ofPod }),
          metric('pod_memory_working_set_bytes', 'pod', 'gauge', 'pod.Usage("memory")', { labels: ofPod }),
          metric('node_cpu_usage_seconds_total', 'node', 'counter', 'node.CumulativeUsage("cpu")'),
          metric('node_memory_working_set_bytes', 'node', 'gauge', 'node.Usage("memory")'),
          metric('resource_scrape_error', 'node', 'gauge', '0'),
        ],
      },
    },
  ];
}
