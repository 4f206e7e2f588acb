import { pino } from 'pino';
import { Registry } from 'prom-client';
import { expect, vi } from 'vitest';
import { HOST_LABEL, HOST_NAME_ANNOTATION, HOST_NAMESPACE_ANNOTATION, UID_LABEL } from '../../src/api/marks.ts';
import type { Node, Pod } from '../../src/kube/core-v1.ts';
import type { Service } from '../../src/kube/service.ts';
import type { Endpoint, EndpointSlice } from '../../src/kube/discovery-v1.ts';
import type { CacheShare } from '../../src/kube/cache-room.ts';
import { Informer } from '../../src/kube/informer.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { NODES, PODS, SERVICES } from '../../src/kube/resource.ts';
import { hostServiceProjection } from '../../src/services/host-service.ts';
import { HostSlices } from '../../src/services/host-slices.ts';
import { MemberServices } from '../../src/services/member-services.ts';
import type { ServiceWaits } from '../../src/services/member-services-options.ts';
import { serviceMetrics } from '../../src/services/service-metrics.ts';
import { type MemoryApiServer, serveMemoryApi } from '../fixtures/memory-api-server.ts';
import { MemoryApi, type MemoryRequest } from '../fixtures/memory-api.ts';

const NS = 'shop';
const logger = pino({ level: 'silent' });
const COPY = 'copy';
const NAMESPACE = 'namespace';
const servicesPath = (namespace = NS): string => `/api/v1/namespaces/${namespace}/services`;
const slicesPath = (namespace = NS): string => `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`;

const SHORT_WAITS: ServiceWaits = {
  gather: 20,
  rest: 20,
  longestRest: 200,
  empty: 300,
  stalled: 300,
  handOver: 4_000,
  failing: 1_000,
  refused: { rest: 1_000, late: 500 },
};

/** A running part of the program for one MemberCluster. */
export interface RunningServices {
  services: MemberServices;
  mode: 'None' | 'Mirror';
  network: 'Flat' | 'Isolated';
  always: string[];
  /** Namespaces of the host that no namespace of the member stands for. */
  unmapped: string[];
  /** Namespaces of the host whose namespace in the member is not to be used. */
  notLent: string[];
  /** Other MemberClusters of the same cluster. */
  sharing: string[];
  /** What the host is told of it. */
  writes: boolean;
  requeued: string[];
  reachable: boolean;
  stop(): Promise<void>;
}

/** A host and a member in memory. */
export class ServiceWorld {
  readonly host = new MemoryApi();
  readonly member = new MemoryApi();
  readonly events: string[] = [];
  /** What caches of the member may take, from the next start on. Default: no limit. */
  room: CacheShare | undefined;
  readonly #servers = new Map<MemoryApi, MemoryApiServer>();
  readonly #running = new Set<RunningServices>();
  /** By the name of the MemberCluster. */
  readonly #told = new Map<string, RunningServices>();

  static async start(): Promise<ServiceWorld> {
    const world = new ServiceWorld();
    for (const api of [world.host, world.member]) {
      world.#servers.set(api, await serveMemoryApi(api));
      for (const name of [NS, 'data']) send(api, 'POST', '/api/v1/namespaces', { metadata: { name } });
    }
    return world;
  }

  /** A pod of the host on the virtual node, and its copy. */
  run(name: string, { copy = true, ip = '10.1.0.1', node = 'east', prefix = '' } = {}): void {
    const labels = { app: 'web' };
    const spec = { containers: [{ name: 'app', image: 'busybox' }] };
    const path = `/api/v1/namespaces/${NS}/pods`;
    const status = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
    const { metadata } = send(this.host, 'POST', path, {
      metadata: { name, labels },
      spec: { ...spec, nodeName: node },
    });
    send(this.host, 'PATCH', `${path}/${name}/status`, { status });
    if (!copy) return;
    const copies = `/api/v1/namespaces/${prefix}${NS}/pods`;
    send(this.member, 'POST', copies, {
      metadata: {
        name,
        labels: { ...labels, [HOST_LABEL]: 'us', [UID_LABEL]: metadata.uid },
        annotations: { [HOST_NAMESPACE_ANNOTATION]: NS, [HOST_NAME_ANNOTATION]: name },
      },
      spec: { ...spec, nodeName: 'n1' },
    });
    send(this.member, 'PATCH', `${copies}/${name}/status`, { status: { ...status, podIPs: [{ ip }] } });
  }

