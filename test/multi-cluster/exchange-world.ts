import { vi } from 'vitest';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { memberNamespaceFor, type NamespaceMapping } from '../../src/api/namespace-mapping.ts';
import type { CacheShare } from '../../src/kube/cache-room.ts';
import type { Namespace } from '../../src/kube/core-v1.ts';
import type { Service } from '../../src/kube/service.ts';
import type { EndpointSlice } from '../../src/kube/discovery-v1.ts';
import { Informer } from '../../src/kube/informer.ts';
import type { ServiceExport, ServiceImport } from '../../src/kube/multicluster-v1.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { NAMESPACES } from '../../src/kube/resource.ts';
import { exchangeMetrics } from '../../src/multi-cluster/exchange-metrics.ts';
import { HostExchange } from '../../src/multi-cluster/host-exchange.ts';
import { Hub } from '../../src/multi-cluster/hub.ts';
import { MemberExchange } from '../../src/multi-cluster/member-exchange.ts';
import { MemberLocalServices } from '../../src/multi-cluster/member-local-services.ts';
import { type MemoryApiServer, serveMemoryApi } from '../fixtures/memory-api-server.ts';
import { MemoryApi, type MemoryRequest } from '../fixtures/memory-api.ts';

const NS = 'shop';
const logger = pino({ level: 'silent' });
const GROUP = `/apis/multicluster.x-k8s.io/v1beta1/namespaces/${NS}`;
const SLICES = `/apis/discovery.k8s.io/v1/namespaces/${NS}/endpointslices`;
const LENT = { 'spillway.dev/allow-host': 'any' };

export type ClusterName = 'host' | 'east' | 'west';

/** What can be changed of a member while it is followed. */
interface MemberState {
  wanted: boolean;
  isIsolated: boolean;
  isShared: boolean;
  reachable: boolean;
  isLost: boolean;
  /** It was seen to be the cluster that it should be. */
  isPinned: boolean;
  /** Before the program began. */
  wereExchanged: boolean;
  mapping: NamespaceMapping;
}

/** Waits until what is expected is so. */
export async function soon(check: () => void): Promise<void> {
  await vi.waitFor(check, { timeout: 10_000, interval: 20 });
}

/** A host and two members in memory, and the program that exchanges their Services. */
export class ExchangeWorld {
  readonly apis = { host: new MemoryApi(), east: new MemoryApi(), west: new MemoryApi() };
  readonly members = { east: newState(), west: newState() };
  /** What is other than usual from the next start on. */
  limits: { maxExports?: number; maxExportBytes?: number; problemMs?: number } = {};
  /** What caches may take. Default: no limit. */
  readonly rooms: { [name in ClusterName]?: CacheShare } = {};
  exchanges: { east: MemberExchange; west: MemberExchange } | undefined;
  readonly #servers = new Map<MemoryApi, MemoryApiServer>();
  #stop: (() => Promise<void>) | undefined;

  static async start(): Promise<ExchangeWorld> {
    const world = new ExchangeWorld();
    for (const api of Object.values(world.apis)) {
      world.#servers.set(api, await serveMemoryApi(api));
      for (const [name, labels] of [
        [NS, LENT],
        ['private', {}],
      ] as const)
        world.#send(api, 'POST', '/api/v1/namespaces', { metadata: { name, labels } });
    }
    world.run();
    return world;
  }

