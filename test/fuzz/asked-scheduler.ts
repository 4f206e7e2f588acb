import { pino } from 'pino';
import { Registry } from 'prom-client';
import { Agent, request } from 'undici';
import { createAuthority, issueClient, issueServing } from '../../hack/pki.ts';
import { until } from '../../hack/until.ts';
import { scoringConfig } from '../../src/api/scoring.ts';
import { Scheduler } from '../../src/scheduler/scheduler.ts';
import { type SchedulerMetrics, schedulerMetrics } from '../../src/scheduler/scheduler-metrics.ts';
import { countedRoom } from '../fixtures/counted-room.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { serveMemoryApi } from '../fixtures/memory-api-server.ts';

export const HOST_NODES = ['local-1', 'local-2'];
/** Virtual nodes, with their members. */
export const VIRTUAL: Readonly<Record<string, string>> = { east: 'east', 'east-2': 'east', west: 'west' };
/** ReplicaSets of Deployments in namespace shop: a policy has the pods of the second in member west, and nowhere else. */
export const SETS = { web: 'set-of-web', kept: 'set-of-kept' };
/** Pods of low priority behind east. */
export const LOW = ['low-1', 'low-2'];

const SPILLWAY = '/apis/spillway.dev/v1alpha1';

function hostInMemory(): MemoryApi {
  const api = new MemoryApi();
  const put = (path: string, kind: string, apiVersion: string, object: object): void => {
    api.put(path, { apiVersion, kind, ...object });
  };
  put('/api/v1/namespaces/shop', 'Namespace', 'v1', {
    metadata: { name: 'shop', labels: { 'spillway.dev/burst': 'enabled' } },
  });
  for (const name of new Set(Object.values(VIRTUAL))) {
    const ready = { type: 'Ready', status: 'True', reason: 'Ready', message: '' };
    put(`${SPILLWAY}/memberclusters/${name}`, 'MemberCluster', 'spillway.dev/v1alpha1', {
      metadata: { name },
      spec: { credentials: { secretRef: { namespace: 'spillway-system', name } } },
      status: { conditions: [{ ...ready, lastTransitionTime: '2026-01-01T00:00:00Z' }] },
    });
  }
  for (const [name, member] of [...HOST_NODES.map((node) => [node, ''] as const), ...Object.entries(VIRTUAL)]) {
    const labels = { 'kubernetes.io/hostname': name, ...(member === '' ? {} : { 'spillway.dev/member': member }) };
    const taints = [{ key: 'spillway.dev/virtual-node', effect: 'NoSchedule' }];
    put(`/api/v1/nodes/${name}`, 'Node', 'v1', { metadata: { name, labels }, spec: member === '' ? {} : { taints } });
  }
  for (const [name, set] of Object.entries(SETS)) {
    const above = { apiVersion: 'apps/v1', kind: 'Deployment', name, uid: `uid-of-${name}`, controller: true };
    const apps = '/apis/apps/v1/namespaces/shop';
    put(`${apps}/deployments/${name}`, 'Deployment', 'apps/v1', {
      metadata: { name, namespace: 'shop', uid: above.uid },
      spec: { replicas: 6 },
    });
    put(`${apps}/replicasets/${name}-1`, 'ReplicaSet', 'apps/v1', {
      metadata: { name: `${name}-1`, namespace: 'shop', uid: set, ownerReferences: [above] },
      spec: { replicas: 6 },
    });
  }
  put(`${SPILLWAY}/namespaces/shop/placementpolicies/residency`, 'PlacementPolicy', 'spillway.dev/v1alpha1', {
    metadata: { name: 'residency', namespace: 'shop', uid: 'residency' },
    spec: {
      resourceSelectors: [{ apiVersion: 'apps/v1', kind: 'Deployment', name: 'kept' }],
      placement: { clusterAffinity: { clusterNames: ['west'] } },
    },
  });
  for (const name of LOW)
    put(`/api/v1/namespaces/shop/pods/${name}`, 'Pod', 'v1', {
      metadata: { name, namespace: 'shop', uid: name },
      spec: { nodeName: 'east', priority: -10, containers: [{ name: 'main' }] },
      status: { phase: 'Running' },
    });
  return api;
}

/** The scheduler's room of one process with its port, and a host in memory. */
export class AskedScheduler {
  /** How many more pods fit behind each virtual node. */
  readonly slots = new Map<string, number>();
  readonly #ends: (() => Promise<unknown>)[] = [];
  readonly #callers = new Map<string, Agent>();
  readonly #metrics: SchedulerMetrics = schedulerMetrics(new Registry());
  #port = 0;

  static async start(): Promise<AskedScheduler> {
    const asked = new AskedScheduler();
    const server = await serveMemoryApi(hostInMemory());
    const authority = await createAuthority('ours');
    const serving = await issueServing(authority, 'extender', ['127.0.0.1']);
    const rooms = new Map(
      Object.keys(VIRTUAL).map((name) => [
        name,
        countedRoom(
          name,
          () => asked.slots.get(name) ?? 0,
          new Map(),
          (_request, candidates) =>
            candidates.length === 0 ? undefined : { pods: candidates.slice(0, 1), violations: 0 },
        ),
      ]),
    );
    const write = (line: string): void => {
      const { msg, port } = JSON.parse(line) as { msg: string; port?: number };
      if (msg === 'answering schedulers') asked.#port = port ?? 0;
    };
    const scheduler = new Scheduler({
      host: server.client('host'),
      namespace: 'spillway-system',
      capacityOf: (node) => rooms.get(node),
      budgets: { synced: true, covering: () => [] },
      scoring: scoringConfig.parse({}),
      lease: { run: async () => await Promise.resolve() },
      server: {
        address: '127.0.0.1',
        port: 0,
        certificate: () => serving,
        clientCa: () => authority.cert,
        clientNames: ['system:kube-scheduler'],
      },
      graceMs: 0,
      events: { record: () => undefined },
      metrics: asked.#metrics,
      logger: pino({ level: 'info' }, { write }),
    });
    const stop = new AbortController();
    const running = scheduler.run(stop.signal);
    for (const name of ['system:kube-scheduler', 'somebody']) {
      const agent = new Agent({ connect: { ca: authority.cert, ...(await issueClient(authority, name)) } });
      asked.#callers.set(name, agent);
      asked.#ends.push(async () => await agent.destroy());
    }
    asked.#ends.push(async () => {
      stop.abort();
      await running;
      await server.close();
    });
    await until('it can answer', () => scheduler.problem === undefined && asked.#port > 0, { intervalMs: 5 });
    return asked;
  }

  /** @throws where the answer is not the JSON that a scheduler reads. */
  async ask(who: string, verb: string, body: string): Promise<unknown> {
    const { statusCode, body: answer } = await request(`https://127.0.0.1:${this.#port}/${verb}`, {
      method: 'POST',
      dispatcher: this.#callers.get(who) ?? new Agent(),
      headers: { 'content-type': 'application/json' },
      body,
    });
    const text = await answer.text();
    if (statusCode !== 200) throw new Error(`status ${statusCode}: ${text}`);
    return JSON.parse(text);
  }

  /** How many questions came to that. */
  async times(result: string): Promise<number> {
    const { values } = await this.#metrics.requests.get();
    return values.filter(({ labels }) => labels.result === result).reduce((sum, { value }) => sum + value, 0);
  }

  async close(): Promise<void> {
    for (const end of this.#ends) await end();
  }
}