  end(name: string): void {
    for (const api of [this.host, this.member]) {
      const path = `/api/v1/namespaces/${NS}/pods/${name}`;
      if (api.objects.get(path) !== undefined) send(api, 'DELETE', path, { gracePeriodSeconds: 0 });
    }
  }

  offer(name: string, spec: object = {}, namespace = NS): void {
    const body = { metadata: { name }, spec: { type: 'ClusterIP', ports: [{ port: 80, protocol: 'TCP' }], ...spec } };
    send(this.host, 'POST', servicesPath(namespace), body);
  }

  withdraw(name: string, namespace = NS): void {
    send(this.host, 'DELETE', `${servicesPath(namespace)}/${name}`, {});
  }

  /** What the host's controller says a Service leads to. */
  lead(name: string, addresses: readonly string[], slice = `${name}-1`): void {
    const endpoints: Endpoint[] = addresses.map((address) => ({ addresses: [address], conditions: { ready: true } }));
    const path = slicesPath();
    const metadata = { name: slice, labels: { 'kubernetes.io/service-name': name } };
    const body = { metadata, addressType: 'IPv4', ports: [{ name: '', port: 80, protocol: 'TCP' }], endpoints };
    const isThere = this.host.objects.get(`${path}/${slice}`) !== undefined;
    if (isThere) send(this.host, 'PATCH', `${path}/${slice}`, { endpoints });
    else send(this.host, 'POST', path, body);
  }

  /** The host's controller says that they are pods of the host: an address by the name of each. */
  leadToPods(name: string, addresses: Readonly<Record<string, string>>, slice = `${name}-1`): void {
    this.lead(name, Object.values(addresses), slice);
    const endpoints: Endpoint[] = Object.entries(addresses).map(([pod, address]) => {
      const uid = this.host.objects.get(`/api/v1/namespaces/${NS}/pods/${pod}`)?.metadata.uid ?? '';
      return {
        addresses: [address],
        conditions: { ready: true },
        targetRef: { kind: 'Pod', namespace: NS, name: pod, uid },
      };
    });
    send(this.host, 'PATCH', `${slicesPath()}/${slice}`, { endpoints });
  }

  /** Breaks what is open, too. */
  break(api: MemoryApi, fault: MemoryApi['fault']): void {
    api.fault = fault;
    this.#servers.get(api)?.cutWatches();
  }

  copy(name: string, namespace = NS): Service | undefined {
    return this.member.objects.get(`${servicesPath(namespace)}/${name}`);
  }

  /** Where callers of a Service in the member are led. */
  led(name: string, namespace = NS): string[] {
    return this.slices(name, namespace)
      .flatMap(({ endpoints = [] }) => endpoints.flatMap(({ addresses }) => addresses))
      .toSorted();
  }

  slices(name: string, namespace = NS): EndpointSlice[] {
    return [...this.member.objects]
      .filter(([path]) => path.startsWith(`${slicesPath(namespace)}/`))
      .map(([, object]) => object as unknown as EndpointSlice)
      .filter(({ metadata }) => metadata.labels?.['kubernetes.io/service-name'] === name);
  }

  /** What was written in the member, as `METHOD kind/name`. */
  writes(): string[] {
    return this.member.seen
      .filter(({ method, path }) => method !== 'GET' && !path.includes('/pods'))
      .map(({ method, path }) => `${method} ${path.split('/').slice(-2).join('/')}`);
  }

  forgetWrites(): void {
    this.member.seen.length = 0;
  }

