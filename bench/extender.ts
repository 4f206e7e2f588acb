import { pino } from 'pino';
import { Registry } from 'prom-client';
import type { Say } from '../hack/progress.ts';
import { until } from '../hack/until.ts';
import { scoringConfig } from '../src/api/scoring.ts';
import type { Pod } from '../src/kube/core-v1.ts';
import type { MemberCapacity } from '../src/capacity/member-capacity.ts';
import { HOST_LABEL, NODE_LABEL, UID_LABEL } from '../src/api/marks.ts';
import { Extender } from '../src/scheduler/extender.ts';
import { parseExtenderArgs, parsePreemptionArgs } from '../src/scheduler/extender-wire.ts';
import { HostView } from '../src/scheduler/host-view.ts';
import { PlacementQuestions } from '../src/scheduler/placement-questions.ts';
import { Nominees } from '../src/scheduler/nominees.ts';
import { Preemption } from '../src/scheduler/preemption.ts';
import { HeldRooms } from '../src/scheduler/held-rooms.ts';
import { schedulerMetrics } from '../src/scheduler/scheduler-metrics.ts';
import { WorkloadState } from '../src/scheduler/workload-state.ts';
import { VirtualNodeFit } from '../src/manager/virtual-node-fit.ts';
import { MemoryApi } from '../test/fixtures/memory-api.ts';
import { serveMemoryApi } from '../test/fixtures/memory-api-server.ts';
import { monotonic } from '../src/kube/clock.ts';
import { benchNode, memberWith } from './bench-members.ts';
import { median, type Measurement, type SuiteReport } from './measurement.ts';
import { figureOf, p99 } from './sampled-figures.ts';
import { samplePod } from './sample-pod.ts';

const MEMBERS = 100;
const NODES = 1_000;
const PODS = 10_000;
const LOCAL_NODES = 50;
const WORKLOADS = 200;
const QUESTIONS = 2_000;
const PREEMPTIONS = 1_000;
/** What only nodes with pods of ours have, one each, such as a GPU: no other pod fits there unless one leaves. */
const SEAT = 'bench.example/seat';
/** Namespaces by what says that their pods may leave the host. */
const BURST = 'burst';
const DIVIDED = 'divided';

/** What answering kube-scheduler costs in the process, with a large fleet in its caches. */
export async function extender(say: Say): Promise<SuiteReport> {
  say(`extender: ${MEMBERS} members of ${NODES} nodes, ${PODS} pods`);
  const members = Array.from({ length: MEMBERS }, (_, index) => memberWith(NODES, PODS / MEMBERS, index));
  const api = new MemoryApi();
  const workloads = fillHost(api);
  const server = await serveMemoryApi(api);
  const stop = new AbortController();
  const logger = pino({ level: 'silent' });
  const clock = Date.now;
  const view = new HostView({ host: server.client('host'), logger, monotonic });
  const running = view.run(stop.signal);
  try {
    await until('the caches are complete', () => view.hasSynced && view.pods.size === PODS, { timeoutMs: 60_000 });
    const book = new WorkloadState({ stored: () => undefined, clock, monotonic });
    const rooms = new Map(members.map((capacity, index) => [nodeName(index), roomOf(capacity, index)]));
    const capacityOf = (name: string): VirtualNodeFit | undefined => rooms.get(name);
    const questions = new PlacementQuestions({
      view,
      workloads: book,
      capacityOf,
      signals: () => new Map(),
      scoring: scoringConfig.parse({}),
      clock,
    });
    const heldRooms = new HeldRooms(capacityOf, monotonic);
    const nominees = new Nominees({
      capacityOf,
      heldRooms,
      isVirtual: (name) => rooms.has(name),
      podsOn: (name) => view.podsOn(name),
      nominationOf: (pod) => view.nominationOf(pod),
      monotonic,
    });
    // Each workload has a budget that grants one eviction.
    const covering = ({ metadata }: Pod): { key: string; allowed: number }[] => [
      { key: `${metadata.namespace ?? ''}/${metadata.labels?.['app'] ?? ''}`, allowed: 1 },
    ];
    const migrationFit = { isAsking: false };
    const budgets = { synced: true, covering };
    const state = { whyNotYet: async () => await Promise.resolve(undefined), isAwaitedFor: () => false };
    const preemption = new Preemption({ view, questions, capacityOf, budgets, nominees, migrationFit, state });
    const asked = new Extender({
      view,
      workloads: book,
      questions,
      heldRooms,
      nominees,
      migrationFit,
      waiting: { answered: () => undefined, resyncIn: () => undefined },
      annotationProblem: (_chain, problem) => {
        throw new Error(problem);
      },
      unread: (_pod, problem) => {
        throw new Error(problem);
      },
      state,
      metrics: schedulerMetrics(new Registry()),
      monotonic,
    });
    const decided = await measure(asked, workloads);
    for (const [index, member] of members.entries()) takeSeats(member, index, view.podsOn(nodeName(index)));
    const evicted = await measurePreemption(preemption, workloads, view);
    return {
      suite: 'extender',
      failures: [],
      measurements: [...decided.measurements, ...evicted.measurements],
      notes: [...decided.notes, ...evicted.notes],
    };
  } finally {
    stop.abort();
    await running;
    await server.close();
  }
}

