import { spawn } from 'node:child_process';
import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { freePort } from '../../hack/addresses.ts';
import { startCluster, type Cluster } from '../../hack/cluster.ts';
import { IMAGES } from '../../hack/images.ts';
import { startKubelet } from '../../hack/kubelet.ts';
import { machineNetwork } from '../../hack/machine-network.ts';
import { until } from '../../hack/until.ts';
import type { Workspace } from '../../hack/workspace.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { KubeClient } from '../../src/kube/client.ts';
import { keyOf } from '../../src/kube/object.ts';
import { staticAccess } from '../../src/kube/static-access.ts';
import { ClientCa } from '../../src/serving/client-ca.ts';
import { CsrCertificates } from '../../src/serving/csr-certificates.ts';
import type { PodDirectory } from '../../src/kubelet/pod-directory.ts';
import type { KubeletServerOptions } from '../../src/kubelet/server.ts';
import { KubeletServer } from '../../src/kubelet/server.ts';
import { declaredFeatures } from '../../src/nodes/declared-features.ts';
import { kubectlEnvironment } from '../fixtures/terminal.ts';

export const NODE = 'virtual-1';
const SIGNING_REQUESTS = '/apis/certificates.k8s.io/v1/certificatesigningrequests';

function clientOf(cluster: Cluster): KubeClient {
  const { server, ca, cert, key } = cluster.adminAccess;
  return new KubeClient({ cluster: cluster.name, ...staticAccess({ endpoint: { server, ca }, cert, key }) });
}

/** A pod as both clusters get it; the host's copy is bound to the virtual node. */
export function pod(name: string, containers: object[], more: object = {}): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', labels: { app: name } },
    spec: {
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: 1,
      tolerations: [{ operator: 'Exists' }],
      containers,
      ...more,
    },
  } as unknown as Pod;
}

export function shell(name: string, script: string, more: object = {}): object {
  return { name, image: IMAGES.busybox, command: ['sh', '-c', script], ...more };
}

/**
 * A host whose only node is a virtual one, served by a KubeletServer in this process, and a member with a real
 * kubelet. The host checks the node's serving certificate, which comes from its own signer.
 */
export class StreamsHarness {
  readonly host: Cluster;
  readonly member: Cluster;
  readonly registry = new Registry();
  readonly lines: Record<string, unknown>[] = [];
  readonly port: number;
  readonly address: string;
  readonly #options: KubeletServerOptions;
  #server: KubeletServer;
  readonly #stop: AbortController;
  readonly #loops: Promise<void>[];
  readonly #clients: KubeClient[];
  readonly #pods: Map<string, Pod>;

  private constructor(o: {
    host: Cluster;
    member: Cluster;
    options: KubeletServerOptions;
    port: number;
    server: KubeletServer;
    stop: AbortController;
    loops: Promise<void>[];
    clients: KubeClient[];
    pods: Map<string, Pod>;
    registry: Registry;
    lines: Record<string, unknown>[];
  }) {
    this.host = o.host;
    this.member = o.member;
    this.address = o.options.address;
    this.port = o.port;
    this.#options = o.options;
    this.#server = o.server;
    this.#stop = o.stop;
    this.#loops = o.loops;
    this.#clients = o.clients;
    this.#pods = o.pods;
    this.registry = o.registry;
    this.lines = o.lines;
  }

