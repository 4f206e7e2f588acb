import { pino } from 'pino';
import { Registry } from 'prom-client';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { until } from '../../hack/until.ts';
import { scoringConfig } from '../../src/api/scoring.ts';
import type { Pod } from '../../src/api/wire.ts';
import type { VirtualNodeCapacity } from '../../src/capacity/virtual-node-capacity.ts';
import { Extender } from '../../src/scheduler/extender.ts';
import { HostView } from '../../src/scheduler/host-view.ts';
import { PlacementQuestions } from '../../src/scheduler/placement-questions.ts';
import { Reservations } from '../../src/scheduler/reservations.ts';
import { RefusalWatch } from '../../src/scheduler/refusal-watch.ts';
import { schedulerMetrics } from '../../src/scheduler/scheduler-metrics.ts';
import { WorkloadBook } from '../../src/scheduler/workload-book.ts';
import { countedRoom } from '../fixtures/counted-room.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { serveMemoryApi } from '../fixtures/memory-api-server.ts';

/** A host in memory with members east and west, and Deployment shop/web; what fits where is said by `slots`. */

let api: MemoryApi;
let view: HostView;
let extender: Extender;
let workloads: WorkloadBook;
let now: number;
const slots = new Map<string, number>();
const reserved = new Map<string, string>();
const problems: string[] = [];
const signals = new Map<string, Map<string, number>>();
let close: () => Promise<void>;

const NAMES = ['local-1', 'local-2', 'east', 'west'];
const TOLERATION = { key: 'spillway.dev/virtual-node', operator: 'Exists' as const };

function capacityOf(name: string): VirtualNodeCapacity | undefined {
  // Of the host's own nodes nothing is known unless a test says so.
  if (name === 'local' && !slots.has(name)) return undefined;
  return countedRoom(name, () => slots.get(name) ?? 0, reserved);
}

function make(path: string, object: object): Record<string, unknown> {
  return api.handle({ method: 'POST', path, query: {}, body: object, contentType: 'application/json' });
}

function member(name: string, spec: object = {}): object {
  return {
    apiVersion: 'spillway.dev/v1alpha1',
    kind: 'MemberCluster',
    metadata: { name },
    spec: { credentials: { secretRef: { namespace: 'spillway-system', name } }, ...spec },
    status: {
      conditions: [
        { type: 'Ready', status: 'True', reason: 'Ready', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' },
      ],
    },
  };
}

function node(name: string, memberName?: string): object {
  const labels = memberName === undefined ? {} : { 'spillway.dev/member': memberName, type: 'virtual-kubelet' };
  const taints = [{ key: 'spillway.dev/virtual-node', effect: 'NoSchedule' }];
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels: { ...labels, 'kubernetes.io/hostname': name } },
    spec: memberName === undefined ? {} : { taints },
  };
}

let setUid: string;

function pod(name: string, more: { spec?: object; metadata?: object } = {}): Pod {
  const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-1', uid: setUid, controller: true };
  return {
    metadata: {
      name,
      namespace: 'shop',
      uid: `uid-of-${name}`,
      creationTimestamp: new Date(now).toISOString(),
      labels: { 'pod-template-hash': 'one' },
      ownerReferences: [owner],
      ...more.metadata,
    },
    spec: { containers: [{ name: 'main' }], tolerations: [TOLERATION], ...more.spec },
  };
}

const filter = async (one: Pod, nodeNames = NAMES) => await extender.filter({ pod: one, nodeNames });