/** A workload of the host, with the ReplicaSet that its pods belong to. */
interface Workload {
  namespace: string;
  name: string;
  setUid: string;
  shape: number;
}

/** Members, nodes, workloads and their pods, half of them in a namespace with a policy. */
function fillHost(api: MemoryApi): Workload[] {
  const make = (path: string, body: object): string => {
    const made = api.handle({ method: 'POST', path, query: {}, body, contentType: 'application/json' });
    return (made['metadata'] as { uid: string }).uid;
  };
  make('/api/v1/namespaces', { metadata: { name: BURST, labels: { 'spillway.dev/burst': 'enabled' } } });
  make('/api/v1/namespaces', { metadata: { name: DIVIDED } });
  for (let index = 0; index < MEMBERS; index++) {
    const name = nodeName(index);
    make('/apis/spillway.dev/v1alpha1/memberclusters', memberCluster(name));
    make('/api/v1/nodes', node(name, { 'spillway.dev/member': name, type: 'virtual-kubelet' }));
  }
  for (let index = 0; index < LOCAL_NODES; index++) make('/api/v1/nodes', node(`local-${index}`, {}));
  make(`/apis/spillway.dev/v1alpha1/namespaces/${DIVIDED}/placementpolicies`, {
    apiVersion: 'spillway.dev/v1alpha1',
    kind: 'PlacementPolicy',
    metadata: { name: 'by-room', namespace: DIVIDED, generation: 1 },
    spec: {
      resourceSelectors: [{ apiVersion: 'apps/v1', kind: 'Deployment' }],
      placement: { replicaScheduling: { weightPreference: { dynamicWeight: 'AvailableReplicas' } } },
    },
  });
  const workloads = Array.from({ length: WORKLOADS }, (_, index): Workload => {
    const namespace = index % 2 === 0 ? BURST : DIVIDED;
    const name = `service-${index}`;
    const apps = `/apis/apps/v1/namespaces/${namespace}`;
    const spec = { replicas: PODS / WORKLOADS + QUESTIONS / WORKLOADS };
    const uid = make(`${apps}/deployments`, {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name, namespace },
      spec,
    });
    const setUid = make(`${apps}/replicasets`, {
      apiVersion: 'apps/v1',
      kind: 'ReplicaSet',
      metadata: {
        name: `${name}-1`,
        namespace,
        labels: { 'pod-template-hash': 'one' },
        ownerReferences: [{ apiVersion: 'apps/v1', kind: 'Deployment', name, uid, controller: true }],
      },
      spec,
    });
    return { namespace, name, setUid, shape: index % 40 };
  });
  for (let index = 0; index < PODS; index++) {
    const workload = workloads[index % WORKLOADS];
    if (workload === undefined) throw new Error('no workloads');
    const { metadata, ...pod } = podOf(workload, `held-${index}`);
    const at = Math.floor(index / WORKLOADS) * 7 + (index % WORKLOADS);
    make(`/api/v1/namespaces/${workload.namespace}/pods`, {
      ...pod,
      metadata: { ...metadata, uid: undefined },
      spec: { ...pod.spec, nodeName: nodeName(at % MEMBERS) },
      status: { phase: 'Running' },
    });
  }
  return workloads;
}

function nodeName(index: number): string {
  return `m${index}`;
}