  /** Starts the program, as after a restart. */
  run(): void {
    const stop = new AbortController();
    const exchange = exchangeMetrics(new Registry());
    const host = this.#client('host');
    const hub = new Hub({ host, hostId: 'us', metrics: { exchange }, logger });
    const listeners = new Set<(key: string) => void>();
    const local = new MemberLocalServices({
      client: host,
      logger,
      changed: (key) => {
        for (const listener of listeners) listener(key);
      },
    });
    const names = ['east', 'west'] as const;
    const isIn = (name: string): boolean => names.some((one) => one === name && this.members[one].wanted);
    const hostExchange = new HostExchange({
      host,
      hub,
      local: {
        get synced() {
          return local.synced;
        },
        get problem() {
          return local.problem;
        },
        serviceOf: (key) => local.serviceOf(key),
        slicesOf: (key) => local.slicesOf(key),
        on: (listener) => {
          listeners.add(listener);
          return () => {
            listeners.delete(listener);
          };
        },
      },
      members: () => names.filter(isIn),
      mayStay: isIn,
      mayWrite: () => true,
      metrics: {},
      logger,
    });
    const running: { run(signal: AbortSignal): Promise<void> }[] = [hub, local, hostExchange];
    const clients = [host];
    const make = (name: 'east' | 'west'): MemberExchange => {
      const client = this.#client(name);
      const state = this.members[name];
      const namespaces = new Informer<Namespace>({ client, resource: NAMESPACES });
      const made = new MemberExchange({
        hub,
        member: {
          name,
          client,
          namespaces,
          isUsable: ({ metadata }) => metadata.labels?.['spillway.dev/allow-host'] === 'any',
          memberNamespaceOf: (namespace) => {
            const mapped = memberNamespaceFor(state.mapping, namespace);
            return 'namespace' in mapped ? mapped.namespace : undefined;
          },
          reachable: () => state.reachable,
          isLost: () => state.isLost,
          isShared: () => state.isShared,
          sharesCluster: (other) => names.some((one) => one === other && this.apis[one] === this.apis[name]),
        },
        spec: () => state,
        mayWrite: () => state.isPinned,
        mayWriteHost: () => true,
        ...this.limits,
        wereExchanged: state.wereExchanged,
        metrics: { exchange },
        logger,
      });
      running.push(namespaces, made);
      clients.push(client);
      return made;
    };
    this.exchanges = { east: make('east'), west: make('west') };
    const done = Promise.all(running.map(async (one) => await one.run(stop.signal)));
    this.#stop = async () => {
      stop.abort();
      await done;
      for (const client of clients) await client.close();
    };
  }

  async stop(): Promise<void> {
    await this.#stop?.();
    this.#stop = undefined;
  }

  /** A Service of a cluster, with one endpoint. */
  offer(cluster: ClusterName, name: string, address: string, spec: object = {}, labels: object = {}): void {
    const ports = [{ name: 'http', port: 80, protocol: 'TCP' }];
    const api = this.apis[cluster];
    this.#send(api, 'POST', `/api/v1/namespaces/${NS}/services`, {
      metadata: { name, labels },
      spec: { type: 'ClusterIP', clusterIP: '10.9.9.9', ports, ipFamilies: ['IPv4'], ...spec },
    });
    this.#send(api, 'POST', SLICES, {
      metadata: { name: `${name}-1`, labels: { 'kubernetes.io/service-name': name } },
      addressType: 'IPv4',
      ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
      endpoints: [{ addresses: [address], conditions: { ready: true } }],
    });
  }

  /** Gives the one EndpointSlice of an offered Service so many endpoints. */
  resize(cluster: ClusterName, name: string, size: number): void {
    const endpoints = Array.from({ length: size }, (_, i) => ({
      addresses: [`10.1.0.${i + 1}`],
      conditions: { ready: true },
    }));
    this.#send(this.apis[cluster], 'PATCH', `${SLICES}/${name}-1`, { endpoints });
  }

  export(cluster: ClusterName, name: string): void {
    this.#send(this.apis[cluster], 'POST', `${GROUP}/serviceexports`, { metadata: { name } });
  }

  unexport(cluster: ClusterName, name: string): void {
    this.#send(this.apis[cluster], 'DELETE', `${GROUP}/serviceexports/${name}`, {});
  }

  /** Anything, by somebody else. */
  write(cluster: ClusterName, method: string, path: string, body: object): void {
    this.#send(this.apis[cluster], method, path, body);
  }

  importOf(cluster: ClusterName, name: string): ServiceImport | undefined {
    return this.apis[cluster].objects.get(`${GROUP}/serviceimports/${name}`) as unknown as ServiceImport | undefined;
  }

  /** `Type=Status Reason` of each condition. */
  told(cluster: ClusterName, name: string): string[] {
    const found = this.apis[cluster].objects.get(`${GROUP}/serviceexports/${name}`) as unknown as ServiceExport;
    return (found.status?.conditions ?? []).map(({ type, status, reason }) => `${type}=${status} ${reason ?? ''}`);
  }

  /** Where callers of an import are led, as `address <- cluster`. */
  led(cluster: ClusterName, name: string): string[] {
    return this.#objects<EndpointSlice>(cluster, SLICES)
      .filter(({ metadata }) => metadata.labels?.['multicluster.kubernetes.io/service-name'] === name)
      .flatMap(({ metadata, endpoints = [] }) =>
        endpoints.map(
          ({ addresses }) =>
            `${addresses.join()} <- ${metadata.labels?.['multicluster.kubernetes.io/source-cluster'] ?? ''}`,
        ),
      )
      .toSorted();
  }

  /** Names of all that has our mark in a cluster. */
  ours(cluster: ClusterName): string[] {
    return [...this.apis[cluster].objects].flatMap(([path, { metadata }]) =>
      metadata.labels?.['spillway.dev/host'] === undefined ? [] : path,
    );
  }

  /** Breaks what is open, too. By default nothing reaches the cluster any more. */
  break(cluster: ClusterName, fault: MemoryApi['fault'] = () => 'reset'): void {
    const api = this.apis[cluster];
    api.fault = fault;
    this.#servers.get(api)?.cutWatches();
  }

  services(cluster: ClusterName): Service[] {
    return this.#objects<Service>(cluster, `/api/v1/namespaces/${NS}/services`);
  }

  writes(): string[] {
    return Object.entries(this.apis).flatMap(([cluster, { seen }]) =>
      seen.flatMap(({ method, path }) => (method === 'GET' ? [] : `${cluster}: ${method} ${path}`)),
    );
  }

  forgetWrites(): void {
    for (const { seen } of Object.values(this.apis)) seen.length = 0;
  }

  #objects<T extends KubeObject>(cluster: ClusterName, collection: string): T[] {
    return [...this.apis[cluster].objects]
      .filter(([path]) => path.startsWith(`${collection}/`))
      .map(([, object]) => object as unknown as T);
  }

  #client(name: ClusterName): ReturnType<MemoryApiServer['client']> {
    const server = this.#servers.get(this.apis[name]);
    if (server === undefined) throw new Error('not started');
    return server.client(name, this.rooms[name]);
  }

  #send(api: MemoryApi, method: string, path: string, body: object): void {
    const contentType = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
    const request: MemoryRequest = { method, path, query: {}, body, contentType };
    api.handle(request);
  }

  async close(): Promise<void> {
    await this.stop();
    for (const server of this.#servers.values()) await server.close();
  }
}

function newState(): MemberState {
  return {
    wanted: true,
    isIsolated: false,
    isShared: false,
    reachable: true,
    isLost: false,
    isPinned: true,
    wereExchanged: false,
    mapping: { mapping: 'Same' },
  };
}
