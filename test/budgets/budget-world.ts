import { pino } from 'pino';
import { Registry } from 'prom-client';
import {
  HOST_LABEL,
  HOST_NAME_ANNOTATION,
  HOST_NAMESPACE_ANNOTATION,
  MEMBER_EVICTIONS_ANNOTATION,
  MIRRORED_CONDITION,
  UID_LABEL,
} from '../../src/api/marks.ts';
import type { Node, Pod } from '../../src/kube/core-v1.ts';
import type { PodDisruptionBudget } from '../../src/kube/policy-v1.ts';
import { budgetMetrics } from '../../src/budgets/budget-metrics.ts';
import { HostBudgets } from '../../src/budgets/host-budgets.ts';
import { MemberBudgets } from '../../src/budgets/member-budgets.ts';
import type { CacheShare } from '../../src/kube/cache-room.ts';
import { Informer } from '../../src/kube/informer.ts';
import { labelSelectorOf, matchesLabels } from '../../src/kube/label-selector.ts';
import { NODES, PODS } from '../../src/kube/resource.ts';
import { type MemoryApiServer, serveMemoryApi } from '../fixtures/memory-api-server.ts';
import { MemoryApi, type MemoryRequest } from '../fixtures/memory-api.ts';

const NS = 'shop';
const logger = pino({ level: 'silent' });
const JSON_TYPE = 'application/json';
const MERGE = 'application/merge-patch+json';
const COPY = 'copy';
const podsOf = (namespace: string): string => `/api/v1/namespaces/${namespace}/pods`;
const pods = podsOf(NS);
export const BUDGETS = `/apis/policy/v1/namespaces/${NS}/poddisruptionbudgets`;

/** A running part of the program for one member. */
export interface RunningBudgets {
  budgets: MemberBudgets;
  mode: 'Mirror' | 'Ignore';
  reachable: boolean;
  stop(): Promise<void>;
}

/** A host and members in memory, whose disruption controllers count when the test says so. */
export class BudgetWorld {
  readonly host = new MemoryApi();
  readonly members = new Map<string, MemoryApi>();
  readonly events: string[] = [];
  /** What caches of a member may take, from the next start on. Default: no limit. */
  room: CacheShare | undefined;
  readonly #servers = new Map<MemoryApi, MemoryApiServer>();
  readonly #running = new Set<RunningBudgets>();

  static async start(...members: string[]): Promise<BudgetWorld> {
    const world = new BudgetWorld();
    for (const name of members) world.members.set(name, new MemoryApi());
    for (const api of [world.host, ...world.members.values()]) {
      world.#servers.set(api, await serveMemoryApi(api));
      for (const name of [NS, 'mapped']) send(api, 'POST', '/api/v1/namespaces', { metadata: { name } });
    }
    for (const [name, api] of world.members) {
      for (const node of ['1', '2']) send(api, 'POST', '/api/v1/nodes', { metadata: { name: `${name}-${node}` } });
    }
    return world;
  }

  member(name: string): MemoryApi {
    const api = this.members.get(name);
    if (api === undefined) throw new Error(`no member ${name}`);
    return api;
  }

  /** A pod of the host that runs in the member, ready on both sides. */
  run(name: string, member: string, { node = '1', ready = true, copyLabels = {}, copyNamespace = NS } = {}): void {
    const labels = { app: 'web' };
    const spec = { containers: [{ name: 'app', image: 'busybox' }] };
    const host = send(this.host, 'POST', pods, { metadata: { name, labels }, spec: { ...spec, nodeName: member } });
    const { uid = '' } = host.metadata;
    send(this.member(member), 'POST', podsOf(copyNamespace), {
      metadata: {
        name,
        labels: { ...labels, ...copyLabels, [HOST_LABEL]: 'us', [UID_LABEL]: uid },
        annotations: { [HOST_NAMESPACE_ANNOTATION]: NS, [HOST_NAME_ANNOTATION]: name },
      },
      spec: { ...spec, nodeName: `${member}-${node}` },
    });
    this.report(this.member(member), name, ready, 'Running', copyNamespace);
    this.report(this.host, name, ready);
  }