  static async start(workspace: Workspace): Promise<StreamsHarness> {
    const { gateway } = await machineNetwork(workspace);
    const host = await startCluster(workspace, { name: 'host', bindAddress: gateway, verifyKubelets: true });
    const member = await startCluster(workspace, { name: 'member', bindAddress: gateway, serviceCidr: '10.97.0.0/16' });
    await startKubelet(member, { node: 'real-1' });
    const [hostClient, memberClient] = [clientOf(host), clientOf(member)];
    const pods = new Map<string, Pod>();
    const directory: PodDirectory = {
      get: (namespace, name) => pods.get(`${namespace}/${name}`),
      list: () => pods.values(),
      running: () => pods.values(),
      target: ({ metadata }) => ({ client: memberClient, namespace: metadata.namespace ?? '', name: metadata.name }),
    };
    const registry = new Registry();
    const lines: Record<string, unknown>[] = [];
    const write = (line: string): void => void lines.push(JSON.parse(line) as Record<string, unknown>);
    const logger = pino({ level: 'debug' }, { write });
    const stop = new AbortController();
    const node = { nodeName: NODE, addresses: [gateway] };
    const certificates = await CsrCertificates.create({ host: hostClient, node, logger, clock: Date.now });
    const clientCa = ClientCa.fromHost(hostClient, logger);
    const loops = [certificates.run(stop.signal), clientCa.run(stop.signal)];
    await until('the serving certificate is requested', async () => {
      const list = (await host.api.call('GET', SIGNING_REQUESTS)) as { items: { metadata: { name: string } }[] };
      const name = list.items[0]?.metadata.name;
      return name !== undefined && (await host.kubectl(['certificate', 'approve', name])).code === 0;
    });
    await until('the serving certificate is issued', () => certificates.issued && clientCa.current() !== undefined);
    const options = {
      nodeName: NODE,
      address: gateway,
      certificates,
      clientCa: () => clientCa.current(),
      host: hostClient,
      pods: directory,
      registry,
      logger,
      clock: Date.now,
    };
    const server = new KubeletServer(options);
    const port = await server.listen(await freePort(gateway));
    const clients = [hostClient, memberClient];
    const { gitVersion } = (await member.api.call('GET', '/version')) as { gitVersion: string };
    await host.api.call('POST', '/api/v1/nodes', {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: NODE, labels: { 'kubernetes.io/hostname': NODE } },
      status: {
        addresses: [{ type: 'InternalIP', address: gateway }],
        daemonEndpoints: { kubeletEndpoint: { Port: port } },
        declaredFeatures: declaredFeatures([], gitVersion),
      },
    });
    const shared = { host, member, options, port, server, stop, loops, clients, pods };
    return new StreamsHarness({ ...shared, registry, lines });
  }

  /** Creates the pods in both clusters; the host's say that they run, as a mirrored status would. */
  async run(...wanted: Pod[]): Promise<void> {
    for (const one of wanted) {
      await this.member.apply([{ ...one, spec: { ...one.spec, nodeName: 'real-1' } }]);
      await this.host.apply([{ ...one, spec: { ...one.spec, nodeName: NODE } }]);
      const path = `/api/v1/namespaces/default/pods/${one.metadata.name}`;
      const bound = (await this.host.api.call('PATCH', `${path}/status`, { status: { phase: 'Running' } })) as Pod;
      this.#pods.set(keyOf(bound), bound);
    }
  }

  /** Waits for something that `kubectl get pod` of the member can show. */
  async whenMemberPod(name: string, jsonpath: string, expected: string): Promise<void> {
    await until(`pod ${name} has ${jsonpath} = ${expected}`, async () => {
      const { stdout } = await this.member.kubectl(['get', 'pod', name, '-o', `jsonpath={${jsonpath}}`]);
      return stdout === expected;
    });
  }

  /** A kubectl whose input and output the caller handles. The caller must see it end. */
  spawn(cluster: Cluster, args: readonly string[]): ChildProcessWithoutNullStreams {
    return spawn(cluster.kubectlPath, args, { env: kubectlEnvironment(cluster), stdio: 'pipe' });
  }

  /** As when the program is stopped and started: open streams are cut at once. */
  async restartServer(): Promise<void> {
    await this.#server.close(0);
    this.#server = new KubeletServer(this.#options);
    await this.#server.listen(this.port);
  }

  async openStreams(): Promise<number> {
    const metric = await this.registry.getSingleMetric('spillway_kubelet_open_streams')?.get();
    return metric?.values.reduce((sum, { value }) => sum + value, 0) ?? 0;
  }

  /** The clusters end with their workspace. */
  async close(): Promise<void> {
    await this.#server.close(0);
    this.#stop.abort();
    await Promise.all(this.#loops);
    await Promise.all(this.#clients.map((client) => client.close()));
  }
}
