import { pino } from 'pino';
import { Registry } from 'prom-client';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { until } from '../../hack/until.ts';
import { scoringConfig } from '../../src/api/scoring.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import type { Candidate, Victims } from '../../src/capacity/victims.ts';
import type { VirtualNodeCapacity } from '../../src/capacity/virtual-node-capacity.ts';
import { Extender } from '../../src/scheduler/extender.ts';
import { GangHolds, type PlaceKeeper } from '../../src/scheduler/gangs/gang-holds.ts';
import { GangPlacer } from '../../src/scheduler/gangs/gang-placer.ts';
import { HostView } from '../../src/scheduler/host-view.ts';
import { Nominees } from '../../src/scheduler/nominees.ts';
import { Preemption } from '../../src/scheduler/preemption.ts';
import { PlacementQuestions } from '../../src/scheduler/placement-questions.ts';
import { HeldRooms } from '../../src/scheduler/held-rooms.ts';
import { RefusalWatch } from '../../src/scheduler/refusal-watch.ts';
import { schedulerMetrics } from '../../src/scheduler/scheduler-metrics.ts';
import type { FilterVerb } from '../../src/scheduler/second-question.ts';
import { workloadOf } from '../../src/placement/owner-chain.ts';
import { WorkloadState } from '../../src/scheduler/workload-state.ts';
import { countedRoom } from '../fixtures/counted-room.ts';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { serveMemoryApi } from '../fixtures/memory-api-server.ts';

/** A host in memory with members east and west, and Deployment shop/web; what fits where is said by `slots`. */

let api: MemoryApi;
let view: HostView;
let extender: Extender;
let workloads: WorkloadState;
let now: number;
const slots = new Map<string, number>();
const reserved = new Map<string, string>();
const problems: string[] = [];
const signals = new Map<string, Map<string, number>>();
/** What is answered of victims behind virtual nodes, and what was asked. */
const victims = new Map<string, Victims>();
const candidates: { node: string; pods: readonly Candidate[] }[] = [];
const budgets = { synced: true, covering: (_pod: Pod): { key: string; allowed: number }[] => [] };
/** A question about a migration holds room for the time it takes. */
const migrationFit = { isAsking: false };
let preemption: Preemption;
let heldRooms: HeldRooms;
let gangs: GangPlacer;
/** Nodes behind which no room is known, and of what is known that of which others are told nothing yet. */
const unready = new Set<string>();
let isPending: (name: string) => boolean;
/** How long it takes to lift what one pod holds, in ms. */
let liftMs = 0;
/** In how many ms schedulers are told to look again. */
const resyncs: number[] = [];
/** The same with a clock of its own, in ms. */
let slowGangs: (ticks: () => number) => GangPlacer;
/** Why pods have to wait for what those before them left. */
let stateless: string | undefined;
/** Called whenever room is asked about. */
let asking: (() => void) | undefined;
let close: () => Promise<void>;

const NAMES = ['local-1', 'local-2', 'east', 'west'];
const TOLERATION = { key: 'spillway.dev/virtual-node', operator: 'Exists' as const };

function capacityOf(name: string): VirtualNodeCapacity | undefined {
  // Of the host's own nodes nothing is known unless a test says so.
  if (name === 'local' && !slots.has(name)) return undefined;
  const room = countedRoom(
    name,
    () => {
      asking?.();
      return slots.get(name) ?? 0;
    },
    reserved,
    (_request, pods) => {
      candidates.push({ node: name, pods });
      return victims.get(name);
    },
  );
  const lift = (uid: string): boolean => {
    now += liftMs;
    return room.lift(uid);
  };
  return { ...room, lift, ready: !unready.has(name) };
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

/** As manifests/scheduler/extender-pods.yaml marks pods. */
function marked(name: string): Pod {
  const resources = { requests: { 'spillway.dev/extender': '0' } };
  return pod(name, { spec: { containers: [{ name: 'main', resources }] } });
}

/** DaemonSet shop/logs, known to the caches. Answers its UID. */
async function daemonSet(): Promise<string> {
  const made = make('/apis/apps/v1/namespaces/shop/daemonsets', {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name: 'logs', namespace: 'shop' },
    spec: { selector: { matchLabels: { app: 'logs' } }, template: {} },
  }) as { metadata: { uid: string } };
  const { uid } = made.metadata;
  await seen('the DaemonSet is known', () => view.owners.byUid(uid) !== undefined);
  return uid;
}

const filter = async (one: Pod, nodeNames = NAMES) => await extender.filter({ pod: one, nodeNames });

