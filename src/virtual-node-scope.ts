import type { Logger } from 'pino';
import type { MemberCluster } from './api/member-cluster.ts';
import type { Pod } from './api/wire.ts';
import { NAMESPACE_INDEX, type HostServices } from './host-services.ts';
import { Informer } from './kube/informer.ts';
import { keyFor } from './kube/object.ts';
import { PODS } from './kube/resource.ts';
import type { ServingCertificates } from './kubelet/certificates.ts';
import { CsrCertificates } from './kubelet/csr-certificates.ts';
import { FileCertificates } from './kubelet/file-certificates.ts';
import type { PodDirectory } from './kubelet/pod-directory.ts';
import { SelfSignedCertificates } from './kubelet/self-signed-certificates.ts';
import { KubeletServer } from './kubelet/server.ts';
import type { MemberConnection } from './members/connection.ts';
import type { MemberNamespaces } from './members/namespaces.ts';
import { withoutManagedFields } from './members/pod-projection.ts';
import { isFinished } from './pods/finished.ts';
import { PodController } from './pods/pod-controller.ts';
import type { DependentsPort } from './pods/pod-ports.ts';
import { serviceEnvFor } from './pods/service-env.ts';
import type { TranslateContext } from './pods/translate.ts';

/** The keeper of the Node object, made once the kubelet port is known. */
export interface NodePort {
  trigger(): void;
  run(signal: AbortSignal): Promise<void>;
}

export interface VirtualNodeOptions {
  services: HostServices;
  connection: MemberConnection;
  namespaces: MemberNamespaces;
  dependents: DependentsPort;
  /** The MemberCluster as it is now. */
  member: () => MemberCluster;
  nodeName: string;
  /** Labels that choose the member's nodes behind this virtual node; undefined once it is not wanted any more. */
  pool: () => Record<string, string> | undefined;
  /** Why nothing may be written, or undefined. */
  frozen: () => string | undefined;
  makeNode: (kubeletPort: number) => NodePort;
  logger: Logger;
}

/**
 * One virtual node at work: its Node object, its kubelet port, its pods. Starts, ends and fails alone; ending leaves
 * Node and pods as they are.
 */
export class VirtualNodeScope {
  readonly nodeName: string;
  readonly pods: PodController;
  readonly #o: VirtualNodeOptions;
  readonly #hostPods: Informer<Pod>;
  #node: NodePort | undefined;

  constructor(options: VirtualNodeOptions) {
    const { services, connection, nodeName, member, logger } = options;
    this.#o = options;
    this.nodeName = nodeName;
    this.#hostPods = new Informer<Pod>({
      client: services.host,
      resource: PODS,
      fieldSelector: `spec.nodeName=${nodeName}`,
      transform: (raw) => withoutManagedFields(raw as Pod),
      logger,
      metrics: services.informerMetrics,
    });
    this.pods = new PodController({
      host: services.host,
      hostPods: this.#hostPods,
      member: connection,
      hostId: services.hostId,
      nodeName,
      network: () => member().spec.network,
      podsUnreadyAfterMs: () => member().spec.probe.podsUnreadyAfterSeconds * 1000,
      frozen: options.frozen,
      namespaces: options.namespaces,
      dependents: options.dependents,
      translateContext: (hostPod, memberNamespace) => this.#translateContext(hostPod, memberNamespace),
      events: services.events,
      metrics: services.podMetrics,
      queueMetrics: services.queueMetrics,
      logger,
    });
  }

  /** The host pods bound to this node. */
  hostPods(): IterableIterator<Pod> {
    return this.#hostPods.values();
  }

  hasHostPod(key: string): boolean {
    return this.#hostPods.get(key) !== undefined;
  }

  get synced(): boolean {
    return this.#hostPods.hasSynced;
  }

  whenSynced(signal: AbortSignal): Promise<void> {
    return this.#hostPods.whenSynced(signal);
  }

  /** The member's state or spec changed in a way that may concern every pod and the Node. */
  changed(): void {
    this.#node?.trigger();
    this.pods.requeueAll();
  }

  /** Capacity changed. */
  capacityChanged(): void {
    this.#node?.trigger();
  }

  async run(signal: AbortSignal): Promise<void> {
    const { services, makeNode, logger, nodeName } = this.#o;
    const certificates = await this.#certificates();
    const server = new KubeletServer({
      nodeName,
      address: services.config.kubelet.bindAddress,
      port: 0,
      certificates,
      clientCa: services.clientCa,
      host: services.host,
      pods: this.#directory(),
      registry: services.registry,
      logger,
      clock: Date.now,
    });
    const { port } = await server.listen();
    logger.info({ node: nodeName, port }, 'kubelet port is open');
    this.#node = makeNode(port);
    const ended = Promise.all([
      this.#hostPods.run(signal),
      this.pods.run(signal),
      this.#node.run(signal),
      certificates.run(signal),
    ]);
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    await Promise.all([ended, server.close(services.config.shutdownGraceSeconds * 1000)]);
  }

  async #certificates(): Promise<ServingCertificates> {
    const { services, nodeName, logger } = this.#o;
    const node = { nodeName, addresses: [services.nodeAddress] };
    const { servingCertificate } = services.config.kubelet;
    const clock = Date.now;
    switch (servingCertificate.mode) {
      case 'Files':
        return await FileCertificates.open({ ...servingCertificate, logger });
      case 'Csr':
        return await CsrCertificates.create({ host: services.host, node, logger, clock });
      case 'SelfSigned':
        return await SelfSignedCertificates.create({ node, logger, clock });
    }
  }

  #directory(): PodDirectory {
    const { connection, namespaces } = this.#o;
    const hostPods = this.#hostPods;
    return {
      get: (namespace, name) => hostPods.get(keyFor(namespace, name)),
      list: () => hostPods.values(),
      *running() {
        for (const pod of hostPods.values()) if (pod.status?.phase === 'Running' && !isFinished(pod)) yield pod;
      },
      target: (pod) => {
        const namespace = namespaces.memberNamespaceOf(pod.metadata.namespace ?? '');
        if (namespace === undefined) {
          return { unavailable: `namespace ${pod.metadata.namespace} has no place in cluster "${connection.name}"` };
        }
        if (!connection.reachable()) {
          return {
            unavailable: `cluster "${connection.name}", where the pod runs, does not answer at the moment; try again later`,
          };
        }
        if (!connection.identityOk()) {
          return {
            unavailable: `another cluster answers in the place of "${connection.name}"; its administrator has to confirm that`,
          };
        }
        return { client: connection.client, namespace, name: pod.metadata.name };
      },
    };
  }

  #translateContext(hostPod: Pod, memberNamespace: string): TranslateContext {
    const { services, member, nodeName, namespaces, pool } = this.#o;
    const { spec, metadata } = member();
    const inNamespace = services.services.byIndex(NAMESPACE_INDEX, hostPod.metadata.namespace ?? '');
    const excluded = spec.capacity.excludeNodes?.matchLabels;
    return {
      hostId: services.hostId,
      nodeName,
      member: metadata.name,
      memberNamespace,
      serviceEnv: serviceEnvFor(hostPod, inNamespace, services.services.get('default/kubernetes')),
      memberNamespaceOf: (namespace) => namespaces.memberNamespaceOf(namespace),
      hostOnlyLabels: new Set(Object.keys(spec.labels)),
      poolSelector: pool() ?? {},
      ...(excluded === undefined ? {} : { excludedNodes: excluded }),
    };
  }
}
