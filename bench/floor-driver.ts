/**
 * The floor: a program that runs host pods in a member with the necessary API calls and nothing else. No caches, no
 * safety, no retries, no kubelet port. How fast it is says what the API servers, the scheduler and this machine allow.
 * Usage: floor-driver.js CONFIG.json; prints `ready` once both watches run.
 */
import { readFileSync } from 'node:fs';
import { PlainApi, RefusedError, type PlainAccess } from './plain-api.ts';

export interface FloorConfig {
  host: PlainAccess;
  member: PlainAccess;
  /** Name of the virtual node, and value of the label on member pods. */
  node: string;
  /** Requests under way at most, for each cluster. */
  connections: number;
}

interface Volume {
  name: string;
}
interface Container {
  volumeMounts?: Volume[];
}
interface Pod {
  metadata: {
    name: string;
    namespace: string;
    uid: string;
    labels?: Record<string, string>;
    deletionTimestamp?: string;
    deletionGracePeriodSeconds?: number;
  };
  spec: { volumes?: Volume[]; containers: Container[]; [field: string]: unknown };
  status: { phase?: string; [field: string]: unknown };
}
interface PodEvent {
  type: string;
  object: Pod;
}

const LABEL = 'floor.bench/node';
const LEASE_SECONDS = 10;

const config = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as FloorConfig;
const host = new PlainApi(config.host, config.connections);
const member = new PlainApi(config.member, config.connections);
const stop = new AbortController();
/** Pods by path: what was already asked for, so that no call is made twice. */
const done = new Map<string, 'created' | 'running' | 'deleted'>();

function pathOf(pod: Pod): string {
  return `/api/v1/namespaces/${pod.metadata.namespace}/pods/${pod.metadata.name}`;
}

function onHostEvent(line: Buffer): void {
  const { type, object: pod } = JSON.parse(line.toString()) as PodEvent;
  const path = pathOf(pod);
  const state = done.get(path);
  if (type === 'DELETED') {
    done.delete(path);
  } else if (pod.metadata.deletionTimestamp !== undefined) {
    if (state === undefined || state === 'deleted') return;
    done.set(path, 'deleted');
    send(member.change('DELETE', path, { gracePeriodSeconds: pod.metadata.deletionGracePeriodSeconds }));
  } else if (state === undefined) {
    done.set(path, 'created');
    send(member.change('POST', `/api/v1/namespaces/${pod.metadata.namespace}/pods`, memberPod(pod)));
  }
}

function onMemberEvent(line: Buffer): void {
  const { type, object: pod } = JSON.parse(line.toString()) as PodEvent;
  const path = pathOf(pod);
  if (type === 'DELETED') {
    send(host.change('DELETE', path, { gracePeriodSeconds: 0 }));
  } else if (pod.status.phase === 'Running' && done.get(path) === 'created') {
    done.set(path, 'running');
    const { qosClass: _, ...status } = pod.status;
    send(host.change('PATCH', `${path}/status`, { status }, 'application/strategic-merge-patch+json'));
  }
}

/** The host pod without its node and without the service account token that admission put in. */
function memberPod(pod: Pod): object {
  const { nodeName: _node, serviceAccount: _sa, serviceAccountName: _name, volumes = [], ...spec } = pod.spec;
  const injected = new Set(volumes.map(({ name }) => name).filter((name) => name.startsWith('kube-api-access-')));
  const kept = <T extends Volume>(list: T[]): T[] => list.filter(({ name }) => !injected.has(name));
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: pod.metadata.name, labels: { ...pod.metadata.labels, [LABEL]: config.node } },
    spec: {
      ...spec,
      automountServiceAccountToken: false,
      volumes: kept(volumes),
      containers: spec.containers.map((one) => ({ ...one, volumeMounts: kept(one.volumeMounts ?? []) })),
    },
  };
}

/** Any refusal ends the program: a floor that lost a pod would be no floor. */
function send(call: Promise<void>): void {
  call.catch((error: unknown) => {
    if (stop.signal.aborted || (error instanceof RefusedError && error.code === 404)) return;
    console.error(error);
    process.exit(1);
  });
}

async function registerNode(): Promise<void> {
  const now = new Date().toISOString();
  const resources = { cpu: '10000', memory: '10000Gi', pods: '100000' };
  await host.change('POST', '/api/v1/nodes', {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: config.node, labels: { type: 'virtual-kubelet' } },
    spec: { taints: [{ key: 'floor.bench/node', effect: 'NoSchedule' }] },
    status: {
      capacity: resources,
      allocatable: resources,
      conditions: [{ type: 'Ready', status: 'True', reason: 'Floor', lastHeartbeatTime: now, lastTransitionTime: now }],
    },
  });
  await host.change('POST', '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases', {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: config.node },
    spec: leaseSpec(),
  });
}

function leaseSpec(): object {
  const renewTime = new Date().toISOString().replace('Z', '000Z');
  return { holderIdentity: config.node, leaseDurationSeconds: 40, renewTime };
}

function renewLease(): void {
  const path = `/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${config.node}`;
  send(host.change('PATCH', path, { spec: leaseSpec() }, 'application/merge-patch+json'));
}

process.once('SIGTERM', () => stop.abort());
await registerNode();
const heartbeat = setInterval(renewLease, LEASE_SECONDS * 1000);
let starting = 2;
const onStart = (): void => {
  starting -= 1;
  if (starting === 0) console.log('ready');
};
await Promise.all([
  host.watch(`/api/v1/pods?fieldSelector=spec.nodeName%3D${config.node}`, stop.signal, onHostEvent, onStart),
  member.watch(
    `/api/v1/pods?labelSelector=${encodeURIComponent(LABEL)}%3D${config.node}`,
    stop.signal,
    onMemberEvent,
    onStart,
  ),
]);
clearInterval(heartbeat);
await Promise.all([host.close(), member.close()]);