  /** Starts it, as after a start of the program. */
  start(
    name = 'east',
    {
      node = 'east',
      prefix = '',
      waits = SHORT_WAITS,
      ...options
    }: Partial<
      Pick<RunningServices, 'mode' | 'network' | 'sharing' | 'always' | 'unmapped' | 'notLent' | 'writes'> & {
        node: string;
        prefix: string;
        waits: ServiceWaits;
      }
    > = {},
  ): RunningServices {
    const stop = new AbortController();
    const [host, client] = [this.#client(this.host), this.#client(this.member)];
    const hostServices = new Informer<Service>({
      client: host,
      resource: SERVICES,
      transform: hostServiceProjection,
      indexes: { [NAMESPACE]: ({ metadata }) => [metadata.namespace ?? ''] },
    });
    const hostSlices = new HostSlices({ host, hostId: 'us', logger });
    const hostPods = new Informer<Pod>({ client: host, resource: PODS, fieldSelector: `spec.nodeName=${node}` });
    const memberPods = new Informer<Pod>({
      client,
      resource: PODS,
      indexes: {
        [COPY]: ({ metadata }) => [metadata.labels?.[UID_LABEL] ?? ''],
        [NAMESPACE]: ({ metadata }) => [metadata.annotations?.[HOST_NAMESPACE_ANNOTATION] ?? ''],
      },
    });
    const memberNodes = new Informer<Node>({ client, resource: NODES });
    const requeued: string[] = [];
    const running: RunningServices = {
      mode: 'Mirror',
      network: 'Flat',
      always: [],
      unmapped: [],
      notLent: [],
      sharing: [],
      writes: true,
      ...options,
      requeued,
      reachable: true,
      services: new MemberServices({
        host: {
          id: 'us',
          client: host,
          services: hostServices,
          servicesIn: (namespace) => hostServices.byIndex(NAMESPACE, namespace),
          slices: hostSlices,
          podsIn: (namespace) => [...hostPods.values()].filter(({ metadata }) => metadata.namespace === namespace),
        },
        member: {
          name,
          client,
          nodes: memberNodes,
          namespaces: {
            memberNamespaceOf: (namespace) =>
              running.unmapped.includes(namespace) ? undefined : `${prefix}${namespace}`,
            ensure: (namespace, _, former) =>
              Promise.resolve(
                running.notLent.includes(namespace)
                  ? { hold: { message: `namespace ${prefix}${namespace} exists there and is not ours.` } }
                  : { namespace: former ?? `${prefix}${namespace}` },
              ),
          },
          copiesOf: (namespace) => memberPods.byIndex(NAMESPACE, namespace),
          copyOf: (uid) => memberPods.byIndex(COPY, uid)[0],
          sharesCluster: (other) => running.sharing.includes(other),
          toldOf: (other) => this.#told.get(other),
          reachable: () => running.reachable,
          synced: () => memberPods.hasSynced && memberNodes.hasSynced,
          unread: () => memberPods.lastingRefusal,
        },
        spec: () => ({
          services: { mode: running.mode, namespaces: running.always, multiCluster: 'None' },
          network: running.network,
        }),
        mayWrite: () => true,
        wereMirrored: true,
        requeue: (key) => void requeued.push(key),
        events: { record: (_subject, type, reason) => this.events.push(`${type} ${reason}`) },
        metrics: { services: serviceMetrics(new Registry()) },
        logger,
        waits,
      }),
      stop: async () => {
        this.#running.delete(running);
        stop.abort();
        await done;
      },
    };
    const { services } = running;
    hostPods.on({
      added: (pod) => services.hostPodChanged(pod),
      updated: (pod, before) => services.hostPodChanged(pod, before),
      deleted: (pod) => services.hostPodChanged(pod),
    });
    memberPods.on({ deleted: (pod) => services.copyGone(pod.metadata.annotations?.[HOST_NAMESPACE_ANNOTATION] ?? '') });
    const caches = [hostServices, hostPods, memberPods, memberNodes];
    const work = async (): Promise<void> => {
      const following = [hostSlices, services, ...caches].map(async (one) => await one.run(stop.signal));
      await Promise.all(caches.map(async (one) => await one.whenSynced(stop.signal))).then(
        () => services.setComplete(),
        () => undefined,
      );
      await Promise.all(following);
      await Promise.all([host.close(), client.close()]);
    };
    const done = work();
    this.#running.add(running);
    this.#told.set(name, running);
    return running;
  }

  #client(api: MemoryApi): ReturnType<MemoryApiServer['client']> {
    const server = this.#servers.get(api);
    if (server === undefined) throw new Error('not started');
    return api === this.host ? server.client('host') : server.client('member', this.room);
  }

  /** Nothing is written any more. */
  async atRest(): Promise<void> {
    let before: number;
    do {
      before = this.writes().length;
      await new Promise((resolve) => setTimeout(resolve, 600));
    } while (this.writes().length !== before);
  }

  async close(): Promise<void> {
    for (const running of this.#running) await running.stop();
    for (const server of this.#servers.values()) await server.close();
  }
}

/** Anybody but the program: not among what is seen. */
export function send(api: MemoryApi, method: string, path: string, body: object): KubeObject {
  const contentType = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
  const request: MemoryRequest = { method, path, query: {}, body, contentType };
  return api.handle(request) as unknown as KubeObject;
}

export async function until(what: () => boolean): Promise<void> {
  await vi.waitFor(() => expect(what()).toBe(true), { timeout: 5_000, interval: 10 });
}
