import { MEMBER_LABEL, NODE_LABEL, NOT_READY_TAINT, UNREACHABLE_TAINT, VIRTUAL_NODE_TAINT } from '../api/marks.ts';
import type { MemberClusterSpec } from '../api/member-cluster.ts';
import { providerIdOf } from '../api/provider-id.ts';
import { unreadyReason } from '../api/unreachable.ts';
import type { NodeSystemInfo, ResourceList, Taint } from '../kube/core-v1.ts';
import type { PoolFacts } from '../capacity/pool-facts.ts';
import { declaredFeatures } from './declared-features.ts';
import type { DesiredCondition, DesiredNode } from './desired-node.ts';
import { REACHABLE_CONDITION } from './node-marks.ts';

/** What is known of a virtual node at the moment. */
export interface NodeFacts {
  name: string;
  member: string;
  spec: Pick<MemberClusterSpec, 'region' | 'zones' | 'labels' | 'taints' | 'taintMode' | 'unschedulable'>;
  /** The spec does not want it any more: it takes no new pods. */
  retiring?: boolean;
  /** Labels that choose the member's nodes behind it; undefined once the spec does not say. */
  selector?: Record<string, string> | undefined;
  /** What the member's nodes have in common; undefined until all of them are known. */
  pool: PoolFacts | undefined;
  /** What it can offer; undefined until all nodes and pods of the member are known. */
  offer: { capacity: ResourceList; allocatable: ResourceList } | undefined;
  /** Version of the member's API server. */
  memberVersion: string | undefined;
  /** Where the host's API server reaches the kubelet port of this node; an IP address that is not loopback. */
  address: string;
  kubeletPort: number;
  /** Undefined before the first probe: then nothing is said about it. */
  reachable: boolean | undefined;
  /** Why it is not reachable: the reason of condition `Reachable`, and words for people. */
  failure?: { reason: string; message: string } | undefined;
  /** It is to be ready only while its member is reachable. */
  failsWithMember?: boolean;
  /** While the member is not reachable: in how many ms it has not been for so long that it counts (`podsUnreadyAfterSeconds`). */
  unreadyInMs?: number | undefined;
}

const ZONE_LABEL = 'topology.kubernetes.io/zone';
const REGION_LABEL = 'topology.kubernetes.io/region';

/** The Node that stands for these facts. */
export function renderNode(facts: NodeFacts): DesiredNode {
  const { name, member, spec, pool, offer, memberVersion, address, kubeletPort, reachable } = facts;
  return {
    name,
    member,
    providerID: providerIdOf(member, name),
    labels: nodeLabels(facts),
    labelsComplete: pool !== undefined,
    taints: taintsOf(facts),
    undecidedTaints: reachable === undefined ? [UNREACHABLE_TAINT, NOT_READY_TAINT] : [],
    unschedulable: spec.unschedulable || facts.retiring === true,
    pool: facts.retiring === true ? undefined : facts.selector,
    // No Hostname entry: API servers prefer it by default and would have to resolve it.
    addresses: [{ type: 'InternalIP', address }],
    kubeletPort,
    conditions: [readyCondition(facts), ...AGENT_CONDITIONS, reachableCondition(facts)],
    changesInMs: facts.failsWithMember === true && isWaiting(facts) ? facts.unreadyInMs : undefined,
    nodeInfo: pool === undefined ? undefined : (pool.nodeInfo ?? emptyPoolInfo(facts)),
    capacity: offer?.capacity,
    allocatable: offer?.allocatable,
    declaredFeatures: declaredFeatures(pool?.declaredFeatures, memberVersion),
  };
}

/** Later entries win: what all nodes of the pool share, then the member's place, then the admin's words, then our marks. */
export function nodeLabels({
  name,
  member,
  spec,
  pool,
}: Pick<NodeFacts, 'name' | 'member' | 'spec' | 'pool'>): Record<string, string> {
  const region = spec.region ?? pool?.region;
  const zone = spec.zones.length === 1 ? spec.zones[0] : pool?.zone;
  return {
    ...pool?.labels,
    ...(region === undefined ? {} : { [REGION_LABEL]: region }),
    ...(zone === undefined ? {} : { [ZONE_LABEL]: zone }),
    ...spec.labels,
    'kubernetes.io/hostname': name,
    'kubernetes.io/os': pool?.os ?? 'linux',
    ...(pool?.arch === undefined ? {} : { 'kubernetes.io/arch': pool.arch }),
    type: 'virtual-kubelet',
    'node.kubernetes.io/exclude-from-external-load-balancers': 'true',
    [NODE_LABEL]: name,
    [MEMBER_LABEL]: member,
  };
}

