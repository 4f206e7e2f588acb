import type { JsonObject } from '../../src/kube/json-equal.ts';
import type { SimObject } from './sim-cluster.ts';

/**
 * A world with little room: small nodes, some of them for pods with GPUs only, and a host that is too old to know all fields of a Node.
 */

/** On a pod, or on the ReplicaSet that makes it and on nothing else: which rules it lives by. */
export const RULE = 'example.com/rule';
/** In members of a tier pods wait so long before the next one is tried, by rule, in ms. */
export const WAITS: Readonly<Record<string, number>> = { now: 0, later: 60_000 };
/** The members in which pods of these rules are to be, the first one where there is room. */
export const TIERS = ['west', 'east'] as const;
/** Of the rule by which pods stay in the host. */
export const HERE = 'here';
/** Of the rule by which pods are divided between members by the room that these have. */
export const BY_ROOM = 'room';
/** On a pod: in a member its container asks for one CPU, whatever it asks for in the host. */
export const SHRINKS = 'example.com/shrinks';
export const SHRUNK_CPU = 1;

export const GPU = 'example.com/gpu';
const GPU_TAINT = { key: 'gpu', value: 'yes', effect: 'NoSchedule' };
export const GPU_TOLERATION = { ...GPU_TAINT, operator: 'Equal' };
const KIND = 'example.com/kind';

interface SmallNode {
  readonly name: string;
  readonly cpu: string;
  readonly gpu?: string;
}

/** Nodes by the cluster that they belong to. */
export const SMALL_NODES: Readonly<Record<string, readonly SmallNode[]>> = {
  host: [
    { name: 'real-1', cpu: '2' },
    { name: 'real-2', cpu: '2' },
  ],
  east: [
    { name: 'east-1', cpu: '4' },
    { name: 'east-2', cpu: '4' },
    { name: 'east-3', cpu: '2', gpu: '2' },
  ],
  west: [
    { name: 'west-1', cpu: '4' },
    { name: 'west-2', cpu: '3' },
  ],
};

/** Pools of members: each stands for the nodes of its kind. */
export const SMALL_POOLS: Readonly<Record<string, readonly JsonObject[]>> = {
  east: [
    { name: 'gen', nodeSelector: { [KIND]: 'gen' } },
    { name: 'gpu', nodeSelector: { [KIND]: 'gpu' }, taints: [GPU_TAINT] },
  ],
  west: [{ name: 'gen', nodeSelector: { [KIND]: 'gen' } }],
};

/** There is a MemberCluster of that name, which nobody has credentials of: its virtual nodes would have the names of the host's own nodes. */
export const MISNAMED = { name: 'real', pools: [{ name: '1' }, { name: '2' }] };

/** Whether the member's node is one of those behind the virtual node. */
export function standsFor(virtualNode: string, node: SimObject): boolean {
  return virtualNode.endsWith(`-${node.metadata.labels?.[KIND] ?? ''}`);
}

export function smallNode({ name, cpu, gpu }: SmallNode): JsonObject {
  const resources = { cpu, memory: '64Gi', pods: '110', ...(gpu === undefined ? {} : { [GPU]: gpu }) };
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name,
      labels: {
        'kubernetes.io/hostname': name,
        'kubernetes.io/os': 'linux',
        'kubernetes.io/arch': 'amd64',
        [KIND]: gpu === undefined ? 'gen' : 'gpu',
      },
    },
    spec: gpu === undefined ? {} : { taints: [GPU_TAINT] },
    status: {
      capacity: resources,
      allocatable: resources,
      conditions: [{ type: 'Ready', status: 'True', reason: 'KubeletReady', message: '' }],
      nodeInfo: { kubeletVersion: 'v1.36.0', operatingSystem: 'linux', architecture: 'amd64' },
    },
  };
}

/** What a host stores that does not know `declaredFeatures` of Nodes yet. */
export function asOldHostReads(path: string, body: JsonObject | undefined): JsonObject | undefined {
  const status = body?.['status'];
  if (!path.startsWith('/api/v1/nodes') || typeof status !== 'object' || status === null || Array.isArray(status)) {
    return body;
  }
  const { declaredFeatures: _dropped, ...known } = status as JsonObject;
  return { ...body, status: known };
}
