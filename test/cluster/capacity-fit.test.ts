import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Cluster, startCluster } from '../../hack/cluster.ts';
import { startKwok } from '../../hack/kwok.ts';
import { until } from '../../hack/until.ts';
import { Workspace } from '../../hack/workspace.ts';
import type { Namespace, Node, NodeSelector, Pod } from '../../src/kube/core-v1.ts';
import type { PersistentVolumeClaim } from '../../src/kube/volumes.ts';
import { fitRequestOf } from '../../src/capacity/fit-request.ts';
import { MemberCapacity } from '../../src/capacity/member-capacity.ts';
import { KubeClient } from '../../src/kube/client.ts';
import { Informer } from '../../src/kube/informer.ts';
import { LIMIT_RANGES, NODES, NAMESPACES as NAMESPACE_RESOURCE, PODS } from '../../src/kube/resource.ts';
import { staticAccess } from '../../src/kube/static-access.ts';
import { nodeProjection, podProjection } from '../../src/members/pod-projection.ts';
import {
  claimObjects,
  CLAIMS,
  HEAVY_RUNTIME,
  LIMIT_RANGE,
  NAMESPACES,
  RandomScheduling,
} from '../fixtures/random-scheduling.ts';

/** More for a long run: SPILLWAY_FIT_ROUNDS=40 SPILLWAY_FIT_SEED=7. */
const ROUNDS = Number(process.env['SPILLWAY_FIT_ROUNDS'] ?? '6');
const SEED = Number(process.env['SPILLWAY_FIT_SEED'] ?? '20261121');
const PODS_A_ROUND = 60;
const NODE_COUNT = 12;

/**
 * Asks a real kube-scheduler which nodes a pod fits: as an extender it is told them all, takes none, and so nothing is ever
 * bound and every question is asked of the same state.
 */
class Oracle {
  readonly #server: Server;
  readonly #answers = new Map<string, string[]>();

  private constructor(server: Server) {
    this.#server = server;
    server.on('request', (request, response) => {
      void bodyOf(request).then((text) => {
        const { Pod: pod, NodeNames: names } = JSON.parse(text) as { Pod: Pod; NodeNames: string[] };
        this.#answers.set(pod.metadata.name, names.toSorted());
        const failed = Object.fromEntries(names.map((name) => [name, 'only asking']));
        response.setHeader('content-type', 'application/json');
        response.end(JSON.stringify({ NodeNames: [], FailedAndUnresolvableNodes: failed, FailedNodes: {}, Error: '' }));
      });
    });
  }