  report(api: MemoryApi, name: string, ready: boolean, phase = 'Running', namespace = NS): void {
    const conditions = [
      { type: MIRRORED_CONDITION, status: 'True' },
      { type: 'Ready', status: ready ? 'True' : 'False' },
    ];
    send(api, 'PATCH', `${podsOf(namespace)}/${name}/status`, { status: { phase, conditions } });
  }

  /** True when the member lets the pod go, which then takes its time to end. */
  evict(member: string, name: string): boolean {
    const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace: NS } };
    try {
      send(this.member(member), 'POST', `${pods}/${name}/eviction`, body);
      return true;
    } catch {
      return false;
    }
  }

  cordon(member: string, node: string, unschedulable = true): void {
    send(this.member(member), 'PATCH', `/api/v1/nodes/${member}-${node}`, { spec: { unschedulable } });
  }

  /** Budgets in the member cannot be listed or watched until the answer is called. */
  blind(member: string, fault: MemoryApi['fault'] = () => undefined): () => void {
    const api = this.member(member);
    const isOfCache = ({ method, path, query }: MemoryRequest): boolean =>
      method === 'GET' && path.endsWith('/poddisruptionbudgets') && query['fieldSelector'] === undefined;
    api.fault = (request) => (isOfCache(request) ? 'hang' : fault(request));
    this.#servers.get(api)?.cutWatches();
    return () => {
      api.fault = undefined;
      this.#servers.get(api)?.cutWatches();
    };
  }

  /** A budget of the host that asks for so many. */
  protect(name: string, minAvailable: number, more: object = {}): void {
    const spec = { minAvailable, selector: { matchLabels: { app: 'web' } }, ...more };
    send(this.host, 'POST', BUDGETS, { metadata: { name }, spec });
    this.count(this.host);
  }

  /** As a disruption controller does. */
  count(api: MemoryApi): void {
    const all = podsIn(api);
    for (const [path, object] of [...api.objects].filter(([path]) => path.startsWith(`${BUDGETS}/`))) {
      const { metadata, spec } = object as unknown as PodDisruptionBudget;
      const selector = labelSelectorOf(spec.selector ?? {});
      const covered = all.filter(
        ({ metadata, status }) => matchesLabels(selector, metadata.labels) && status?.phase !== 'Failed',
      );
      const currentHealthy = covered.filter(
        ({ metadata, status }) =>
          metadata.deletionTimestamp === undefined &&
          status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True'),
      ).length;
      const desiredHealthy = Number(spec.minAvailable);
      const disruptionsAllowed = Math.max(0, currentHealthy - desiredHealthy);
      const counts = { currentHealthy, desiredHealthy, disruptionsAllowed, expectedPods: covered.length };
      const status = { observedGeneration: metadata.generation, ...counts };
      send(api, 'PATCH', `${path}/status`, { status });
    }
  }

  /** All of them count, for as long as the test waits: returns how many evictions members would grant now. */
  allowed(): number[] {
    return [...this.members.values()].map((api) => {
      this.count(api);
      const found = [...api.objects].filter(([path]) => path.startsWith(`${BUDGETS}/`));
      return found.reduce((sum, [, object]) => {
        return sum + ((object as unknown as PodDisruptionBudget).status?.disruptionsAllowed ?? 0);
      }, 0);
    });
  }

  mirror(member: string, name = 'web'): PodDisruptionBudget | undefined {
    return this.member(member).objects.get(`${BUDGETS}/${name}`) as unknown as PodDisruptionBudget | undefined;
  }

  claims(name = 'web'): unknown {
    const budget = this.host.objects.get(`${BUDGETS}/${name}`);
    const text = budget?.metadata.annotations?.[MEMBER_EVICTIONS_ANNOTATION];
    return text === undefined ? undefined : (JSON.parse(text) as unknown);
  }

  /** What the program wrote, oldest first, as `cluster METHOD name`. */
  writes(): string[] {
    return [['host', this.host] as const, ...this.members].flatMap(([name, api]) =>
      api.seen.filter(isWrite).map(({ method, path }) => `${name} ${method} ${path.split('/').at(-1)}`),
    );
  }

  forgetWrites(): void {
    for (const api of [this.host, ...this.members.values()]) api.seen.length = 0;
  }

  /** Starts it, as after a start of the program that acts for that member. */
  start(member: string, mode: 'Mirror' | 'Ignore' = 'Mirror', settle = 100): RunningBudgets {
    const stop = new AbortController();
    const [host, client] = [this.#client(this.host), this.#client(this.member(member))];
    const hostBudgets = new HostBudgets({ host, logger });
    const hostPods = new Informer<Pod>({ client: host, resource: PODS, fieldSelector: `spec.nodeName=${member}` });
    const memberPods = new Informer<Pod>({
      client,
      resource: PODS,
      indexes: { [COPY]: ({ metadata }) => [metadata.labels?.[UID_LABEL] ?? ''] },
    });
    const nodes = new Informer<Node>({ client, resource: NODES });
    const running: RunningBudgets = {
      mode,
      reachable: true,
      budgets: new MemberBudgets({
        hostId: 'us',
        hostBudgets,
        member: { name: member, client, nodes, pods: memberPods },
        mode: () => running.mode,
        hostPods: () => hostPods.values(),
        hostPodOf: ({ metadata }) => hostPods.get(`${NS}/${metadata.annotations?.[HOST_NAME_ANNOTATION]}`),
        copyOf: (uid) => memberPods.byIndex(COPY, uid)[0],
        mayWrite: () => true,
        reachable: () => running.reachable,
        knowsMember: (name) => this.members.has(name),
        events: { record: (_subject, type, reason) => this.events.push(`${type} ${reason}`) },
        metrics: budgetMetrics(new Registry()),
        logger,
        waits: { gather: 10, settle, empty: 300 },
      }),
      stop: async () => {
        this.#running.delete(running);
        stop.abort();
        await done;
      },
    };
    const { budgets } = running;
    hostPods.on({
      added: (pod) => budgets.hostPodChanged(pod),
      updated: (pod, before) => budgets.hostPodChanged(pod, before),
      deleted: (pod) => budgets.hostPodChanged(pod),
    });
    const caches = [hostPods, memberPods, nodes];
    const work = async (): Promise<void> => {
      const following = [hostBudgets, ...caches].map(async (one) => await one.run(stop.signal));
      const synced = Promise.all(caches.map(async (one) => await one.whenSynced(stop.signal)));
      await synced.then(
        async () => await budgets.run(stop.signal),
        () => undefined,
      );
      await Promise.all(following);
    };
    const done = work();
    this.#running.add(running);
    return running;
  }

  #client(api: MemoryApi) {
    const server = this.#servers.get(api);
    if (server === undefined) throw new Error('not started');
    return api === this.host ? server.client('host') : server.client('member', this.room);
  }

  async close(): Promise<void> {
    for (const running of this.#running) await running.stop();
    for (const server of this.#servers.values()) await server.close();
  }
}

export function podsIn(api: MemoryApi): Pod[] {
  return [...api.objects].flatMap(([path, object]) => (path.startsWith(`${pods}/`) ? [object as unknown as Pod] : []));
}

function isWrite({ method, path }: MemoryRequest): boolean {
  return method !== 'GET' && path.includes('poddisruptionbudgets');
}

/** Anybody but the program: not among what is seen. */
export function send(api: MemoryApi, method: string, path: string, body: object): Pod {
  const contentType = method === 'PATCH' ? MERGE : JSON_TYPE;
  return api.handle({ method, path, query: {}, body, contentType }) as unknown as Pod;
}