beforeEach(async () => {
  now = Date.parse('2026-01-01T00:00:00Z');
  api = new MemoryApi();
  slots.clear();
  reserved.clear();
  problems.length = 0;
  make('/api/v1/namespaces', {
    kind: 'Namespace',
    metadata: { name: 'shop', labels: { 'spillway.dev/burst': 'enabled' } },
  });
  for (const name of ['east', 'west']) {
    make('/apis/spillway.dev/v1alpha1/memberclusters', member(name));
    make('/api/v1/nodes', node(name, name));
    slots.set(name, 10);
  }
  for (const name of ['local-1', 'local-2']) make('/api/v1/nodes', node(name));
  const apps = '/apis/apps/v1/namespaces/shop';
  const web = make(`${apps}/deployments`, {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', namespace: 'shop' },
    spec: { replicas: 6 },
  }) as unknown as Pod;
  const set = make(`${apps}/replicasets`, {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: {
      name: 'web-1',
      namespace: 'shop',
      labels: { 'pod-template-hash': 'one' },
      ownerReferences: [
        { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid: web.metadata.uid, controller: true },
      ],
    },
    spec: { replicas: 6 },
  }) as unknown as Pod;
  setUid = set.metadata.uid ?? '';
  const server = await serveMemoryApi(api);
  const host = server.client('host');
  const logger = pino({ level: 'silent' });
  const clock = (): number => now;
  const stop = new AbortController();
  view = new HostView({ host, logger, clock });
  workloads = new WorkloadBook({ stored: () => undefined, clock });
  const questions = new PlacementQuestions({
    view,
    workloads,
    capacityOf,
    signals: () => signals,
    scoring: scoringConfig.parse({}),
    clock,
  });
  extender = new Extender({
    view,
    workloads,
    questions,
    reservations: new Reservations(capacityOf, clock),
    waiting: { answered: () => undefined, lookAgainAt: () => undefined },
    annotationProblem: (_chain, problem) => problems.push(problem),
    metrics: schedulerMetrics(new Registry()),
    clock,
  });
  const running = [view.run(stop.signal), new RefusalWatch({ view, workloads, logger, clock }).run(stop.signal)];
  await until('the caches are complete', () => view.hasSynced, { intervalMs: 5 });
  close = async () => {
    stop.abort();
    await Promise.all(running);
    await server.close();
  };
});
afterEach(async () => {
  await close();
});

describe('local first', () => {
  test('while nodes of the host passed, they are the answer; else one member, whose room is set aside', async () => {
    expect(await filter(pod('a'))).toEqual({
      NodeNames: ['local-1', 'local-2'],
      FailedAndUnresolvableNodes: {},
      Error: '',
    });
    expect(reserved.size).toBe(0);
    slots.set('west', 20);
    expect((await filter(pod('b'), ['east', 'west'])).NodeNames).toEqual(['west']);
    expect(reserved).toEqual(new Map([['uid-of-b', 'west']]));
    // The same pod again: what was set aside for it is free for it.
    slots.set('west', 0);
    expect((await filter(pod('b'), ['east', 'west'])).NodeNames).toEqual(['east']);
    expect(reserved).toEqual(new Map([['uid-of-b', 'east']]));
    now += 60_000;
    await filter(pod('c'), ['east', 'west']);
    expect(reserved).toEqual(new Map([['uid-of-c', 'east']]));
  });

  test('what was set aside is free again when its time is over, also while nothing else fits', async () => {
    expect((await filter(pod('a'), ['east'])).NodeNames).toEqual(['east']);
    slots.clear();
    now += 9_000;
    expect((await filter(pod('b'), ['east'])).NodeNames).toEqual([]);
    expect(reserved).toEqual(new Map([['uid-of-a', 'east']]));
    now += 1_000;
    await filter(pod('b'), ['east']);
    expect(reserved.size).toBe(0);
  });

  test('a bound pod keeps what was set aside, as its node may hear of it later; one that ended does not', async () => {
    const pods = '/api/v1/namespaces/shop/pods';
    const [a, b] = ['a', 'b'].map(
      (name) => make(pods, { apiVersion: 'v1', kind: 'Pod', ...pod(name) }) as unknown as Pod,
    );
    for (const one of [a, b]) if (one !== undefined) await filter(one, ['east']);
    expect([...reserved.keys()]).toEqual([a?.metadata.uid, b?.metadata.uid]);
    api.edit(`${pods}/a`, { spec: { nodeName: 'east' } });
    api.edit(`${pods}/b`, { spec: { nodeName: 'east' }, status: { phase: 'Succeeded' } });
    await until('both were seen', () => !reserved.has(b?.metadata.uid ?? ''), { intervalMs: 5 });
    expect([...reserved.keys()]).toEqual([a?.metadata.uid]);
  });

  test('a pod that fits nowhere is told why, cluster by cluster, and none of it invites preemption', async () => {
    slots.clear();
    const answer = await filter(pod('a'), ['east', 'west']);
    const words = 'no node has 4 cpu free (largest free slot 2 cpu)';
    expect(answer).toEqual({
      NodeNames: [],
      FailedAndUnresolvableNodes: {
        east: `member east: 3 nodes: insufficient cpu (${words})`,
        west: `member west: 3 nodes: insufficient cpu (${words})`,
      },
      Error: '',
    });
  });

  test('a pod that comes before its ReplicaSet is decided about with it', async () => {
    const early = pod('a', {
      metadata: {
        ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'late', uid: `uid-99`, controller: true }],
      },
    });
    const answer = filter(early, ['east']);
    const labels = { 'spillway.dev/burst': 'disabled' };
    const late = make('/apis/apps/v1/namespaces/shop/replicasets', {
      apiVersion: 'apps/v1',
      kind: 'ReplicaSet',
      metadata: { name: 'late', namespace: 'shop', labels },
    }) as unknown as Pod;
    const own = {
      ...early,
      metadata: {
        ...early.metadata,
        ownerReferences: [{ ...early.metadata.ownerReferences?.[0], uid: late.metadata.uid }],
      },
    };
    expect((await answer).NodeNames).toEqual(['east']);
    expect(await filter(own as Pod, ['east'])).toMatchObject({
      NodeNames: [],
      FailedAndUnresolvableNodes: { east: 'member east: nothing says that the pod may leave the host' },
    });
  });
});