  static async open(): Promise<Oracle> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return new Oracle(server);
  }

  get config(): Record<string, unknown> {
    const { port } = this.#server.address() as AddressInfo;
    const urlPrefix = `http://127.0.0.1:${String(port)}`;
    return { extenders: [{ urlPrefix, filterVerb: 'filter', nodeCacheCapable: true, httpTimeout: '10s' }] };
  }

  /** Nodes that passed, for pods the extender was asked about. */
  answer(podName: string): string[] | undefined {
    return this.#answers.get(podName);
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

let workspace: Workspace;
let oracle: Oracle;
let member: Cluster;
let client: KubeClient;
const stop = new AbortController();
let following: Promise<unknown> = Promise.resolve();
const capacity = new MemberCapacity({ hostId: 'nobody' });
const known = { nodes: new Map<string, Node>() };

beforeAll(async () => {
  workspace = Workspace.create();
  oracle = await Oracle.open();
  member = await startCluster(workspace, { name: 'member', schedulerConfig: oracle.config });
  await startKwok(member, { nodes: NODE_COUNT, prefix: 'n' });
  await member.apply([
    ...NAMESPACES.map((name) => ({
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name, labels: name === 'one' ? {} : { team: 'red' } },
    })),
    {
      apiVersion: 'node.k8s.io/v1',
      kind: 'RuntimeClass',
      metadata: { name: HEAVY_RUNTIME.name },
      handler: 'runc',
      overhead: { podFixed: HEAVY_RUNTIME.overhead },
    },
    LIMIT_RANGE,
    ...claimObjects(),
  ]);
  await until('all claims are bound', async () => {
    const list = (await member.api.call('GET', '/api/v1/persistentvolumeclaims')) as { items: PersistentVolumeClaim[] };
    const bound = list.items.filter(({ status }) => status?.phase === 'Bound');
    return bound.length === NAMESPACES.length * CLAIMS.size;
  });
  for (const namespace of NAMESPACES) {
    await until(`ServiceAccount default of ${namespace}`, async () => {
      await member.api.call('GET', `/api/v1/namespaces/${namespace}/serviceaccounts/default`);
      return true;
    });
  }
  const { server, ca, cert, key } = member.adminAccess;
  client = new KubeClient({ cluster: 'member', ...staticAccess({ endpoint: { server, ca }, cert, key }) });
  const nodes = new Informer<Node>({ client, resource: NODES, transform: nodeProjection() });
  const pods = new Informer<Pod>({ client, resource: PODS, transform: podProjection('nobody') });
  const namespaces = new Informer<Namespace>({ client, resource: NAMESPACE_RESOURCE });
  const limitRanges = new Informer({ client, resource: LIMIT_RANGES });
  nodes.on(capacity.nodeHandler);
  nodes.on({
    added: (node) => void known.nodes.set(node.metadata.name, node),
    updated: (node) => void known.nodes.set(node.metadata.name, node),
  });
  pods.on(capacity.podHandler);
  namespaces.on(capacity.namespaceHandler);
  limitRanges.on(capacity.limitRangeHandler);
  following = Promise.all([nodes, pods, namespaces, limitRanges].map((informer) => informer.run(stop.signal)));
  await Promise.all([nodes, pods, namespaces, limitRanges].map((one) => one.whenSynced(AbortSignal.timeout(20_000))));
});

afterAll(async () => {
  stop.abort();
  await following;
  await client?.close();
  await oracle?.close();
  await workspace?.close();
});

async function inParallel<T>(items: readonly T[], work: (item: T) => Promise<unknown>): Promise<void> {
  const queue = items.values();
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      for (const item of queue) await work(item);
    }),
  );
}

/** Where the volumes of the pod's claims are. */
function placesOf({ spec: { volumes = [] } }: Pod): NodeSelector[] {
  return volumes.flatMap(({ persistentVolumeClaim }) => CLAIMS.get(persistentVolumeClaim?.claimName ?? '') ?? []);
}

const podPath = ({ metadata }: Pod): string => `/api/v1/namespaces/${metadata.namespace ?? ''}/pods`;

/** Creates pods, and returns those that the API server took: not everything that is made up at random is valid. */
async function create(pods: readonly Pod[]): Promise<Pod[]> {
  const refused = new Set<Pod>();
  await inParallel(pods, async (pod) => {
    try {
      await member.api.call('POST', podPath(pod), pod);
    } catch (error) {
      if (!(error instanceof Error && error.message.includes('HTTP 422'))) throw error;
      console.info(error.message.slice(0, 300));
      refused.add(pod);
    }
  });
  return pods.filter((pod) => !refused.has(pod));
}

async function remove(pods: readonly Pod[]): Promise<void> {
  await inParallel(pods, (pod) =>
    member.api.call('DELETE', `${podPath(pod)}/${pod.metadata.name}`, { gracePeriodSeconds: 0 }),
  );
}

/** Gives each node new labels, taints and resources, and waits until both sides know. */
async function changeNodes(random: RandomScheduling, names: readonly string[], round: number): Promise<void> {
  await inParallel(names, async (name) => {
    const { labels, taints, unschedulable, allocatable } = random.nodeParts();
    const keep = { gen: null, disk: null, rack: null, 'topology.kubernetes.io/zone': null };
    const metadata = { labels: { ...keep, ...labels, round: String(round) } };
    await member.api.call('PATCH', `/api/v1/nodes/${name}`, { metadata, spec: { taints, unschedulable } });
    await member.api.call('PATCH', `/api/v1/nodes/${name}/status`, { status: { allocatable, capacity: allocatable } });
  });
  await until('our caches have the nodes of this round', () =>
    names.every((name) => known.nodes.get(name)?.metadata.labels?.['round'] === String(round)),
  );
}