/** NoExecute stands there as NoSchedule: Kubernetes would evict all pods of a cluster at once; the descheduler moves them in turn. */
function taintsOf({ spec, reachable, failure }: NodeFacts): Taint[] {
  const own: Taint[] = [];
  if (spec.taintMode !== 'None') own.push({ key: VIRTUAL_NODE_TAINT, effect: spec.taintMode });
  if (reachable !== true) own.push({ key: taintFor(failure?.reason), effect: 'NoSchedule' });
  const onNode = spec.taints.map((taint) =>
    taint.effect === 'NoExecute' ? { ...taint, effect: 'NoSchedule' as const } : taint,
  );
  const isFirst = ({ key, effect }: Taint, index: number): boolean =>
    onNode.findIndex((one) => one.key === key && one.effect === effect) === index;
  return [...own, ...onNode.filter(isFirst)];
}

/** As on the Node of a kubelet: unreachable where nothing is heard, not ready where it is there and cannot serve. */
function taintFor(reason: string | undefined): string {
  return reason === undefined || unreadyReason(reason) === 'MemberUnreachable' ? UNREACHABLE_TAINT : NOT_READY_TAINT;
}

/** Pressure on a member's nodes is the business of the member's scheduler; the room it leaves is in allocatable. */
const AGENT_CONDITIONS: readonly DesiredCondition[] = [
  {
    type: 'MemoryPressure',
    status: 'False',
    reason: 'KubeletHasSufficientMemory',
    message: 'allocatable shows the memory that is left',
  },
  {
    type: 'DiskPressure',
    status: 'False',
    reason: 'KubeletHasNoDiskPressure',
    message: 'a virtual node has no disk of its own',
  },
  {
    type: 'PIDPressure',
    status: 'False',
    reason: 'KubeletHasSufficientPID',
    message: 'a virtual node runs no processes of its own',
  },
  {
    type: 'NetworkUnavailable',
    status: 'False',
    reason: 'MemberNetwork',
    message: 'the network of pods is that of the member cluster',
  },
];

/** The member has not been out of reach for long enough. */
function isWaiting({ reachable, unreadyInMs }: NodeFacts): boolean {
  return reachable === false && unreadyInMs !== undefined && unreadyInMs > 0;
}

const READY: DesiredCondition = {
  type: 'Ready',
  status: 'True',
  reason: 'KubeletReady',
  message: 'Spillway is serving this virtual node',
};

/**
 * Speaks of Spillway alone, unless the Node is to fail with its member. Then Kubernetes' node lifecycle controller goes by the status
 * that is written here, as long as the Lease is renewed: it taints for Unknown as for a node that is not heard of, for False as for
 * one whose runtime does not work.
 */
function readyCondition(facts: NodeFacts): DesiredCondition {
  const { member, reachable, failure, failsWithMember = false } = facts;
  if (!failsWithMember || reachable === true) return READY;
  // A former process may have found it out of reach: that it is back is not known either.
  if (reachable === undefined || failure === undefined || isWaiting(facts)) return { ...READY, onlyIfAbsent: true };
  const reason = unreadyReason(failure.reason);
  const isLost = reason === 'MemberUnreachable';
  const what = isLost ? 'does not answer' : 'cannot serve, or cannot be asked';
  const message =
    `cluster "${member}" ${what} (${failure.reason}; see ${REACHABLE_CONDITION}). Kubernetes deletes pods here that do not tolerate ` +
    `that for longer, as spec.probe.nodesReady of MemberCluster "${member}" asks for`;
  return { type: 'Ready', status: isLost ? 'Unknown' : 'False', reason, message };
}

function reachableCondition({ member, reachable, failure, failsWithMember }: NodeFacts): DesiredCondition {
  const type = REACHABLE_CONDITION;
  if (reachable === true) {
    return { type, status: 'True', reason: 'ProbeSucceeded', message: `cluster "${member}" answers` };
  }
  if (reachable === undefined) {
    const message = `cluster "${member}" has not been asked yet`;
    return { type, status: 'Unknown', reason: 'NotProbed', message, onlyIfAbsent: true };
  }
  const why = failure === undefined ? '' : `: ${failure.message.replace(/\.$/, '')}`;
  const stay = failsWithMember === true ? '' : '; running ones stay';
  const message = `cluster "${member}" does not answer${why}. It takes no new pods until it does${stay}`;
  return { type, status: 'False', reason: 'ProbeFailed', message };
}

function emptyPoolInfo({ memberVersion = '', pool }: NodeFacts): NodeSystemInfo {
  return {
    machineID: '',
    systemUUID: '',
    bootID: '',
    kernelVersion: '',
    osImage: '',
    containerRuntimeVersion: '',
    kubeletVersion: memberVersion,
    kubeProxyVersion: '',
    operatingSystem: pool?.os ?? 'linux',
    architecture: pool?.arch ?? '',
  };
}