function memberCluster(name: string): object {
  const ready = { type: 'Ready', status: 'True', reason: 'Ready', message: '', lastTransitionTime: AT };
  return {
    apiVersion: 'spillway.dev/v1alpha1',
    kind: 'MemberCluster',
    metadata: { name },
    spec: { credentials: { secretRef: { namespace: 'spillway-system', name } } },
    status: { conditions: [ready] },
  };
}

const AT = '2026-01-01T00:00:00Z';

function node(name: string, labels: Record<string, string>): object {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels: { ...labels, 'kubernetes.io/hostname': name } },
    spec: 'type' in labels ? { taints: [{ key: 'spillway.dev/virtual-node', effect: 'NoSchedule' }] } : {},
  };
}

function podOf(workload: Workload, name: string): Pod {
  const { namespace, setUid, shape } = workload;
  const owner = {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    name: `${workload.name}-1`,
    uid: setUid,
    controller: true,
  };
  const sample = samplePod(0);
  const { nodeName: _, ...spec } = sample.spec;
  const [container] = spec.containers;
  const resources = { requests: { cpu: `${100 + shape * 50}m`, memory: '256Mi' } };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: `${workload.name}-1-${name}`,
      namespace,
      uid: `uid-of-${workload.name}-${name}`,
      creationTimestamp: new Date().toISOString(),
      labels: { app: workload.name, 'pod-template-hash': 'one' },
      ownerReferences: [owner],
    },
    spec: { ...spec, containers: container === undefined ? [] : [{ ...container, resources }] },
  };
}

function roomOf(capacity: MemberCapacity, index: number): VirtualNodeFit {
  const member = nodeName(index);
  const none: never[] = [];
  return new VirtualNodeFit({
    nodeName: member,
    member,
    capacity,
    ready: () => true,
    memberNamespaceOf: (namespace) => namespace,
    modeOf: () => ({ mode: 'None' }),
    translateContext: (_pod, memberNamespace) => ({
      hostId: 'bench',
      nodeName: member,
      member,
      memberNamespace,
      serviceEnv: [],
    }),
    depends: () => none,
    claimRefusal: () => undefined,
    clock: Date.now,
    volumePlaces: () => none,
    readHasNode: async () => await Promise.resolve(undefined),
    policiesAreKnown: () => true,
    imageShare: () => undefined,
    policies: () => none,
    render: () => {
      throw new Error('there are no override policies');
    },
  });
}