describe('pods that carry the mark are asked about once more', () => {
  const marked = (name: string): Pod =>
    pod(name, { spec: { containers: [{ name: 'main', resources: { requests: { 'spillway.dev/extender': '0' } } }] } });
  const confirm = (one: Pod, nodeNames = NAMES): readonly string[] =>
    extender.confirm({ pod: one, nodeNames }).NodeNames;

  test('what was decided stands, even where the last room was taken by it', async () => {
    expect((await filter(marked('a'), ['east', 'west'])).NodeNames).toEqual(['east']);
    slots.clear();
    expect(confirm(marked('a'), ['east'])).toEqual(['east']);
    // The scheduler did not wait for the answer, and asks about nodes that it does not contain.
    expect(confirm(marked('a'), ['west'])).toEqual([]);
    now += 10_000;
    expect(confirm(marked('a'), ['east'])).toEqual([]);
  });

  test('where nothing was decided, virtual nodes pass that the pod fits, and nothing is set aside', () => {
    slots.set('west', 0);
    expect(confirm(marked('a'))).toEqual(['local-1', 'local-2', 'east']);
    expect(extender.confirm({ pod: marked('a'), nodeNames: ['west'] }).FailedAndUnresolvableNodes).toEqual({
      west: expect.stringMatching(/^member west: 3 nodes: insufficient cpu/) as string,
    });
    expect(reserved.size).toBe(0);
  });
});

describe('a virtual node that is not ready', () => {
  test.each(['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'])(
    'keeps the seats of its member: the pods that are to go there wait (%s)',
    async (key) => {
      const clusterAffinity = { clusterNames: ['east', 'west'] };
      place({ clusterAffinity, replicaScheduling: {} });
      await until('the policy is known', () => view.policies.get('shop/p') !== undefined, { intervalMs: 5 });
      const taints = [
        { key: 'spillway.dev/virtual-node', effect: 'NoSchedule' },
        { key, effect: 'NoSchedule' },
      ];
      api.edit('/api/v1/nodes/west', { spec: { taints } });
      const isSeen = (): boolean => view.nodes.nodes.get('west')?.spec?.taints?.length === 2;
      await until('the taint is known', isSeen, { intervalMs: 5 });
      const seats = async (name: string, nodes: string[]): Promise<string> => {
        const { NodeNames, FailedAndUnresolvableNodes } = await filter(pod(name), nodes);
        return NodeNames[0] ?? Object.values(FailedAndUnresolvableNodes).join();
      };
      for (const name of ['a', 'b', 'c']) expect(await seats(name, ['east'])).toBe('east');
      expect(await seats('d', ['east'])).toMatch(/^member east: it has its share of 6 replicas \(3 of 3\)/);
      for (const name of ['d', 'e', 'f']) expect(await seats(name, ['east', 'west'])).toBe('west');
    },
  );
});