/** What the scheduler says of each pod: the nodes that passed. */
async function askScheduler(pods: readonly Pod[]): Promise<Map<string, string[]>> {
  const verdicts = new Map<string, string[]>();
  await until(
    'the scheduler has looked at every pod',
    async () => {
      for (const namespace of NAMESPACES) {
        const list = (await member.api.call('GET', `/api/v1/namespaces/${namespace}/pods`)) as { items: Pod[] };
        for (const { metadata, status } of list.items) {
          const tried = status?.conditions?.find(({ type }) => type === 'PodScheduled');
          if (tried?.status === 'False') verdicts.set(metadata.name, oracle.answer(metadata.name) ?? []);
        }
      }
      return pods.every(({ metadata }) => verdicts.has(metadata.name));
    },
    { timeoutMs: 60_000, intervalMs: 200 },
  );
  return verdicts;
}

describe('which nodes can take a pod', () => {
  it(
    `is what kube-scheduler says, for ${String(ROUNDS * PODS_A_ROUND)} random pods (seed ${String(SEED)})`,
    async () => {
      const names = Array.from({ length: NODE_COUNT }, (_, index) => `n-${String(index)}`);
      const wrong: unknown[] = [];
      let cases = 0;
      let fitting = 0;
      for (let round = 0; round < ROUNDS; round++) {
        const random = new RandomScheduling(SEED + round);
        await changeNodes(random, names, round);
        const count = random.number(10, 45);
        const bound = await create(
          Array.from({ length: count }, (_, index) =>
            random.boundPod(`bound-${String(round)}-${String(index)}`, random.pick(names)),
          ),
        );
        await until('our caches have the pods of this round', () => capacity.size.pods === bound.length);
        // Everything the scheduler sees of these pods it has seen before: it reads pods in the order they were made.
        const all = Array.from({ length: PODS_A_ROUND }, (_, index) =>
          random.candidate(`asks-${String(round)}-${String(index)}`, names),
        );
        await untilSchedulerKnows(round, names);
        const ours = new Map(
          all.map((pod) => [
            pod.metadata.name,
            capacity.fittingNodes(fitRequestOf(pod, 'any', placesOf(pod))).toSorted(),
          ]),
        );
        const candidates = await create(all);
        const theirs = await askScheduler(candidates);
        for (const pod of candidates) {
          const [mine, stock] = [ours.get(pod.metadata.name) ?? [], theirs.get(pod.metadata.name) ?? []];
          cases += 1;
          if (stock.length > 0) fitting += 1;
          if (mine.join() !== stock.join()) wrong.push({ round, mine, stock, pod });
        }
        await remove([...candidates, ...bound]);
        await until('the pods of this round are gone', () => capacity.size.pods === 0);
      }
      console.info(`${String(cases)} pods, of which ${String(fitting)} fit somewhere; ${String(wrong.length)} differ`);
      expect(wrong).toEqual([]);
      expect(cases).toBeGreaterThan(ROUNDS * PODS_A_ROUND * 0.98);
      expect(fitting).toBeGreaterThan(cases / 5);
      expect(fitting).toBeLessThan((cases * 4) / 5);
    },
    60_000 + ROUNDS * 30_000,
  );
});

/** Nodes come to the scheduler by another watch than pods, so it is asked until it has those of this round. */
async function untilSchedulerKnows(round: number, names: readonly string[]): Promise<void> {
  let tries = 0;
  await until(
    'the scheduler has the nodes of this round',
    async () => {
      const name = `probe-${String(round)}-${String(tries++)}`;
      // One that may go anywhere as soon as the labels of this round are known.
      const probe: Pod = {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name, namespace: 'one', labels: {} },
        spec: {
          containers: [{ name: 'c', image: 'registry.example/app:1' }],
          nodeSelector: { round: String(round) },
          tolerations: [{ operator: 'Exists' }],
        },
      };
      await create([probe]);
      const verdict = (await askScheduler([probe])).get(name);
      await remove([probe]);
      const expected = capacity.fittingNodes(fitRequestOf(probe, 'any')).toSorted();
      return verdict !== undefined && verdict.join() === expected.join() && names.length > 0;
    },
    { timeoutMs: 60_000, intervalMs: 300 },
  );
}