async function measure(
  extender: Extender,
  workloads: readonly Workload[],
): Promise<{ measurements: Measurement[]; notes: string[] }> {
  // The host's own nodes are full: kube-scheduler asks about the others.
  const NodeNames = Array.from({ length: MEMBERS }, (_, index) => nodeName(index));
  const cpu: number[] = [];
  const ask = async (workload: Workload, name: string): Promise<number> => {
    const body = JSON.stringify({ Pod: podOf(workload, name), NodeNames });
    const [began, before] = [performance.now(), process.cpuUsage()];
    const args = parseExtenderArgs(JSON.parse(body));
    const result = await extender.filter(args);
    JSON.stringify(result);
    if (result.NodeNames.length === 0) throw new Error(`${workload.name} fits nowhere`);
    JSON.stringify(extender.prioritize({ pod: args.pod, nodeNames: result.NodeNames }));
    const { user, system } = process.cpuUsage(before);
    cpu.push((user + system) / 1000);
    return performance.now() - began;
  };
  const first: number[] = [];
  for (const workload of workloads) first.push(await ask(workload, 'first'));
  const [all, burst, divided]: [number[], number[], number[]] = [[], [], []];
  cpu.length = 0;
  for (let index = 0; index < QUESTIONS; index++) {
    const workload = workloads[index % workloads.length];
    if (workload === undefined) throw new Error('no workloads');
    const took = await ask(workload, `asked-${index}`);
    all.push(took);
    (workload.namespace === BURST ? burst : divided).push(took);
    // What is due meanwhile gets its turn, as between two requests.
    if (index % 50 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  const figure = figureOf('extender: filter and prioritize');
  return {
    measurements: [
      figure('p99', all, p99, 5),
      figure('median', all, median),
      figure('burst by label, p99', burst, p99),
      figure('division by free room, p99', divided, p99),
      figure('first pod of a workload, p99', first, p99),
      figure('CPU time, p99', cpu, p99),
      figure('CPU time, median', cpu, median),
    ],
    notes: [
      `In the process, JSON of question and answers included: ${QUESTIONS} questions about pods of ${WORKLOADS} workloads, half of ` +
        `them in a namespace that may burst, half divided by free room; ${MEMBERS} members with ${NODES} nodes and one virtual node ` +
        `each pass the scheduler's own checks; ${PODS} pods run. What is decided is set aside, so that each question finds another state.`,
    ],
  };
}

/** Each pod of the host has a node of the member with one seat, and takes that. */
function takeSeats(member: MemberCapacity, index: number, pods: readonly Pod[]): void {
  // Every tenth node is tainted.
  const rows = Array.from({ length: NODES }, (_, row) => row).filter((row) => row % 10 !== 0);
  for (const [number, { metadata }] of pods.entries()) {
    const row = rows[number] ?? 0;
    const before = benchNode(`${nodeName(index)}-n${String(row)}`, row);
    const allocatable = { ...before.status?.allocatable, [SEAT]: '1' };
    member.nodeHandler.updated({ ...before, status: { ...before.status, allocatable } });
    member.podHandler.added({
      metadata: {
        name: metadata.name,
        namespace: 'bench',
        uid: `copy-of-${metadata.uid ?? ''}`,
        labels: { [HOST_LABEL]: 'bench', [NODE_LABEL]: nodeName(index), [UID_LABEL]: metadata.uid ?? '' },
      },
      spec: {
        nodeName: before.metadata.name,
        containers: [{ name: 'main', resources: { requests: { cpu: '100m', [SEAT]: '1' } } }],
      },
      status: { phase: 'Running' },
    });
  }
}

async function measurePreemption(
  preemption: Preemption,
  workloads: readonly Workload[],
  view: HostView,
): Promise<{ measurements: Measurement[]; notes: string[] }> {
  // kube-scheduler, which knows the virtual node as one, names some pod of each.
  const proposed = Array.from({ length: MEMBERS }, (_, index): [string, object] => {
    const uid = view.podsOn(nodeName(index))[0]?.metadata.uid;
    return [nodeName(index), { Pods: [{ UID: uid }], NumPDBViolations: 0 }];
  });
  const ask = async (workload: Workload, podName: string): Promise<number> => {
    const pod = podOf(workload, podName);
    const [container] = pod.spec.containers;
    const containers = [{ name: 'main', ...container, resources: { requests: { cpu: '100m', [SEAT]: '1' } } }];
    const body = JSON.stringify({
      Pod: { ...pod, spec: { ...pod.spec, priority: 1_000, containers } },
      NodeNameToMetaVictims: Object.fromEntries(proposed),
    });
    const began = performance.now();
    const { NodeNameToMetaVictims: found } = await preemption.preempt(parsePreemptionArgs(JSON.parse(body)));
    JSON.stringify(found);
    const took = performance.now() - began;
    const victims = Object.values(found).map(({ Pods }) => Pods.length);
    if (victims.length === 0 || victims.some((count) => count !== 1))
      throw new Error(`not one victim: ${victims.join()}`);
    return took;
  };
  const first: number[] = [];
  for (const workload of workloads) first.push(await ask(workload, 'first-important'));
  const [all, burst, divided]: [number[], number[], number[]] = [[], [], []];
  for (let index = 0; index < PREEMPTIONS; index++) {
    const workload = workloads[index % workloads.length];
    if (workload === undefined) throw new Error('no workloads');
    const took = await ask(workload, `important-${index}`);
    all.push(took);
    (workload.namespace === BURST ? burst : divided).push(took);
    if (index % 50 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  const figure = figureOf('extender: preempt');
  return {
    measurements: [
      figure('p99', all, p99, 5),
      figure('median', all, median),
      figure('burst by label, p99', burst, p99),
      figure('division by free room, p99', divided, p99),
      figure('first pod of a workload, p99', first, p99),
    ],
    notes: [
      `Preemption: ${PREEMPTIONS} questions about all ${MEMBERS} virtual nodes at once, for pods of high priority that need what ` +
        `only ${PODS / MEMBERS} nodes of each member have, all of it taken by the ${PODS} pods that run: any of these may be the victim.`,
    ],
  };
}