beforeEach(async () => {
  stateless = undefined;
  now = Date.parse('2026-01-01T00:00:00Z');
  api = new MemoryApi();
  slots.clear();
  reserved.clear();
  problems.length = 0;
  victims.clear();
  candidates.length = 0;
  asking = undefined;
  unready.clear();
  isPending = () => false;
  liftMs = 0;
  resyncs.length = 0;
  Object.assign(budgets, { synced: true, covering: () => [] });
  migrationFit.isAsking = false;
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
  view = new HostView({ host, logger, monotonic: clock });
  workloads = new WorkloadState({ stored: () => undefined, clock, monotonic: clock });
  const openCapacityOf = (name: string) => (isPending(name) ? undefined : capacityOf(name));
  const rooms = { view, workloads, signals: () => signals, scoring: scoringConfig.parse({}), clock };
  const questions = new PlacementQuestions({ ...rooms, capacityOf: openCapacityOf });
  const ownQuestions = new PlacementQuestions({ ...rooms, capacityOf });
  heldRooms = new HeldRooms(capacityOf, clock);
  const placing = { view, questions, ownQuestions, heldRooms, capacityOf, clock };
  gangs = new GangPlacer(placing);
  slowGangs = (ticks) => new GangPlacer({ ...placing, monotonic: ticks });
  const isVirtual = (name: string): boolean => view.nodes.memberOf(name) !== undefined;
  const nominees = new Nominees({
    capacityOf,
    heldRooms,
    isVirtual,
    podsOn: (name) => view.podsOn(name),
    nominationOf: (one) => view.nominationOf(one),
    monotonic: clock,
  });
  const state = {
    whyNotYet: async (): Promise<string | undefined> => await Promise.resolve(stateless),
    isAwaitedFor: (): boolean => stateless !== undefined,
  };
  preemption = new Preemption({ view, questions, capacityOf: openCapacityOf, budgets, nominees, migrationFit, state });
  extender = new Extender({
    view,
    workloads,
    questions,
    heldRooms,
    nominees,
    migrationFit,
    waiting: { answered: () => undefined, resyncIn: (ms) => resyncs.push(ms) },
    annotationProblem: (_chain, problem) => problems.push(problem),
    unread: (_pod, problem) => problems.push(problem),
    state,
    metrics: schedulerMetrics(new Registry()),
    monotonic: clock,
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

test('a pod that has to get the state of the one before it goes nowhere until it has it, and holds no room meanwhile', async () => {
  stateless = 'it is being read';
  expect(await filter(pod('a'), ['local-1', 'east'])).toMatchObject({
    NodeNames: [],
    FailedAndUnresolvableNodes: {
      'local-1':
        'the state of the pod before it is to be handed on first (failover.statePreservation): it is being read',
      east: expect.stringContaining('it is being read'),
    },
  });
  expect(reserved.size).toBe(0);
  expect(resyncs).toEqual([2_000]);
  stateless = undefined;
  expect((await filter(pod('a'), ['east'])).NodeNames).toEqual(['east']);
});

test('for a pod that waits for the state of the one before it nobody is evicted', async () => {
  stateless = 'it is being read';
  const one = pod('a', { spec: { priority: 100 } });
  // The other node is full, which the scheduler's own filters say: those are candidates for preemption, whatever is answered of others.
  expect((await filter(one, ['local-1'])).NodeNames).toEqual([]);
  const proposed = new Map([['local-2', { uids: ['innocent'], violations: 0 }]]);
  expect(await preemption.preempt({ pod: one, victims: proposed })).toEqual({ NodeNameToMetaVictims: {} });
  stateless = undefined;
  expect((await preemption.preempt({ pod: one, victims: proposed })).NodeNameToMetaVictims).toHaveProperty('local-2');
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
    now += 16 * 60_000;
    await filter(pod('c'), ['east', 'west']);
    expect(reserved).toEqual(new Map([['uid-of-c', 'east']]));
  });

  test('what was set aside is free again when its time is over, also while nothing else fits', async () => {
    expect((await filter(pod('a'), ['east'])).NodeNames).toEqual(['east']);
    slots.clear();
    now += 14 * 60_000;
    expect((await filter(pod('b'), ['east'])).NodeNames).toEqual([]);
    expect(reserved).toEqual(new Map([['uid-of-a', 'east']]));
    now += 60_000;
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

describe('pods that carry the mark are asked about twice in an attempt', () => {
  const ask = async (verb: FilterVerb, one: Pod, nodeNames = NAMES): Promise<readonly string[]> =>
    (await extender.filter({ pod: one, nodeNames }, verb)).NodeNames;
  const turned = { confirm: 'filter', filter: 'confirm' } as const;

  test.each(['confirm', 'filter'] as const)(
    '%s comes first and decides, and the other one is told the same',
    async (verb) => {
      expect(await ask(verb, marked('a'), ['east', 'west'])).toEqual(['east']);
      expect(reserved.get('uid-of-a')).toBe('east');
      slots.clear();
      expect(await ask(turned[verb], marked('a'), ['east'])).toEqual(['east']);
      // In the next attempt it is decided anew, however soon that comes.
      expect(await ask(verb, marked('a'), ['east'])).toEqual([]);
      slots.set('east', 1);
      expect(await ask(verb, marked('a'), ['east'])).toEqual(['east']);
    },
  );

  test('what is held for the pod itself is free for it, in either question', async () => {
    asking = () => slots.set('east', 2 - reserved.size);
    const [a, b] = ['a', 'b'].map((name) => marked(name)) as [Pod, Pod];
    const place = { at: 'east', avoid: undefined, holdMs: 60_000 };
    expect(await gangs.place([a, b], place)).toEqual({ cluster: 'east' });
    expect(await ask('confirm', pod('other'), ['east'])).toEqual([]);
    for (const one of [a, b]) {
      expect(await ask('confirm', one, ['east'])).toEqual(['east']);
      expect(await ask('filter', one, ['east'])).toEqual(['east']);
    }
  });

  test('wherever kube-scheduler finds the mark', async () => {
    const limits = { 'spillway.dev/extender': '0' };
    const initContainers = [{ name: 'first', resources: { limits } }];
    const own = pod('a', { spec: { containers: [{ name: 'main' }], initContainers } });
    expect(await ask('confirm', own, ['east', 'west'])).toEqual(['east']);
    slots.clear();
    expect(await ask('filter', own, ['east'])).toEqual(['east']);
  });

  test('one that is asked about other nodes than those of the answer, or too late for it', async () => {
    expect(await ask('confirm', marked('a'), ['east', 'west'])).toEqual(['east']);
    const { FailedAndUnresolvableNodes } = await extender.filter({ pod: marked('a'), nodeNames: ['west'] });
    expect(FailedAndUnresolvableNodes).toEqual({ west: 'member west: it was not chosen for the pod' });
    expect(await ask('confirm', marked('a'), ['east', 'west'])).toEqual(['east']);
    slots.clear();
    now += 10_000;
    expect(await ask('filter', marked('a'), ['east'])).toEqual([]);
  });

  // As where another replica was asked first, which is gone by the next attempt.
  test('a first one that nobody followed up says nothing once its place was taken back', async () => {
    asking = () => slots.set('east', 1 - reserved.size);
    const PODS = '/api/v1/namespaces/shop/pods';
    const a = make(PODS, { apiVersion: 'v1', kind: 'Pod', ...marked('a') }) as unknown as Pod;
    await seen('it is known', () => view.pods.get('shop/a') !== undefined);
    expect(await ask('filter', a, ['east'])).toEqual(['east']);
    const failed = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: 'not this time' };
    api.edit(`${PODS}/a`, { status: { conditions: [failed] } });
    await seen('its attempt failed', () => view.seats.assumedAt(a.metadata.uid ?? '') === undefined);
    expect(await ask('filter', pod('b'), ['east'])).toEqual(['east']);
    expect(await ask('confirm', a, ['east'])).toEqual([]);
  });

  test('nor does it to a question of another attempt', async () => {
    const PODS = '/api/v1/namespaces/shop/pods';
    const a = make(PODS, { apiVersion: 'v1', kind: 'Pod', ...marked('a') }) as unknown as Pod;
    await seen('it is known', () => view.pods.get('shop/a') !== undefined);
    slots.clear();
    expect(await ask('filter', a, ['east'])).toEqual([]);
    const failed = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: 'no room' };
    api.edit(`${PODS}/a`, { status: { conditions: [failed] } });
    const get = { method: 'GET', path: `${PODS}/a`, query: {}, body: undefined, contentType: '' };
    const next = api.handle(get) as unknown as Pod;
    slots.set('east', 1);
    expect(await ask('confirm', next, ['east'])).toEqual(['east']);
  });
});

describe('a virtual node that is not ready', () => {
  test.each(['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable', 'spillway.dev/member-not-ready'])(
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

describe('a pod that is nominated to a node, about which alone the scheduler asks first', () => {
  const nominated = (name: string, nominatedNodeName: string): Pod => ({
    ...pod(name),
    status: { phase: 'Pending', nominatedNodeName },
  });
  test.each([
    ['weightPreference', { dynamicWeight: 'AvailableReplicas' }, { local: 2, east: 2, west: 2 }],
    ['replicaDivisionPreference', 'Aggregated', { local: 3, east: 3 }],
  ])('does not make the other clusters full for a division by room: %s', async (field, value, expected) => {
    place({ replicaScheduling: { [field]: value } });
    await seen('the policy is known', () => [...view.policies.values()].length === 1);
    slots.set('local', 4).set('east', 4).set('west', 4);
    const counts: Record<string, number> = {};
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) {
      const isFirst = name === 'a';
      const { NodeNames } = await filter(
        isFirst ? nominated(name, 'local-1') : pod(name),
        isFirst ? ['local-1'] : NAMES,
      );
      const where = NodeNames[0]?.startsWith('local') === true ? 'local' : (NodeNames[0] ?? 'none');
      counts[where] = (counts[where] ?? 0) + 1;
    }
    expect(counts).toEqual(expected);
  });

  test('goes there only if the policy wants it there, and is asked about with all nodes if not', async () => {
    place({ clusterAffinity: { clusterNames: ['local'], overflowAffinities: [{ clusterNames: ['east', 'west'] }] } });
    await seen('the policy is known', () => [...view.policies.values()].length === 1);
    slots.set('local', 5);
    const one = nominated('a', 'east');
    const refused = await filter(one, ['east']);
    expect(refused.FailedAndUnresolvableNodes).toEqual({ east: 'member east: local comes first and has room' });
    expect((await filter(one, NAMES)).NodeNames).toEqual(['local-1', 'local-2']);
    slots.set('local', 0);
    expect((await filter(one, ['east'])).NodeNames).toEqual(['east']);
  });

  test('is not refused for ever where the scheduler itself finds no other node', async () => {
    place({ clusterAffinity: { clusterNames: ['local'], overflowAffinities: [{ clusterNames: ['east', 'west'] }] } });
    await seen('the policy is known', () => [...view.policies.values()].length === 1);
    slots.set('local', 5);
    const one = nominated('a', 'east');
    expect((await filter(one, ['east'])).NodeNames).toEqual([]);
    expect((await filter(one, ['east'])).NodeNames).toEqual(['east']);
    now += 6_000;
    expect((await filter(one, ['east'])).NodeNames).toEqual([]);
  });
});

describe('a place that was given', () => {
  const PODS = '/api/v1/namespaces/shop/pods';
  const MINUTE = 60_000;
  const unscheduled = (message: string): object => ({
    type: 'PodScheduled',
    status: 'False',
    reason: 'Unschedulable',
    message,
    lastTransitionTime: '2026-01-01T00:00:00Z',
  });
  /** Pods of which only one may be in east, as the host has them. */
  const made = async (name: string, conditions: readonly object[] = []): Promise<Pod> => {
    const status = { phase: 'Pending', conditions };
    const one = make(PODS, { apiVersion: 'v1', kind: 'Pod', ...pod(name), status }) as unknown as Pod;
    await seen('it is known', () => view.pods.get(`shop/${name}`) !== undefined);
    return one;
  };
  const whereTo = async (one: Pod): Promise<readonly string[]> => (await filter(one)).NodeNames;

  beforeEach(async () => {
    place({ clusterAffinity: { clusterNames: ['east'], max: 1 } });
    await seen('the policy is known', () => [...view.policies.values()].length === 1);
  });

  test('is held while the scheduler makes volumes, however long that takes', async () => {
    const [a, b, c] = [await made('a'), await made('b'), await made('c', [unscheduled('no room')])];
    expect(await whereTo(a)).toEqual(['east']);
    now += 11_000;
    expect(await whereTo(b)).toEqual([]);
    now += 9 * MINUTE;
    expect(await whereTo(c)).toEqual([]);
    expect(reserved.get(a.metadata.uid ?? '')).toBe('east');
    api.edit(`${PODS}/a`, { spec: { nodeName: 'east' } });
    await seen('it is bound', () => view.pods.get('shop/a')?.spec.nodeName === 'east');
    now += MINUTE;
    expect(await whereTo(c)).toEqual([]);
    // What is bound is reserved by itself after a while.
    expect(reserved.has(a.metadata.uid ?? '')).toBe(false);
  });

  test.each([
    ['the first failure', []],
    ['another failure than before', [unscheduled('0/5 nodes are available')]],
  ])('is free when the pod shows that the attempt failed: %s', async (_, before) => {
    const [a, b] = [await made('a', before), await made('b')];
    expect(await whereTo(a)).toEqual(['east']);
    expect(await whereTo(b)).toEqual([]);
    api.edit(`${PODS}/a`, { status: { conditions: [unscheduled('binding volumes: timed out')] } });
    await seen('that is known', () => view.seats.assumedAt(a.metadata.uid ?? '') === undefined);
    expect(reserved.has(a.metadata.uid ?? '')).toBe(false);
    expect(await whereTo(b)).toEqual(['east']);
  });

  test('is free when the pod is deleted, or refused when it is asked about anew', async () => {
    const [a, b, c] = [await made('a'), await made('b'), await made('c')];
    expect(await whereTo(a)).toEqual(['east']);
    api.delete(`${PODS}/a`);
    await seen('it is gone', () => view.pods.get('shop/a') === undefined);
    expect(await whereTo(b)).toEqual(['east']);
    expect((await filter(b, ['local-1'])).NodeNames).toEqual([]);
    expect(await whereTo(c)).toEqual(['east']);
  });

  test.each([
    ['is gone', false],
    ['is on its way out', true],
  ])(
    'is none for a pod that %s, though the scheduler has not heard of that: nothing is held for it',
    async (_, stays) => {
      const [a, b] = [await made('a'), await made('b')];
      if (stays) api.edit(`${PODS}/a`, { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } });
      else api.delete(`${PODS}/a`);
      await seen('it was deleted', () => {
        const known = view.pods.get('shop/a');
        return stays ? known?.metadata.deletionTimestamp !== undefined : known === undefined;
      });
      expect(await filter(a, ['east'])).toEqual({
        NodeNames: [],
        FailedAndUnresolvableNodes: { east: 'the pod was deleted' },
        Error: '',
      });
      expect(
        await preemption.preempt({ pod: a, victims: new Map([['local-1', { uids: ['x'], violations: 0 }]]) }),
      ).toEqual({
        NodeNameToMetaVictims: {},
      });
      expect(reserved.size).toBe(0);
      expect(await whereTo(b)).toEqual(['east']);
    },
  );

  test('is free again when the pod was deleted before the watch could show it', async () => {
    const b = await made('b');
    // The scheduler is ahead of the watch, which was cut until the pod was gone.
    const resourceVersion = String(Number(b.metadata.resourceVersion) + 1);
    const a = pod('a', { metadata: { resourceVersion } });
    expect(await whereTo(a)).toEqual(['east']);
    await made('c');
    expect(await whereTo(b)).toEqual([]);
    await made('d');
    await seen('it has left', () => !reserved.has('uid-of-a'));
    expect(view.seats.assumedAt('uid-of-a')).toBeUndefined();
    expect(await whereTo(b)).toEqual(['east']);
  });

  test('is given to a pod of the same name as one that is gone', async () => {
    await made('a');
    api.delete(`${PODS}/a`);
    await seen('it is gone', () => view.pods.get('shop/a') === undefined);
    expect(await whereTo(await made('a'))).toEqual(['east']);
  });

  test.each([
    ['was refused', false],
    ['was told it as well', true],
  ])(
    'is not free because the watch shows late how the attempt before ended, in which the pod %s',
    async (_, wasTold) => {
      const [a, b] = [await made('a'), await made('b')];
      const shows = async (message: string): Promise<void> => {
        api.edit(`${PODS}/a`, { status: { conditions: [unscheduled(message)] } });
        await seen('that is known', () => view.pods.get('shop/a')?.status?.conditions?.[0]?.message === message);
      };
      if (wasTold) expect(await whereTo(a)).toEqual(['east']);
      else expect((await filter(a, ['west'])).NodeNames).toEqual([]);
      // A scheduler with nothing else to do takes it again at once, and has not heard itself yet what it wrote.
      now += 3;
      expect(await whereTo(a)).toEqual(['east']);
      await shows('0/5 nodes are available');
      expect(reserved.get(a.metadata.uid ?? '')).toBe('east');
      expect(await whereTo(b)).toEqual([]);
      await shows('binding volumes: timed out');
      expect(reserved.has(a.metadata.uid ?? '')).toBe(false);
      expect(await whereTo(b)).toEqual(['east']);
    },
  );

  test.each([
    ['was seen before the next one', 3, true],
    ['is no news after a while', 3_000, false],
  ])('is free when the attempt fails after one whose end %s', async (_, later, isSeen) => {
    const [a, b] = [await made('a'), await made('b')];
    const shows = async (message: string): Promise<void> => {
      api.edit(`${PODS}/a`, { status: { conditions: [unscheduled(message)] } });
      await seen('that is known', () => view.pods.get('shop/a')?.status?.conditions?.[0]?.message === message);
    };
    expect((await filter(a, ['west'])).NodeNames).toEqual([]);
    if (isSeen) await shows('0/5 nodes are available');
    now += later;
    expect(await whereTo(isSeen ? (view.pods.get('shop/a') ?? a) : a)).toEqual(['east']);
    await shows('binding volumes: timed out');
    expect(reserved.has(a.metadata.uid ?? '')).toBe(false);
    expect(await whereTo(b)).toEqual(['east']);
  });

  test('is not free because the watch shows two ends late of which the scheduler knew', async () => {
    const [a, b] = [await made('a'), await made('b')];
    const known = (message: string, ahead: number): Pod => {
      const metadata = { ...a.metadata, resourceVersion: String(api.version + ahead) };
      return { ...a, metadata, status: { conditions: [unscheduled(message)] } } as Pod;
    };
    const [one, two] = [known('one', 1), known('two', 2)];
    expect((await filter(a, ['west'])).NodeNames).toEqual([]);
    expect((await filter(one, ['west'])).NodeNames).toEqual([]);
    expect(await whereTo(two)).toEqual(['east']);
    const shows = async (message: string): Promise<void> => {
      api.edit(`${PODS}/a`, { status: { conditions: [unscheduled(message)] } });
      await seen('that is known', () => view.pods.get('shop/a')?.status?.conditions?.[0]?.message === message);
    };
    for (const message of ['one', 'two']) await shows(message);
    expect(await whereTo(b)).toEqual([]);
    await shows('three');
    expect(await whereTo(b)).toEqual(['east']);
  });

  test('is held for ten seconds only while attempts fail without a word, and for a quarter of an hour at most', async () => {
    const [a, b] = [await made('a'), await made('b')];
    expect(await whereTo(a)).toEqual(['east']);
    now += 5_000;
    // It failed as it did before, which is not written again.
    expect(await whereTo(a)).toEqual(['east']);
    now += 9_000;
    expect(await whereTo(b)).toEqual([]);
    now += 2_000;
    expect(await whereTo(b)).toEqual(['east']);
    now += 14 * MINUTE;
    expect(await whereTo(a)).toEqual([]);
    now += 2 * MINUTE;
    expect(await whereTo(a)).toEqual(['east']);
  });
});

describe('the place of a gang', () => {
  const PODS = '/api/v1/namespaces/shop/pods';
  const OPEN = { clusterAffinity: { clusterNames: ['east'] } };
  const PINNED = { 'spillway.dev/gang-placed-at': '2026-01-01T00:00:00Z' };
  const member = (name: string, more: { spec?: object; metadata?: object } = {}): Pod =>
    pod(name, { ...more, metadata: { labels: { 'spillway.dev/gang': 'g' }, ...more.metadata } });
  const made = async (one: Pod): Promise<Pod> => {
    const { name } = one.metadata;
    const known = make(PODS, { apiVersion: 'v1', kind: 'Pod', ...one }) as unknown as Pod;
    await seen('it is known', () => view.pods.get(`shop/${name}`) !== undefined);
    return known;
  };
  const pinned = (one: Pod, cluster = 'east'): Pod => ({
    ...one,
    metadata: { ...one.metadata, annotations: { ...one.metadata.annotations, ...PINNED } },
    spec: { ...one.spec, nodeSelector: { 'spillway.dev/member': cluster } },
  });
  const placeGang = async (pods: readonly Pod[], more: { at?: string; avoid?: string } = {}) =>
    await gangs.place(pods, { at: undefined, avoid: undefined, holdMs: 120_000, ...more });
  const uidOf = ({ metadata }: Pod): string => metadata.uid ?? '';

  test('is kept while a scheduler is refused there, and when its attempt fails after it was told', async () => {
    place(OPEN);
    await seen('the policy is known', () => [...view.policies.values()].length === 1);
    const [a, b] = [await made(member('a')), await made(member('b'))];
    expect(await placeGang([a, b])).toEqual({ cluster: 'east' });
    expect((await filter(pinned(a), ['west'])).NodeNames).toEqual([]);
    expect([...reserved.keys()]).toEqual([uidOf(a), uidOf(b)]);
    expect((await filter(pinned(a), ['east'])).NodeNames).toEqual(['east']);
    const failure = { type: 'PodScheduled', status: 'False', reason: 'SchedulerError', message: 'the bind failed' };
    api.edit(`${PODS}/a`, { status: { phase: 'Pending', conditions: [failure] } });
    await seen('that is known', () => view.pods.get('shop/a')?.status?.conditions !== undefined);
    expect(heldRooms.heldFor('told', uidOf(a))).toBeUndefined();
    expect(new Set(reserved.keys())).toEqual(new Set([uidOf(a), uidOf(b)]));
    expect(view.seats.assumedAt(uidOf(a))).toBe('east');
    // A quarter of an hour is what a scheduler has; a gang has its own time.
    expect((await filter(pinned(b), ['east'])).NodeNames).toEqual(['east']);
    now += 110_000;
    await gangs.hold([pinned(a), pinned(b)], 'east', 120_000);
    now += 110_000;
    heldRooms.expire();
    expect(new Set(reserved.keys())).toEqual(new Set([uidOf(a), uidOf(b)]));
    gangs.release([a]);
    expect(reserved.has(uidOf(a))).toBe(false);
    expect(view.seats.assumedAt(uidOf(a))).toBeUndefined();
  });

  test('keeps its room from pods of its own priority, and not from those of higher, unless a scheduler was told it', async () => {
    place(OPEN);
    await seen('the policy is known', () => [...view.policies.values()].length === 1);
    asking = () => slots.set('east', 2 - reserved.size);
    const low = { priority: -100, schedulerName: 'nobody' };
    const [a, b] = [await made(member('a', { spec: low })), await made(member('b', { spec: low }))];
    expect(await gangs.place([a, b], { at: undefined, avoid: undefined, holdMs: 86_400_000 })).toEqual({
      cluster: 'east',
    });
    const alike = await made(pod('alike', { spec: { priority: -100 } }));
    expect((await filter(alike)).NodeNames).toEqual([]);
    expect([...reserved.keys()]).toEqual([uidOf(a), uidOf(b)]);
    const core = await made(pod('core', { spec: { priority: 1_000_000 } }));
    expect((await filter(core)).NodeNames).toEqual(['east']);
    // There is one slot left for the two of them, and whose it is shows when they are asked about.
    expect((await filter(pinned(a), ['east'])).NodeNames).toEqual([]);
    api.edit(`${PODS}/core`, { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } });
    await seen('it is gone', () => !reserved.has(uidOf(core)));
    for (const one of [a, b]) expect((await filter(pinned(one), ['east'])).NodeNames).toEqual(['east']);
    const late = await made(pod('late', { spec: { priority: 1_000_000 } }));
    expect((await filter(late)).NodeNames).toEqual([]);
  });

  test('is free when others are chosen to be evicted for a pod of higher priority', async () => {
    place(OPEN);
    await seen('the policy is known', () => [...view.policies.values()].length === 1);
    const [a] = [await made(member('a', { spec: { priority: -100 } }))];
    expect(await placeGang([a])).toEqual({ cluster: 'east' });
    const held: string[][] = [];
    asking = () => held.push([...reserved.keys()]);
    const core = await made(pod('core', { spec: { priority: 1_000_000 } }));
    await preemption.preempt({ pod: core, victims: new Map([['east', { uids: [], violations: 0 }]]) });
    expect(held[0]).toEqual([]);
    expect([...reserved.keys()]).toEqual([uidOf(a)]);
  });

  test('is lifted at all times where others may be evicted, and of pods that find none meanwhile schedulers are told in time', async () => {
    place(OPEN);
    await seen('the policy is known', () => [...view.policies.values()].length === 1);
    const a = await made(member('a', { spec: { priority: -100 } }));
    expect(await placeGang([a])).toEqual({ cluster: 'east' });
    slots.set('east', 0);
    liftMs = 100;
    const [core, more] = [
      await made(pod('core', { spec: { priority: 1_000_000 } })),
      await made(pod('more', { spec: { priority: 1_000_000 } })),
    ];
    expect((await filter(core, ['east'])).NodeNames).toEqual([]);
    expect(resyncs).toEqual([]);
    now += 100;
    expect((await filter(more, ['east'])).NodeNames).toEqual([]);
    expect(resyncs).toEqual([300]);
    const held: string[][] = [];
    asking = () => held.push([...reserved.keys()]);
    await preemption.preempt({ pod: core, victims: new Map([['east', { uids: [], violations: 0 }]]) });
    expect(held[0]).toEqual([]);
    expect([...reserved.keys()]).toEqual([uidOf(a)]);
  });

  test('is not looked for when its pods are of too many kinds; pods without a controller are of one', async () => {
    const tolerations = (key: string) => ({ spec: { tolerations: [TOLERATION, { key, operator: 'Exists' }] } });
    const pods = Array.from({ length: 65 }, (_, index) =>
      member(`g${String(index)}`, tolerations(`k${String(index)}`)),
    );
    let questions = 0;
    asking = () => (questions += 1);
    slots.set('east', 100);
    expect(await placeGang(pods)).toEqual({ problem: expect.stringContaining('more than 64 kinds') as string });
    expect(questions).toBe(0);
    expect(await placeGang(pods.slice(1), { at: 'east' })).toEqual({ cluster: 'east' });
    const bare = pods.map(({ metadata }) => pod(metadata.name, { metadata: { ownerReferences: [] } }));
    expect(await placeGang(bare, { at: 'east' })).toEqual({ cluster: 'east' });
  });

  test('is looked for by room first, as rules are asked about each kind of pod', async () => {
    place(OPEN);
    await seen('the policy is known', () => [...view.policies.values()].length === 1);
    const tolerations = (key: string) => ({ spec: { tolerations: [TOLERATION, { key, operator: 'Exists' }] } });
    const pods = Array.from({ length: 60 }, (_, index) =>
      member(`g${String(index)}`, tolerations(`k${String(index)}`)),
    );
    slots.set('east', 0);
    let questions = 0;
    asking = () => (questions += 1);
    expect(await placeGang(pods, { at: 'east' })).toEqual({
      why: expect.stringContaining('insufficient cpu') as string,
    });
    expect(questions).toBeLessThan(5);
    expect(reserved.size).toBe(0);
  });

  test('is looked for cluster by cluster: a look that takes long goes on where it was when others had their turn', async () => {
    place({ clusterAffinity: { clusterNames: ['east', 'west'] } });
    await seen('the policy is known', () => [...view.policies.values()].length === 1);
    asking = () => {
      // They are free until they are asked about one pod after the other.
      for (const name of ['east', 'west'])
        slots.set(name, 1 - [...reserved.values()].filter((one) => one === name).length);
    };
    let ms = 0;
    const slow = slowGangs(() => (ms += 501));
    const question = { at: undefined, avoid: undefined, holdMs: 120_000 };
    const [a, b] = [member('a'), member('b')];
    const first = await slow.place([a, b], question);
    const tried = 'tried' in first ? first.tried : new Map<string, string>();
    expect([...tried.values()]).toEqual([expect.stringMatching(/^room for 1 of 2 pods/)]);
    expect(reserved.size).toBe(0);
    const why = expect.stringMatching(/(?=.*member east: room for 1 of 2)(?=.*member west: room for 1 of 2)/) as string;
    expect(await slow.place([a, b], { ...question, tried })).toEqual({ why });
    expect(await slow.place([a], question)).toMatchObject({ cluster: expect.any(String) as string });
  });

  describe('that another replica has given', () => {
    /** A pod as it is in the host once its gang has its place, `ago` ms ago. */
    const given = async (name: string, { ago = 0, spec = {} }: { ago?: number; spec?: object } = {}): Promise<Pod> => {
      const annotations = {
        'spillway.dev/gang-size': '2',
        'spillway.dev/gang-placed-at': new Date(now - ago).toISOString(),
      };
      return await made(
        member(name, {
          metadata: { labels: { 'spillway.dev/gang': 'g' }, annotations },
          spec: { nodeSelector: { 'spillway.dev/member': 'east' }, ...spec },
        }),
      );
    };
    const errors: unknown[][] = [];
    let opened = 0;
    const holding = async (places: PlaceKeeper = gangs): Promise<GangHolds> => {
      const holds = new GangHolds({
        view,
        places,
        opened: () => (opened += 1),
        logger: { error: (...said: unknown[]) => errors.push(said) },
        clock: () => now,
      });
      isPending = (name) => holds.isPending(name);
      const stop = new AbortController();
      const running = holds.run(stop.signal);
      const before = close;
      close = async () => {
        stop.abort();
        await running;
        await before();
      };
      return await Promise.resolve(holds);
    };
    beforeEach(async () => {
      place(OPEN);
      await seen('the policy is known', () => [...view.policies.values()].length === 1);
      asking = () => slots.set('east', 2 - reserved.size);
    });

    test('is kept from others by a replica that has only seen the pods, from its first answer on', async () => {
      const holds = await holding();
      const [a, b] = [await given('a'), await given('b')];
      const other = await made(pod('other'));
      await seen('it may answer', () => holds.problem === undefined);
      expect((await filter(other)).NodeNames).toEqual([]);
      expect([view.seats.assumedAt(uidOf(a)), view.seats.assumedAt(uidOf(b))]).toEqual(['east', 'east']);
      for (const one of [a, b]) expect((await filter(one, ['east'])).NodeNames).toEqual(['east']);
    });

    test('is known before a process that begins answers anything, also when what a member has is known later', async () => {
      const [a, b] = [await given('a'), await given('b')];
      const other = await made(pod('other'));
      unready.add('east');
      opened = 0;
      let hasLooked = false;
      const holds = await holding({
        keeps: (one, cluster, forMs) => gangs.keeps(one, cluster, forMs),
        holdAsGiven: (one, cluster, forMs, refused) => hasLooked && gangs.holdAsGiven(one, cluster, forMs, refused),
        release: (pods) => gangs.release(pods),
        unknownNodes: (cluster) => (hasLooked ? gangs.unknownNodes(cluster) : ['east']),
      });
      expect(holds.problem).toBeDefined();
      // Only the watch tells it of pods, and the handlers are told of those that were there.
      for (const name of ['a', 'b', 'other'])
        api.edit(`${PODS}/${name}`, { metadata: { annotations: { seen: 'yes' } } });
      await seen('it may answer', () => holds.problem === undefined);
      expect(reserved.size).toBe(0);
      unready.clear();
      // Whoever asks before it has looked is told nothing of that room: not another pod, ...
      const { FailedAndUnresolvableNodes } = await filter(other, ['east']);
      expect(FailedAndUnresolvableNodes['east']).toContain('its nodes are not known yet');
      // ... not a gang, ...
      const c = await made(member('c'));
      expect(await gangs.place([c], { at: 'east', avoid: undefined, holdMs: 1_000 })).toHaveProperty('why');
      // ... and nobody is evicted there.
      victims.set('east', { pods: [{ uid: 'v', priority: 0, since: 0, budgets: [] }], violations: 0 });
      const asked = new Map([['east', { uids: [], violations: 0 }]]);
      expect((await preemption.preempt({ pod: other, victims: asked })).NodeNameToMetaVictims).toEqual({});
      expect([reserved.size, opened]).toEqual([0, 0]);
      expect([holds.isPending('east'), holds.isPending('west')]).toEqual([true, false]);
      hasLooked = true;
      await seen('room is held', () => opened > 0);
      for (const one of [a, b]) expect(reserved.get(uidOf(one))).toBe('east');
      expect((await filter(other, ['east'])).FailedAndUnresolvableNodes['east']).toContain('insufficient cpu');
      for (const one of [a, b]) expect((await filter(one, ['east'])).NodeNames).toEqual(['east']);
      expect(opened).toBe(1);
    });

    test('is kept also while one of the pods cannot be asked about, of which is told once', async () => {
      errors.length = 0;
      const [a, bad, b] = [await given('a'), await given('bad'), await given('b')];
      const holds = await holding({
        keeps: (one, cluster, forMs) => gangs.keeps(one, cluster, forMs),
        holdAsGiven: (one, cluster, forMs, refused) => {
          if (one.metadata.name === 'bad') throw new TypeError('it is no pod');
          return gangs.holdAsGiven(one, cluster, forMs, refused);
        },
        release: (pods) => gangs.release(pods),
        unknownNodes: (cluster) => gangs.unknownNodes(cluster),
      });
      for (const name of ['a', 'bad', 'b']) api.edit(`${PODS}/${name}`, { metadata: { annotations: { seen: 'yes' } } });
      await seen('room is held', () => reserved.size === 2);
      await seen('it may answer', () => holds.problem === undefined);
      expect([...reserved.keys()].toSorted()).toEqual([uidOf(a), uidOf(b)].toSorted());
      api.edit(`${PODS}/bad`, { metadata: { annotations: { more: 'news' } } });
      await seen('that is known', () => view.pods.get('shop/bad')?.metadata.annotations?.['more'] === 'news');
      expect(errors).toEqual([[{ pod: 'shop/bad', cluster: 'east' }, expect.stringContaining('it is no pod')]]);
      expect(reserved.has(uidOf(bad))).toBe(false);
    });

    test('is free when the pod has lost its place, or its time is over', async () => {
      const holds = await holding();
      await seen('it may answer', () => holds.problem === undefined);
      const [a, b] = [await given('a', { ago: 100_000 }), await given('b', { ago: 100_000 })];
      await seen('room is held', () => reserved.size === 2);
      api.edit(`${PODS}/a`, { metadata: { annotations: { 'spillway.dev/gang-placed-at': null } } });
      await seen('it is free', () => !reserved.has(uidOf(a)));
      now += 20_000;
      heldRooms.expire();
      expect(reserved.has(uidOf(b))).toBe(false);
      api.edit(`${PODS}/b`, { metadata: { annotations: { more: 'news' } } });
      await seen('that is known', () => view.pods.get('shop/b')?.metadata.annotations?.['more'] === 'news');
      expect(reserved.size).toBe(0);
    });

    test('counts still when an attempt to bind its pod ended without a word', async () => {
      const holds = await holding();
      await seen('it may answer', () => holds.problem === undefined);
      const a = await given('a');
      await seen('room is held', () => reserved.size === 1);
      await filter(a, ['east']);
      now += 1_000;
      await filter(a, ['east']);
      now += 11_000;
      expect(view.seats.assumedAt(uidOf(a))).toBeUndefined();
      api.edit(`${PODS}/a`, { metadata: { annotations: { more: 'news' } } });
      await seen('it counts', () => view.seats.assumedAt(uidOf(a)) === 'east');
      expect(reserved).toEqual(new Map([[uidOf(a), 'east']]));
    });

    test('stays when its time is over, where whoever places gangs keeps it for longer', async () => {
      const holds = await holding();
      await seen('it may answer', () => holds.problem === undefined);
      const b = await given('b', { ago: 100_000 });
      await seen('room is held', () => reserved.size === 1);
      await gangs.hold([b], 'east', 60_000);
      now += 25_000;
      api.edit(`${PODS}/b`, { metadata: { annotations: { more: 'news' } } });
      await seen('that is known', () => view.pods.get('shop/b')?.metadata.annotations?.['more'] === 'news');
      heldRooms.expire();
      expect([...reserved.keys()]).toEqual([uidOf(b)]);
      now += 40_000;
      heldRooms.expire();
      expect(reserved.size).toBe(0);
    });

    test('is not believed of a pod where its rules do not let it go, behind a gate of others, or from a time to come', async () => {
      const holds = await holding();
      await seen('it may answer', () => holds.problem === undefined);
      await given('west', { spec: { nodeSelector: { 'spillway.dev/member': 'west' } } });
      await given('behind', { spec: { schedulingGates: [{ name: 'example.com/quota' }] } });
      await given('early', { ago: -60_000 });
      await given('late', { ago: 120_000 });
      const right = await given('right', { ago: -5_000 });
      await seen('room is held', () => reserved.size > 0);
      expect(reserved).toEqual(new Map([[uidOf(right), 'east']]));
      now += 120_000;
      api.edit(`${PODS}/right`, { metadata: { annotations: { more: 'news' } } });
      await seen('that is known', () => view.pods.get('shop/right')?.metadata.annotations?.['more'] === 'news');
      heldRooms.expire();
      expect(reserved.size).toBe(0);
    });

    test('is looked for by room first, and rules that did not let a pod in are not asked about others of its kind', async () => {
      await holding();
      const [a, b] = [member('a'), member('b')];
      let questions = 0;
      asking = () => (questions += 1);
      slots.set('east', 0);
      expect(gangs.holdAsGiven(a, 'east', 60_000, new Set())).toBe(false);
      expect(questions).toBeLessThanOrEqual(1);
      questions = 0;
      const refused = new Set<string>();
      expect(gangs.holdAsGiven(a, 'west', 60_000, refused)).toBe(false);
      expect(questions).toBeGreaterThan(1);
      questions = 0;
      expect(gangs.holdAsGiven(b, 'west', 60_000, refused)).toBe(false);
      expect(questions).toBe(0);
      slots.set('east', 1);
      expect(gangs.holdAsGiven(b, 'east', 60_000, refused)).toBe(true);
      expect(reserved).toEqual(new Map([[uidOf(b), 'east']]));
    });

    test('counts against the limits of its policy', async () => {
      api.edit('/apis/spillway.dev/v1alpha1/namespaces/shop/placementpolicies/p', {
        spec: { placement: { clusterAffinity: { clusterNames: ['east'], max: 1 } } },
      });
      const holds = await holding();
      await seen('it may answer', () => holds.problem === undefined);
      const first = await given('a');
      await seen('room is held', () => reserved.size === 1);
      await given('b');
      expect([...reserved.keys()]).toEqual([uidOf(first)]);
    });
  });

  test('counts: two gangs do not get what only one of them may have', async () => {
    place({ ...OPEN, clusterAffinity: { clusterNames: ['east'], max: 3 } });
    await seen('the policy is known', () => [...view.policies.values()].length === 1);
    const [a, b, c, d] = [member('a'), member('b'), member('c'), member('d')];
    expect(await placeGang([a, b])).toEqual({ cluster: 'east' });
    const why = expect.stringContaining('at most 3') as string;
    for (const more of [{}, { at: 'east' }]) expect(await placeGang([c, d], more)).toEqual({ why });
    expect(await placeGang([d])).toEqual({ cluster: 'east' });
    for (const one of [a, b, d]) expect((await filter(pinned(one), ['east'])).NodeNames).toEqual(['east']);
  });

  test('is none where one of the pods would be refused: by a policy of its own', async () => {
    place(OPEN);
    const policy = {
      apiVersion: 'spillway.dev/v1alpha1',
      kind: 'PlacementPolicy',
      metadata: { name: 'own', namespace: 'shop' },
      spec: {
        resourceSelectors: [{ apiVersion: 'v1', kind: 'Pod', labelSelector: { matchLabels: { role: 'head' } } }],
        placement: { clusterAffinity: { clusterNames: ['west'] } },
        priority: 9,
      },
    };
    make('/apis/spillway.dev/v1alpha1/namespaces/shop/placementpolicies', policy);
    await seen('the policies are known', () => [...view.policies.values()].length === 2);
    const head = member('b', { metadata: { labels: { 'spillway.dev/gang': 'g', role: 'head' } } });
    expect((await filter(pinned(head), ['east'])).NodeNames).toEqual([]);
    const why = expect.stringContaining('member east: pod b: the policy does not name it') as string;
    expect(await placeGang([member('a'), head])).toEqual({ why });
    expect(await placeGang([member('a'), head], { at: 'east' })).toEqual({ why });
    expect(reserved.size).toBe(0);
  });

  test('is none in a member that is avoided, also for pods that come to others', async () => {
    place(OPEN);
    await seen('the policy is known', () => [...view.policies.values()].length === 1);
    const one = member('a');
    const { object } = workloadOf(view.owners.chainOf(one));
    workloads.refused(object, { cluster: 'east', reason: 'MemberQuotaExceeded', message: 'exceeded quota' }, 60_000);
    expect((await filter(pinned(one), ['east'])).NodeNames).toEqual([]);
    expect(await placeGang([one], { at: 'east' })).toEqual({ why: expect.stringContaining('is avoided') as string });
    now += 60_000;
    expect(await placeGang([one], { at: 'east' })).toEqual({ cluster: 'east' });
  });

  test('is none for pods without rules in a member with a taint that only rules can tolerate', async () => {
    make('/api/v1/namespaces', { kind: 'Namespace', metadata: { name: 'own' } });
    const taint = { key: 'dear', effect: 'NoSchedule' };
    api.edit('/apis/spillway.dev/v1alpha1/memberclusters/east', { spec: { clusterTaints: [taint] } });
    await seen('the taint is known', () => view.nodes.whyTainted('east', []) !== undefined);
    slots.set('local', 0);
    const ownerless = { namespace: 'own', labels: { 'spillway.dev/gang': 'g' }, ownerReferences: [] };
    const one = member('a', { metadata: ownerless });
    expect((await filter(pinned(one), ['east'])).NodeNames).toEqual([]);
    expect(await placeGang([one])).toEqual({ cluster: 'west' });
    expect(await placeGang([one], { at: 'east' })).toEqual({ why: expect.stringContaining('dear') as string });
  });
});

describe('a tier that is tried later', () => {
  const MINUTE = 60_000;
  const gated = { type: 'PodScheduled', status: 'False', reason: 'SchedulingGated', message: 'gates' };
  const anHourAgo = (): object => ({ creationTimestamp: new Date(now - 60 * MINUTE).toISOString() });

  beforeEach(async () => {
    const overflowAffinities = [{ clusterNames: ['east'] }];
    place({ clusterAffinity: { clusterNames: ['local'], tryNextAfter: '10m', overflowAffinities } });
    await seen('the policy is known', () => [...view.policies.values()].length === 1);
  });

  const asked = async (one: Pod): Promise<readonly string[]> => (await filter(one, ['east', 'west'])).NodeNames;

  test('does not count the time behind scheduling gates', async () => {
    const one = pod('a', { metadata: anHourAgo(), spec: { schedulingGates: [{ name: 'kueue.x-k8s.io/admission' }] } });
    const pods = '/api/v1/namespaces/shop/pods';
    const stored = make(pods, { apiVersion: 'v1', kind: 'Pod', ...one }) as unknown as Pod;
    await seen('it is known', () => view.pods.get('shop/a')?.spec.schedulingGates?.length === 1);
    api.edit(`${pods}/a`, { spec: { schedulingGates: null } });
    await seen('its gates are gone', () => view.pods.get('shop/a')?.spec.schedulingGates === undefined);
    const open = { ...stored, spec: { ...stored.spec, schedulingGates: [] } };
    now += 9 * MINUTE;
    expect(await asked(open)).toEqual([]);
    now += 2 * MINUTE;
    expect(await asked(open)).toEqual(['east']);
  });

  test.each([
    ['was not asked about since', {}],
    ['could not be scheduled since', { reason: 'Unschedulable', lastTransitionTime: '2025-12-31T23:00:01Z' }],
    ['could not be scheduled since, in an older host', { reason: 'Unschedulable', lastTransitionTime: null }],
  ])('does not count the time of gates that this process has not seen: the pod %s', async (_, condition) => {
    const one = pod('a', { metadata: { creationTimestamp: '2025-12-31T23:00:00Z', generation: 2 } });
    const status = { phase: 'Pending', conditions: [{ ...gated, ...condition }] } as NonNullable<Pod['status']>;
    expect(await asked({ ...one, status })).toEqual([]);
    now += 11 * MINUTE;
    expect(await asked({ ...one, status })).toEqual(['east']);
  });

  test.each([
    ['it was refused later', '2025-12-31T23:30:00Z', 2],
    ['it is as it was made', '2025-12-31T23:00:00Z', 1],
  ])('counts from when the pod was made where there were no gates: %s', async (_, lastTransitionTime, generation) => {
    const failed = { ...gated, reason: 'Unschedulable', lastTransitionTime };
    const status = { phase: 'Pending', conditions: [failed] } as NonNullable<Pod['status']>;
    const metadata = { creationTimestamp: '2025-12-31T23:00:00Z', generation };
    expect(await asked({ ...pod('a', { metadata }), status })).toEqual(['east']);
    expect(await asked(pod('b'))).toEqual([]);
  });
});

describe('a pod whose owners are not all known', () => {
  const apps = '/apis/apps/v1/namespaces/shop';
  const ownedBy = (kind: string, name: string): object => ({
    ownerReferences: [{ apiVersion: 'apps/v1', kind, name, uid: `uid-${name}`, controller: true }],
  });
  const put = (kind: string, name: string, more: object = {}): void => {
    const metadata = { name, uid: `uid-${name}`, namespace: 'shop', ...more };
    api.put(`${apps}/${kind.toLowerCase()}s/${name}`, { apiVersion: 'apps/v1', kind, metadata, spec: { replicas: 3 } });
  };
  const NOT_KNOWN = /^its owner \w+ [\w-]+ is not known to Spillway yet/;
  /** The host does not say whether one that is asked for by name is there. */
  const silent = (): void => {
    api.fault = ({ query }) =>
      query['fieldSelector']?.startsWith('metadata.name=') === true
        ? { code: 500, reason: 'InternalError' }
        : undefined;
  };

  beforeEach(async () => {
    const spec = {
      resourceSelectors: [
        { apiVersion: 'apps/v1', kind: 'Deployment', labelSelector: { matchLabels: { tier: 'front' } } },
      ],
      placement: { clusterAffinity: { clusterNames: ['local'] } },
    };
    const metadata = { name: 'residency', namespace: 'shop' };
    make('/apis/spillway.dev/v1alpha1/namespaces/shop/placementpolicies', {
      apiVersion: 'spillway.dev/v1alpha1',
      kind: 'PlacementPolicy',
      metadata,
      spec,
    });
    await seen('the policy is known', () => [...view.policies.values()].length === 1);
  });

  test('waits for the whole chain, and goes nowhere while a policy may say no', async () => {
    silent();
    put('ReplicaSet', 'new-1', ownedBy('Deployment', 'new'));
    await seen('its set is known', () => view.owners.byUid('uid-new-1') !== undefined);
    const one = pod('a', { metadata: ownedBy('ReplicaSet', 'new-1') });
    const { NodeNames, FailedAndUnresolvableNodes } = await filter(one, ['east', 'west']);
    expect(NodeNames).toEqual([]);
    expect(FailedAndUnresolvableNodes['east']).toMatch(NOT_KNOWN);
    put('Deployment', 'new', { labels: { tier: 'front' } });
    await seen('the Deployment is known', () => view.owners.byUid('uid-new') !== undefined);
    const known = await filter(one, ['east', 'west']);
    expect(known.FailedAndUnresolvableNodes['east']).toBe('member east: the policy does not name it');
    expect((await filter(one)).NodeNames).toEqual(['local-1', 'local-2']);
  });

  test('is decided about when the rest of its owners come in time', async () => {
    silent();
    put('ReplicaSet', 'new-1', ownedBy('Deployment', 'new'));
    await seen('its set is known', () => view.owners.byUid('uid-new-1') !== undefined);
    const asked = filter(pod('a', { metadata: ownedBy('ReplicaSet', 'new-1') }));
    await new Promise((resolve) => setTimeout(resolve, 50));
    put('Deployment', 'new', { labels: { tier: 'front' } });
    expect((await asked).NodeNames).toEqual(['local-1', 'local-2']);
  });

  test('is decided about however many owners come late', async () => {
    silent();
    for (const name of ['l0', 'l1', 'l2', 'l3', 'l4', 'l5']) {
      const asked = filter(pod(name, { metadata: ownedBy('ReplicaSet', name) }), ['local-1']);
      await new Promise((resolve) => setTimeout(resolve, 50));
      put('ReplicaSet', name);
      expect((await asked).NodeNames).toEqual(['local-1']);
    }
  });

  test('goes by what is there once the host says that an owner is not', async () => {
    const one = pod('a', { metadata: ownedBy('ReplicaSet', 'none') });
    expect((await filter(one, ['east', 'west'])).NodeNames).toHaveLength(1);
  });

  test('keeps others waiting no more than a twentieth of the time, whatever it names', async () => {
    silent();
    const took = async (names: readonly string[]): Promise<number> => {
      const started = performance.now();
      for (const name of names) await filter(pod(name, { metadata: ownedBy('ReplicaSet', `made-up-${name}`) }));
      return performance.now() - started;
    };
    const many = Array.from({ length: 100 }, (_, index) => `m${String(index)}`);
    expect(await took(many)).toBeLessThan(10_000);
    // One that is late may be waited for again after a while.
    now += 20_000;
    expect(await took(['a'])).toBeGreaterThan(400);
  });
});

describe('a pod of a kind that is not Kubernetes own', () => {
  const sets = '/apis/apps/v1/namespaces/shop/replicasets';
  const rollout = (name: string, labels: Record<string, string>): void => {
    const path = `/apis/argoproj.io/v1alpha1/namespaces/shop/rollouts/${name}`;
    const metadata = { name, namespace: 'shop', uid: `uid-${name}`, labels };
    api.put(path, { apiVersion: 'argoproj.io/v1alpha1', kind: 'Rollout', metadata, spec: { replicas: 3 } });
  };
  const of = (apiVersion: string, kind: string, name: string): object => ({
    ownerReferences: [{ apiVersion, kind, name, uid: `uid-${name}`, controller: true }],
  });
  /** Of a ReplicaSet of that Rollout. */
  const podOf = async (name: string, owner: string): Promise<Pod> => {
    const metadata = { name: `${owner}-1`, namespace: 'shop', uid: `uid-${owner}-1` };
    const above = of('argoproj.io/v1alpha1', 'Rollout', owner);
    api.put(`${sets}/${owner}-1`, { apiVersion: 'apps/v1', kind: 'ReplicaSet', metadata: { ...metadata, ...above } });
    await seen('its set is known', () => view.owners.byUid(`uid-${owner}-1`) !== undefined);
    return pod(name, { metadata: of('apps/v1', 'ReplicaSet', `${owner}-1`) });
  };
  const chooseFront = async (): Promise<void> => {
    const labelSelector = { matchLabels: { tier: 'front' } };
    const resourceSelectors = [{ apiVersion: 'argoproj.io/v1alpha1', kind: 'Rollout', labelSelector }];
    make('/apis/spillway.dev/v1alpha1/namespaces/shop/placementpolicies', {
      apiVersion: 'spillway.dev/v1alpha1',
      kind: 'PlacementPolicy',
      metadata: { name: 'residency', namespace: 'shop' },
      spec: { resourceSelectors, placement: { clusterAffinity: { clusterNames: ['local'] } } },
    });
    await seen('the policy is known', () => [...view.policies.values()].length === 1);
  };

  test('is under the policy that chooses its Rollout by labels, and others are not', async () => {
    await chooseFront();
    rollout('shop', { tier: 'front' });
    rollout('jobs', { tier: 'back' });
    const [front, back] = [await podOf('a', 'shop'), await podOf('b', 'jobs')];
    expect((await filter(front, ['east', 'west'])).NodeNames).toEqual([]);
    expect((await filter(back, ['east', 'west'])).NodeNames).toHaveLength(1);
    expect(problems).toEqual([]);
  });

  test('waits while Rollouts cannot be read, and evicts nobody', async () => {
    api.fault = ({ path }) => (path === '/apis/argoproj.io/v1alpha1' ? { code: 503 } : undefined);
    await chooseFront();
    rollout('shop', { tier: 'front' });
    const one = await podOf('a', 'shop');
    await seen('it is known that they cannot be', () => view.owners.holds('argoproj.io/v1alpha1', 'Rollout'));
    const { NodeNames, FailedAndUnresolvableNodes } = await filter(one);
    expect(NodeNames).toEqual([]);
    for (const node of NAMES)
      expect(FailedAndUnresolvableNodes[node]).toMatch(
        /^it is not known whether PlacementPolicy residency .* its owner Rollout shop cannot be read now, which it waits for .*503/,
      );
    const { NodeNameToMetaVictims: victims } = await preemption.preempt({
      pod: one,
      victims: new Map([['local-1', { uids: ['uid-1'], violations: 0 }]]),
    });
    expect(victims).toEqual({});
    expect(problems).toEqual([]);
  });

  test('goes as if the policy were not there where Rollouts may not be read, and is told why', async () => {
    api.fault = ({ path }) => (path.endsWith('/selfsubjectaccessreviews') ? { code: 403 } : undefined);
    await chooseFront();
    rollout('shop', { tier: 'front' });
    expect((await filter(await podOf('a', 'shop'), ['east', 'west'])).NodeNames).toHaveLength(1);
    expect(problems).toEqual([
      expect.stringMatching(
        /^PlacementPolicy residency is passed over, .* its owner Rollout shop are not known: .* may not read rollouts/,
      ),
    ]);
  });
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

  test('of a DaemonSet are passed through; those that only say so are not', async () => {
    slots.clear();
    const uid = await daemonSet();
    place({ clusterAffinity: { clusterNames: ['local'] } }, 'v1', 'Pod');
    await seen('the policy is known', () => [...view.policies.values()].length === 1);
    const matchFields = [{ key: 'metadata.name', operator: 'In', values: ['east'] }];
    const nodeSelectorTerms = [{ matchFields }];
    const named = {
      tolerations: [TOLERATION],
      affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } },
    };
    const owner = { apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'logs', uid, controller: true };
    const of = async (name: string, more: { owner?: object; labels?: Record<string, string>; spec?: object } = {}) => {
      const { labels = { app: 'logs' }, spec = named } = more;
      const metadata = { ownerReferences: [{ ...owner, ...more.owner }], labels };
      return (await filter(pod(name, { metadata, spec }), ['east'])).NodeNames;
    };
    expect(await of('a')).toEqual(['east']);
    expect(await of('b', { owner: { apiVersion: 'example.com/v1' } })).toEqual([]);
    expect(await of('c', { owner: { name: 'none', uid: 'none' } })).toEqual([]);
    expect(await of('d', { owner: { uid: 'none' } })).toEqual([]);
    expect(await of('e', { labels: { app: 'other' } })).toEqual([]);
    expect(await of('f', { spec: { tolerations: [TOLERATION] } })).toEqual([]);
    const chosenBy = (...terms: object[]): object => ({
      ...named,
      affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms } } },
    });
    const other = { matchFields: [{ key: 'metadata.name', operator: 'NotIn', values: ['local-1'] }] };
    expect(await of('g', { spec: chosenBy(...nodeSelectorTerms, { matchExpressions: [] }) })).toEqual([]);
    expect(await of('h', { spec: chosenBy(other) })).toEqual([]);
  });
});