describe('pods without rules', () => {
  const plain = (name: string, spec: object): Pod => pod(name, { spec, metadata: { namespace: 'other' } });

  test('stay unless they ask for a virtual node, and go only where they fit', async () => {
    expect((await filter(plain('a', { tolerations: [{ operator: 'Exists' }] }))).NodeNames).toEqual([
      'local-1',
      'local-2',
    ]);
    expect((await filter(plain('b', {}))).NodeNames).toEqual(NAMES);
    slots.set('east', 0);
    expect((await filter(plain('c', {}))).NodeNames).toEqual(['local-1', 'local-2', 'west']);
    const asking = { tolerations: [{ operator: 'Exists' }], nodeSelector: { 'kubernetes.io/hostname': 'west' } };
    expect((await filter(plain('d', asking), ['west'])).NodeNames).toEqual(['west']);
  });

  test('of a DaemonSet are passed through', async () => {
    const owner = { apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'x', uid: 'gone', controller: true };
    slots.clear();
    expect((await filter(pod('a', { metadata: { ownerReferences: [owner] } }), ['east'])).NodeNames).toEqual(['east']);
  });
});

function place(placement: object): void {
  make('/apis/spillway.dev/v1alpha1/namespaces/shop/placementpolicies', {
    apiVersion: 'spillway.dev/v1alpha1',
    kind: 'PlacementPolicy',
    metadata: { name: 'p', namespace: 'shop', generation: 1 },
    spec: { resourceSelectors: [{ apiVersion: 'apps/v1', kind: 'Deployment' }], placement },
  });
}

async function seen(what: string, question: () => boolean): Promise<void> {
  await until(what, question, { intervalMs: 5 });
}

describe('a policy', () => {
  test('divides pods that come one right after the other, before any of them is bound', async () => {
    const rule = (name: string, weight: number) => ({ targetCluster: { clusterNames: [name] }, weight });
    place({
      replicaScheduling: {
        weightPreference: { staticWeightList: [rule('local', 1), rule('east', 2), rule('west', 3)] },
      },
    });
    await seen('the policy is known', () => [...view.policies.values()].length === 1);
    const counts: Record<string, number> = {};
    for (let index = 0; index < 6; index += 1) {
      const { NodeNames } = await filter(pod(`p${index}`));
      const where = NodeNames[0]?.startsWith('local') === true ? 'local' : (NodeNames[0] ?? 'none');
      counts[where] = (counts[where] ?? 0) + 1;
    }
    expect(counts).toEqual({ local: 1, east: 2, west: 3 });
  });

  test('divides by room with the nodes of the host among the clusters, and sets room aside there too', async () => {
    place({ replicaScheduling: { weightPreference: { dynamicWeight: 'AvailableReplicas' } } });
    await seen('the policy is known', () => [...view.policies.values()].length === 1);
    slots.set('local', 2).set('east', 4).delete('west');
    const counts: Record<string, number> = {};
    for (let index = 0; index < 6; index += 1) {
      const one = pod(`p${index}`);
      const { NodeNames } = await filter(one);
      const where = NodeNames[0]?.startsWith('local') === true ? 'local' : (NodeNames[0] ?? 'none');
      expect(reserved.get(one.metadata.uid ?? '')).toBe(where);
      counts[where] = (counts[where] ?? 0) + 1;
    }
    expect(counts).toEqual({ local: 2, east: 4 });
  });

  test('what was set aside on the host ends when the pod is bound there', async () => {
    place({ replicaScheduling: {} });
    await seen('the policy is known', () => [...view.policies.values()].length === 1);
    slots.set('local', 2);
    const pods = '/api/v1/namespaces/shop/pods';
    const one = make(pods, { apiVersion: 'v1', kind: 'Pod', ...pod('a') }) as unknown as Pod;
    expect((await filter(one, ['local-1'])).NodeNames).toEqual(['local-1']);
    expect(reserved.get(one.metadata.uid ?? '')).toBe('local');
    api.edit(`${pods}/a`, { spec: { nodeName: 'local-1' } });
    await seen('it was seen there', () => !reserved.has(one.metadata.uid ?? ''));
  });

  test('a node selector of the pod narrows it, and the shares go to what is left', async () => {
    place({ replicaScheduling: {} });
    await seen('the policy is known', () => [...view.policies.values()].length === 1);
    const spec = { nodeSelector: { 'kubernetes.io/hostname': 'east' } };
    for (let index = 0; index < 6; index += 1) {
      expect((await filter(pod(`p${index}`, { spec }), ['east'])).NodeNames).toEqual(['east']);
    }
  });

  test('chooses clusters by their labels as they are now', async () => {
    place({ clusterAffinity: { labelSelector: { matchLabels: { tier: 'gold' } } } });
    await seen('the policy is known', () => [...view.policies.values()].length === 1);
    expect((await filter(pod('a'))).NodeNames).toEqual([]);
    // No edit of the spec, so no new generation.
    api.edit('/apis/spillway.dev/v1alpha1/memberclusters/west', { metadata: { labels: { tier: 'gold' } } });
    await seen('the label is known', () => view.nodes.member('west')?.metadata.labels !== undefined);
    expect((await filter(pod('a'))).NodeNames).toEqual(['west']);
    api.edit('/apis/spillway.dev/v1alpha1/memberclusters/west', { metadata: { labels: { tier: null } } });
    await seen('it is gone', () => view.nodes.member('west')?.metadata.labels?.['tier'] === undefined);
    expect((await filter(pod('b'))).NodeNames).toEqual([]);
  });

  test('a refusal by a member counts for the pods that follow, until its time is over', async () => {
    place({
      clusterAffinity: { clusterNames: ['east'], overflowAffinities: [{ clusterNames: ['west'] }] },
      avoidFor: '60s',
    });
    await seen('the policy is known', () => [...view.policies.values()].length === 1);
    expect((await filter(pod('a'))).NodeNames).toEqual(['east']);
    const refused = pod('a', { spec: { nodeName: 'east' } });
    make('/api/v1/namespaces/shop/pods', {
      apiVersion: 'v1',
      kind: 'Pod',
      ...refused,
      status: {
        phase: 'Pending',
        conditions: [
          {
            type: 'spillway.dev/Mirrored',
            status: 'False',
            reason: 'MemberQuotaExceeded',
            message: 'exceeded quota: pods=10',
            lastTransitionTime: new Date(now).toISOString(),
          },
        ],
      },
    });
    const deployment = view.owners.chainOf(refused)[2];
    if (deployment === undefined) throw new Error('no Deployment');
    await seen('the refusal is noted', () => workloads.avoided(deployment).length === 1);
    expect((await filter(pod('b'))).NodeNames).toEqual(['west']);
    now += 61_000;
    expect((await filter(pod('c'))).NodeNames).toEqual(['east']);
  });
});