function place(placement: object, apiVersion = 'apps/v1', kind = 'Deployment'): void {
  make('/apis/spillway.dev/v1alpha1/namespaces/shop/placementpolicies', {
    apiVersion: 'spillway.dev/v1alpha1',
    kind: 'PlacementPolicy',
    metadata: { name: 'p', namespace: 'shop', generation: 1 },
    spec: { resourceSelectors: [{ apiVersion, kind }], placement },
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

  test('divides by room that a question about a migration holds for a moment only for the pod that asks', async () => {
    place({ replicaScheduling: { weightPreference: { dynamicWeight: 'AvailableReplicas' } } });
    await seen('the policy is known', () => [...view.policies.values()].length === 1);
    slots.set('local', 0).set('east', 6).set('west', 0);
    migrationFit.isAsking = true;
    expect((await filter(pod('a'), ['east', 'west'])).NodeNames).toEqual(['east']);
    const deployment = view.owners.chainOf(pod('a')).at(-1);
    if (deployment === undefined || deployment.kind === 'Pod') throw new Error('its owner is not known');
    expect(workloads.memory(deployment)).toMatchObject({
      plan: undefined,
      last: { made: { pod: { metadata: { name: 'a' } } } },
    });
    migrationFit.isAsking = false;
    slots.set('west', 6);
    expect((await filter(pod('b'), ['east', 'west'])).NodeNames).toEqual(['west']);
    expect(workloads.plan(deployment)?.targets).toEqual(
      new Map([
        ['local', 0],
        ['east', 4],
        ['west', 2],
      ]),
    );
  });

  test('a marked pod is divided by the room in all members, where another replica was asked first and left one', async () => {
    place({ replicaScheduling: { weightPreference: { dynamicWeight: 'AvailableReplicas' } } });
    await seen('the policy is known', () => [...view.policies.values()].length === 1);
    slots.set('local', 0).set('east', 6).set('west', 3);
    expect((await filter(marked('a'), ['west'])).NodeNames).toEqual(['west']);
    const deployment = view.owners.chainOf(pod('a')).at(-1);
    if (deployment === undefined || deployment.kind === 'Pod') throw new Error('its owner is not known');
    expect(workloads.plan(deployment)?.targets).toEqual(
      new Map([
        ['local', 0],
        ['east', 4],
        ['west', 2],
      ]),
    );
    // As far as is known here it is to be in east, which the other replica knows better, or its scheduler.
    slots.set('west', 1);
    for (const name of ['b', 'c']) expect((await filter(marked(name), ['west'])).NodeNames).toEqual(['west']);
  });

  test('what another replica knew better of one marked pod divides the others no differently', async () => {
    place({ replicaScheduling: { weightPreference: { dynamicWeight: 'AvailableReplicas' } } });
    await seen('the policy is known', () => [...view.policies.values()].length === 1);
    slots.set('local', 0).set('east', 20).set('west', 10);
    // Of six pods two are to be in west, as far as is known here.
    for (const name of ['a', 'b', 'c']) expect((await filter(marked(name), ['west'])).NodeNames).toEqual(['west']);
    expect((await extender.filter({ pod: marked('d'), nodeNames: NAMES }, 'confirm')).NodeNames).toEqual(['east']);
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

  test('a member with a cluster taint gets the pods of rules that tolerate it, and no others', async () => {
    slots.set('west', 9);
    slots.set('east', 0);
    const clusterTaints = [{ key: 'dear', value: 'yes', effect: 'NoSchedule' }];
    api.edit('/apis/spillway.dev/v1alpha1/memberclusters/west', { spec: { clusterTaints } });
    await seen('the taint is known', () => view.nodes.whyTainted('west', []) !== undefined);
    const reason = 'member west: it has cluster taint dear=yes:NoSchedule, which no policy of the pod tolerates';
    // Whatever it tolerates itself, and however it asks.
    const itself = {
      metadata: { namespace: 'default', ownerReferences: [] },
      spec: { tolerations: [{ operator: 'Exists' }, TOLERATION] },
    };
    const unruled = await filter(pod('a', itself), ['west']);
    expect(unruled).toMatchObject({ NodeNames: [], FailedAndUnresolvableNodes: { west: reason } });
    place({ clusterAffinity: { clusterNames: ['west'] } });
    await seen('the policy is known', () => [...view.policies.values()].length === 1);
    const tolerating = { spec: { tolerations: [{ operator: 'Exists' }] } };
    const refused = await filter(pod('b', tolerating), ['west']);
    expect(refused).toMatchObject({ NodeNames: [], FailedAndUnresolvableNodes: { west: reason } });
    api.edit('/apis/spillway.dev/v1alpha1/namespaces/shop/placementpolicies/p', {
      spec: { placement: { clusterTolerations: [{ key: 'dear', operator: 'Exists' }] } },
      metadata: { generation: 2 },
    });
    await until('the pod goes there', async () => (await filter(pod('b'), ['west'])).NodeNames.length === 1, {
      intervalMs: 5,
    });
  });

  test('a member with a taint of effect NoExecute gets no pods that it would have moved out again, with rules or without', async () => {
    const lent = { key: 'lent', effect: 'NoExecute' };
    api.edit('/apis/spillway.dev/v1alpha1/memberclusters/east', { spec: { taints: [lent] } });
    await seen('the taint is known', () => view.nodes.wantedTaints('east', 'east').length === 1);
    const open = [TOLERATION, { operator: 'Exists', effect: 'NoSchedule' }];
    const forATime = { ...lent, operator: 'Exists', tolerationSeconds: 5 };
    const alone = { namespace: 'default', ownerReferences: [] };
    const why = 'member east: the pod does not tolerate taint lent:NoExecute for good';
    place({ clusterAffinity: { clusterNames: ['east'] } });
    await seen('the policy is known', () => [...view.policies.values()].length === 1);
    for (const tolerations of [open, [...open, forATime]]) {
      for (const metadata of [{}, alone]) {
        const refused = await filter(pod('a', { spec: { tolerations }, metadata }), ['east']);
        expect(refused).toMatchObject({ NodeNames: [], FailedAndUnresolvableNodes: { east: why } });
      }
    }
    const forGood = [...open, { key: 'lent', operator: 'Exists' }];
    for (const metadata of [{}, alone]) {
      expect((await filter(pod('b', { spec: { tolerations: forGood }, metadata }), ['east'])).NodeNames).toEqual([
        'east',
      ]);
    }
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

test('of a member whose nodes the scheduler left out, those for other pods are not what is in the way', async () => {
  const gpu = { key: 'nvidia.com/gpu', effect: 'NoSchedule' };
  const virtualNodes = [{ name: 'gpu', taints: [gpu] }, { name: 'general' }];
  api.edit('/apis/spillway.dev/v1alpha1/memberclusters/east', { spec: { virtualNodes } });
  for (const name of ['east-gpu', 'east-general']) make('/api/v1/nodes', node(name, 'east'));
  api.edit('/api/v1/nodes/east-gpu', { spec: { taints: [gpu] } });
  place({ clusterAffinity: { clusterNames: ['east', 'west'] } });
  await seen('the policy is known', () => view.policies.get('shop/p') !== undefined);
  await seen('the nodes are known', () => view.nodes.nodes.get('east-gpu')?.spec?.taints?.length === 1);
  await seen('the member is known', () => view.nodes.virtualNodesOf('east').length === 2);
  const { object } = workloadOf(view.owners.chainOf(pod('a')));
  const saidOfEast = async (): Promise<string | undefined> => {
    await filter(pod('a'), ['west']);
    const { decision } = workloads.memory(object).last?.made ?? {};
    return decision?.refusals.find(({ cluster }) => cluster === 'east')?.message;
  };
  expect(await saidOfEast()).toBe('its virtual node does not pass the checks of the scheduler itself');
  const taints = [{ key: 'spillway.dev/member-not-ready', effect: 'NoSchedule' }];
  api.edit('/api/v1/nodes/east-general', { spec: { taints } });
  const taintOfGeneral = (): string | undefined => view.nodes.nodes.get('east-general')?.spec?.taints?.[0]?.key;
  await seen('the taint is known', () => taintOfGeneral() === 'spillway.dev/member-not-ready');
  expect(await saidOfEast()).toBe('the pod does not tolerate taint spillway.dev/member-not-ready:NoSchedule');
});

describe('pods that may be evicted for another one', () => {
  const PODS = '/api/v1/namespaces/shop/pods';
  const proposed = { uids: ['uid-1', 'uid-2'], violations: 1 };
  const important = (name: string, more: object = {}): Pod => pod(name, { spec: { priority: 1_000, ...more } });
  const asCandidate = (uid: string): Candidate => ({ uid, priority: 0, since: 0, budgets: [] });
  const preempt = async (one: Pod, ...nodes: string[]): Promise<Record<string, string>> => {
    const answer = await preemption.preempt({ pod: one, victims: new Map(nodes.map((name) => [name, proposed])) });
    return Object.fromEntries(
      Object.entries(answer.NodeNameToMetaVictims).map(([name, { Pods, NumPDBViolations }]) => [
        name,
        `${Pods.map(({ UID }) => UID).join()} ${NumPDBViolations}`,
      ]),
    );
  };
  const bound = (name: string, nodeName: string, priority = 0): string =>
    (make(PODS, { apiVersion: 'v1', kind: 'Pod', ...pod(name, { spec: { nodeName, priority } }) }) as unknown as Pod)
      .metadata.uid ?? '';

  beforeEach(() => {
    slots.clear();
    for (const name of ['east', 'west']) victims.set(name, { pods: [asCandidate(`of-${name}`)], violations: 0 });
  });

  test('are those of the host where the rules prefer it, as the scheduler chose them, and then none in members', async () => {
    expect(await preempt(important('a'), 'local-1', 'east', 'local-2')).toEqual({
      'local-1': 'uid-1,uid-2 1',
      'local-2': 'uid-1,uid-2 1',
    });
  });

  test('are none on nodes of the host where a policy does not let the pod run', async () => {
    place({ clusterAffinity: { clusterNames: ['east'] } });
    await until('the policy is known', () => view.policies.get('shop/p') !== undefined, { intervalMs: 5 });
    expect(await preempt(important('a'), 'local-1', 'east', 'west')).toEqual({ east: 'of-east 0' });
    victims.delete('east');
    expect(await preempt(important('a'), 'local-1', 'east', 'west')).toEqual({});
  });

  test('are worked out where the rules want the pod first, and in the next member only where that does not help', async () => {
    place({
      clusterAffinity: { clusterNames: ['west'], overflowAffinities: [{ clusterNames: ['east'] }] },
    });
    await until('the policy is known', () => view.policies.get('shop/p') !== undefined, { intervalMs: 5 });
    const asked = (): string[] => candidates.splice(0).map(({ node: name }) => name);
    expect(await preempt(important('a'), 'local-1', 'east', 'west')).toEqual({ west: 'of-west 0' });
    expect(asked()).toEqual(['west']);
    victims.delete('west');
    expect(await preempt(important('b'), 'local-1', 'east', 'west')).toEqual({ east: 'of-east 0' });
    expect(asked()).toEqual(['west', 'east']);
  });

  test('are none while a question about a migration holds room, but for pods that are for nodes of the host alone', async () => {
    const own = { key: 'other', operator: 'Exists' };
    const alone = pod('b', { spec: { priority: 1_000, tolerations: [own] }, metadata: { ownerReferences: [] } });
    migrationFit.isAsking = true;
    expect(await preempt(important('a'), 'local-1', 'east')).toEqual({});
    place({ clusterAffinity: { clusterNames: ['local', 'east'] } });
    await until('the policy is known', () => view.policies.get('shop/p') !== undefined, { intervalMs: 5 });
    expect(await preempt(important('a'), 'local-1', 'east')).toEqual({});
    api.edit('/api/v1/namespaces/shop', { metadata: { labels: { 'spillway.dev/burst': null } } });
    await until('nobody opted in', () => view.namespaceLabels('shop')?.['spillway.dev/burst'] === undefined, {
      intervalMs: 5,
    });
    expect(await preempt(alone, 'local-1', 'east')).toEqual({ 'local-1': 'uid-1,uid-2 1' });
    const asksForMembers = { ...alone, spec: { ...alone.spec, tolerations: [TOLERATION] } };
    expect(await preempt(asksForMembers, 'local-1', 'east')).toEqual({});
    migrationFit.isAsking = false;
    expect(await preempt(asksForMembers, 'local-1', 'east')).toEqual({ 'local-1': 'uid-1,uid-2 1', east: 'of-east 0' });
  });

  test('are none where the pod would be moved out again, for a taint of effect NoExecute', async () => {
    const tolerations = [TOLERATION, { operator: 'Exists', effect: 'NoSchedule' }];
    const alone = pod('a', {
      spec: { priority: 1_000, tolerations },
      metadata: { namespace: 'default', ownerReferences: [] },
    });
    expect(await preempt(alone, 'east')).toEqual({ east: 'of-east 0' });
    const taints = [{ key: 'lent', effect: 'NoExecute' }];
    api.edit('/apis/spillway.dev/v1alpha1/memberclusters/east', { spec: { taints } });
    await seen('the taint is known', () => view.nodes.wantedTaints('east', 'east').length === 1);
    expect(await preempt(alone, 'east')).toEqual({});
  });

  test('are none where a member has the room, or its rules are not known', async () => {
    slots.set('east', 3);
    victims.delete('east');
    expect(await preempt(important('a'), 'east', 'west')).toEqual({});
    slots.clear();
    victims.set('west', { pods: [], violations: 0 });
    expect(await preempt(important('b'), 'west')).toEqual({});
    const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'unknown', uid: 'nobody', controller: true };
    const orphan = (name: string): Pod =>
      pod(name, { spec: { priority: 1_000 }, metadata: { ownerReferences: [owner], namespace: 'shop' } });
    api.fault = ({ query }) => (query['fieldSelector'] === 'metadata.name=unknown' ? { code: 500 } : undefined);
    expect(await preempt(orphan('c'), 'local-1')).toEqual({});
    // Once the host says that there is no such owner, there is nothing more to be known.
    api.fault = undefined;
    now += 20_000;
    expect(await preempt(orphan('d'), 'local-1')).toEqual({ 'local-1': 'uid-1,uid-2 1' });
  });

  test('are none for a pod that was deleted meanwhile', async () => {
    make(PODS, { apiVersion: 'v1', kind: 'Pod', ...important('a') });
    await seen('it is known', () => view.pods.get('shop/a') !== undefined);
    const asking = view.pods.get('shop/a') ?? important('a');
    api.edit(`${PODS}/a`, { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } });
    await seen('it leaves', () => view.hasLeft(asking));
    expect(await preempt({ ...important('a'), metadata: asking.metadata }, 'local-1', 'east')).toEqual({});
  });

  test('are none in a member with a cluster taint that no rules of the pod tolerate', async () => {
    const clusterTaints = [{ key: 'dear', effect: 'NoSchedule' }];
    const itself = { tolerations: [{ operator: 'Exists' }, TOLERATION] };
    const alone = {
      ...important('a', itself),
      metadata: pod('a', { metadata: { namespace: 'default', ownerReferences: [] } }).metadata,
    };
    expect(await preempt(alone, 'west')).toEqual({ west: 'of-west 0' });
    api.edit('/apis/spillway.dev/v1alpha1/memberclusters/west', { spec: { clusterTaints } });
    await seen('the taint is known', () => view.nodes.whyTainted('west', []) !== undefined);
    now += 20_000;
    expect(await preempt(alone, 'east', 'west')).toEqual({ east: 'of-east 0' });
    place({ clusterAffinity: { clusterNames: ['west'] } });
    await seen('the policy is known', () => [...view.policies.values()].length === 1);
    expect(await preempt(important('b', itself), 'local-1', 'west')).toEqual({});
  });

  test('are those that the scheduler chose for a pod of a DaemonSet, which has its node', async () => {
    const uid = await daemonSet();
    const matchFields = [{ key: 'metadata.name', operator: 'In', values: ['local-2'] }];
    const required = { nodeSelectorTerms: [{ matchFields }] };
    const of = (name: string, kind: string): Pod => ({
      ...important(name, { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: required } } }),
      metadata: {
        ...pod(name).metadata,
        labels: { app: 'logs' },
        ownerReferences: [{ apiVersion: kind, kind: 'DaemonSet', name: 'logs', uid, controller: true }],
      },
    });
    place({ clusterAffinity: { clusterNames: ['east'] } }, 'v1', 'Pod');
    await seen('the policy is known', () => [...view.policies.values()].length === 1);
    expect(await preempt(of('a', 'apps/v1'), 'local-2')).toEqual({ 'local-2': 'uid-1,uid-2 1' });
    expect(await preempt(of('b', 'example.com/v1'), 'local-2')).toEqual({});
  });

  test('behind a virtual node are of lower priority, there still, and counted with what budgets grant', async () => {
    const low = bound('low', 'east');
    const lower = bound('lower', 'east', 999);
    bound('same', 'east', 1_000);
    bound('done', 'east');
    bound('elsewhere', 'west');
    api.edit(`${PODS}/done`, { status: { phase: 'Succeeded' } });
    const isSeen = (): boolean => view.podsOn('east').some(({ status }) => status?.phase === 'Succeeded');
    await until('all are known', () => isSeen() && view.pods.size === 5, { intervalMs: 5 });
    budgets.covering = ({ metadata }) => (metadata.name === 'low' ? [{ key: 'shop/b', allowed: 2 }] : []);
    expect(await preempt(important('a'), 'east')).toEqual({ east: 'of-east 0' });
    const [asked] = candidates;
    const found = new Map(asked?.pods.map(({ uid, priority, budgets: grants }) => [uid, [priority, ...grants]]));
    expect(found).toEqual(
      new Map([
        [low, [0, { key: 'shop/b', allowed: 2 }]],
        [lower, [999]],
      ]),
    );
  });

  test('are only those that the scheduler chose while budgets cannot be read', async () => {
    bound('low', 'east');
    const chosen = bound('chosen', 'east');
    await until('both are known', () => view.podsOn('east').length === 2, { intervalMs: 5 });
    budgets.synced = false;
    const answer = await preemption.preempt({
      pod: important('a'),
      victims: new Map([['east', { uids: [chosen], violations: 1 }]]),
    });
    expect(candidates[0]?.pods.map(({ uid }) => uid)).toEqual([chosen]);
    expect(answer.NodeNameToMetaVictims['east']?.NumPDBViolations).toBe(1);
  });

  test('leave room that is held for the one they leave for, against all but higher ones, until it is bound or gives up', async () => {
    const made = make(PODS, { apiVersion: 'v1', kind: 'Pod', ...important('a') }) as unknown as Pod;
    const uid = made.metadata.uid ?? '';
    expect(await preempt(made, 'east')).toEqual({ east: 'of-east 0' });
    expect(reserved.size).toBe(0);
    api.edit(`${PODS}/a`, { status: { nominatedNodeName: 'east' } });
    await until('its room is held', () => reserved.get(uid) === 'east', { intervalMs: 5 });
    // As long as the victim has room in the member, nobody else is named.
    const nominated = { ...made, status: { nominatedNodeName: 'east' } };
    reserved.set('of-east', 'east');
    expect(await preempt(nominated, 'east')).toEqual({});
    reserved.delete('of-east');
    expect(await preempt(nominated, 'east')).toEqual({ east: 'of-east 0' });
    const seen: boolean[] = [];
    const fits = (name: string, priority: number): Promise<unknown> =>
      filter(pod(name, { spec: { priority } }), ['east']);
    asking = () => seen.push(reserved.has(uid));
    await fits('lower', 10);
    expect(new Set(seen.splice(0))).toEqual(new Set([true]));
    await fits('higher', 2_000);
    expect(new Set(seen.splice(0))).toEqual(new Set([false]));
    expect(reserved.get(uid)).toBe('east');
    // It is asked about itself, and has to wait still; what it holds does not stand in its own way.
    await filter(nominated, ['east']);
    expect(new Set(seen.splice(0))).toEqual(new Set([false]));
    expect(reserved.get(uid)).toBe('east');
    await preempt(nominated, 'east');
    expect(new Set(seen.splice(0))).toEqual(new Set([false]));
    expect(reserved.get(uid)).toBe('east');
    api.edit(`${PODS}/a`, { status: { nominatedNodeName: null } });
    await until('it is free again', () => !reserved.has(uid), { intervalMs: 5 });
  });

  test('are not those that were named for another one a moment ago, unless it comes after this one', async () => {
    const low = bound('low', 'east');
    const lower = bound('lower', 'east');
    await until('both are known', () => view.podsOn('east').length === 2, { intervalMs: 5 });
    victims.set('east', { pods: [asCandidate(low)], violations: 0 });
    const counted = async (one: Pod): Promise<string[]> => {
      candidates.length = 0;
      await preempt(one, 'east');
      return (candidates[0]?.pods ?? []).map(({ uid }) => uid).toSorted();
    };
    const both = [low, lower].toSorted();
    expect(await counted(important('a'))).toEqual(both);
    expect(await counted(important('b'))).toEqual([lower]);
    expect(await counted(important('higher', { priority: 2_000 }))).toEqual(both);
    now += 11_000;
    expect(await counted(important('c'))).toEqual(both);
  });

  test('leave nothing to a higher pod of a place that was told, though the pod was nominated there', async () => {
    const made = make(PODS, { apiVersion: 'v1', kind: 'Pod', ...important('a') }) as unknown as Pod;
    const uid = made.metadata.uid ?? '';
    const nominated = { ...made, status: { nominatedNodeName: 'east' } };
    api.edit(`${PODS}/a`, { status: { nominatedNodeName: 'east' } });
    await until('that is known', () => view.pods.get('shop/a')?.status?.nominatedNodeName === 'east', {
      intervalMs: 5,
    });
    await filter(nominated, ['east']);
    slots.set('east', 1);
    const seenHeld: boolean[] = [];
    const askedByHigher = async (): Promise<Set<boolean>> => {
      seenHeld.length = 0;
      asking = () => seenHeld.push(reserved.has(uid));
      await filter(pod('higher', { spec: { priority: 2_000 } }), ['east']);
      asking = undefined;
      return new Set(seenHeld);
    };
    expect(await askedByHigher()).toEqual(new Set([false]));
    place({ clusterAffinity: { clusterNames: ['east'] } });
    await until('the policy is known', () => view.policies.get('shop/p') !== undefined, { intervalMs: 5 });
    expect((await filter(nominated, ['east'])).NodeNames).toEqual(['east']);
    expect(await askedByHigher()).toEqual(new Set([true]));
    expect(reserved.get(uid)).toBe('east');
  });

  test('leave nothing for good to a pod that the watch never shows to be nominated', async () => {
    const nominated = { ...important('a'), status: { nominatedNodeName: 'east' } };
    await filter(nominated, ['east']);
    expect(reserved.has('uid-of-a')).toBe(true);
    for (let second = 0; second < 11; second += 1) {
      now += 1_000;
      // Whoever asks meanwhile does not make it longer.
      await filter(pod('b', { spec: { priority: 2_000 } }), ['west']);
    }
    expect(reserved.has('uid-of-a')).toBe(false);
  });

  describe('while they leave', () => {
    let made: Pod;
    const uidOf = ({ metadata }: Pod): string => metadata.uid ?? '';
    const nominated = (): Pod => ({ ...made, status: { nominatedNodeName: 'east' } });
    const answer = async (): Promise<[unresolvable: string[], others: string[]]> => {
      const { FailedAndUnresolvableNodes, FailedNodes = {} } = await filter(nominated(), ['east', 'west']);
      return [Object.keys(FailedAndUnresolvableNodes), Object.keys(FailedNodes)];
    };
    beforeEach(async () => {
      made = make(PODS, { apiVersion: 'v1', kind: 'Pod', ...important('a') }) as unknown as Pod;
      victims.delete('west');
      reserved.set('of-east', 'east');
      expect(await preempt(made, 'east')).toEqual({ east: 'of-east 0' });
    });

    test('the pod keeps its nomination: its node is not said to be unresolvable', async () => {
      expect(await answer()).toEqual([['west'], ['east']]);
      reserved.delete('of-east');
      expect(await answer()).toEqual([['east', 'west'], []]);
    });

    test('that is so for a process that does not know for whom they leave', async () => {
      reserved.delete('of-east');
      const low = bound('low', 'east');
      await until('it is known', () => view.podsOn('east').length === 1, { intervalMs: 5 });
      expect(await answer()).toEqual([['east', 'west'], []]);
      api.edit(`${PODS}/low`, { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } });
      const isLeaving = (): boolean =>
        view.podsOn('east').some(({ metadata }) => metadata.uid === low && metadata.deletionTimestamp !== undefined);
      await until('it leaves', isLeaving, { intervalMs: 5 });
      expect(await answer()).toEqual([['west'], ['east']]);
    });

    test('a second extender of the same scheduler, which is shown what the first one answered, answers the same', async () => {
      const again = async (uids: readonly string[]): Promise<unknown> => {
        const asked = new Map([['east', { uids, violations: 0 }]]);
        return (await preemption.preempt({ pod: made, victims: asked })).NodeNameToMetaVictims;
      };
      expect(await again(['of-east'])).toEqual({ east: { Pods: [{ UID: 'of-east' }], NumPDBViolations: 0 } });
      expect(await again(['of-east', 'uid-1'])).toEqual({});
      // What is asked later is another attempt: those that were named leave already.
      now += 1_000;
      expect(await again(['of-east'])).toEqual({});
    });

    test('a scheduler that did not wait for the answer is answered anew, as nobody leaves for it', async () => {
      const asked = new Map([['east', proposed]]);
      await preemption.preempt({ pod: important('b'), victims: asked }, AbortSignal.abort());
      expect(await preempt(important('b'), 'east')).toEqual({ east: 'of-east 0' });
      now += 11_000;
      const waits = new AbortController();
      const answered = await preemption.preempt({ pod: made, victims: asked }, waits.signal);
      expect(answered).toEqual({
        NodeNameToMetaVictims: { east: { Pods: [{ UID: 'of-east' }], NumPDBViolations: 0 } },
      });
      expect(await preempt(made, 'east')).toEqual({});
      waits.abort();
      expect(await preempt(made, 'east')).toEqual({ east: 'of-east 0' });
      // What was said since is not taken back.
      expect(await preempt(made, 'east')).toEqual({});
    });

    test('nobody else is named for a question that is older than the nomination, but not for ever', async () => {
      now += 5_000;
      expect(await preempt(made, 'east')).toEqual({});
      now += 6_000;
      expect(await preempt(made, 'east')).toEqual({ east: 'of-east 0' });
    });

    test('one that nobody deleted after all, or whose member does not answer, is not waited for', async () => {
      const low = bound('low', 'east');
      await until('it is known', () => view.podsOn('east').length === 1, { intervalMs: 5 });
      victims.set('east', { pods: [asCandidate(low)], violations: 0 });
      now += 11_000;
      expect(await preempt(made, 'east')).toEqual({ east: `${low} 0` });
      reserved.set(low, 'east');
      expect(await preempt(nominated(), 'east')).toEqual({});
      now += 11_000;
      expect(await preempt(nominated(), 'east')).toEqual({ east: `${low} 0` });
      now += 11_000;
      api.edit(`${PODS}/low`, { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } });
      const isLeaving = (): boolean =>
        view.podsOn('east').some(({ metadata }) => metadata.deletionTimestamp !== undefined);
      await until('it leaves', isLeaving, { intervalMs: 5 });
      expect(await preempt(nominated(), 'east')).toEqual({});
    });

    test('what they leave is held for a pod that lost its nomination meanwhile, as long as its next try may take', async () => {
      api.edit(`${PODS}/a`, { status: { nominatedNodeName: 'east' } });
      await until('its room is held', () => reserved.get(uidOf(made)) === 'east', { intervalMs: 5 });
      api.edit(`${PODS}/a`, { status: { nominatedNodeName: null } });
      const isSeen = (): boolean => view.pods.get('shop/a')?.status?.nominatedNodeName === undefined;
      await until('it is not nominated any more', isSeen, { intervalMs: 5 });
      reserved.delete('of-east');
      // Nothing may happen in the host any more that wakes the pod, but the word that is given every 20 s.
      now += 22_000;
      await filter(pod('lower'), ['east']);
      expect(reserved.get(uidOf(made))).toBe('east');
      now += 4_000;
      await filter(pod('lower'), ['east']);
      expect(reserved.has(uidOf(made))).toBe(false);
    });
  });
});