test('annotations of Federation v1 that cannot be read are told about', async () => {
  api.edit('/apis/apps/v1/namespaces/shop/deployments/web', {
    metadata: { annotations: { 'federation.kubernetes.io/deployment-preferences': '{' } },
  });
  await seen('the annotation is known', () => view.owners.chainOf(pod('a'))[2]?.metadata.annotations !== undefined);
  await filter(pod('a'));
  expect(problems[0]).toMatch(/federation annotations of Deployment web are ignored/);
});

test('of several virtual nodes those of the better member come first, and real nodes before them', async () => {
  slots.set('east', 10);
  slots.set('west', 5);
  expect(extender.prioritize({ pod: pod('a'), nodeNames: ['local-1', 'east', 'west'] })).toEqual([
    { Host: 'local-1', Score: 10 },
    { Host: 'east', Score: 9 },
    { Host: 'west', Score: 8 },
  ]);
  // By the configured weights room counts more than what is said of the two; by those of a policy it does not.
  signals.set('green', new Map([['west', 100]]));
  const asked = { pod: pod('a'), nodeNames: ['east', 'west'] };
  expect(extender.prioritize(asked).map(({ Score }) => Score)).toEqual([9, 8]);
  make('/apis/spillway.dev/v1alpha1/namespaces/shop/placementpolicies', {
    apiVersion: 'spillway.dev/v1alpha1',
    kind: 'PlacementPolicy',
    metadata: { name: 'green', namespace: 'shop' },
    spec: {
      resourceSelectors: [{ apiVersion: 'apps/v1', kind: 'Deployment' }],
      placement: { scoreWeights: { signals: [{ name: 'green', weight: 100 }] } },
    },
  });
  await seen('the policy is known', () => view.policies.get('shop/green') !== undefined);
  expect(extender.prioritize(asked).map(({ Score }) => Score)).toEqual([8, 9]);
});
