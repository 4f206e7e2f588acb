import { isNodeNameOf, parseMemberCluster, virtualNodesOf, type MemberCluster } from '../api/member-cluster.ts';
import { memberOfNode } from '../api/provider-id.ts';
import { holdsResources, podRequests } from '../capacity/pod-requests.ts';
import { addTo, parseAmounts, remainder, type Amounts } from '../kube/amounts.ts';
import { isReady } from '../kube/conditions.ts';
import type { Node, Pod } from '../kube/core-v1.ts';
import type { KubeObject } from '../kube/object.ts';
import { memberTaints, type MemberTaints } from './member-taints.ts';

type Ternary = 'True' | 'False' | 'Unknown';

/** Room for pods, in CPU cores and bytes. */
export interface Room {
  cpu: number;
  memory: number;
}

/** One member as a line: what is known of it, and `null` where the viewer may not know. */
export interface ClusterSummary extends MemberTaints {
  name: string;
  ready: Ternary;
  reachable: Ternary;
  credentials: Ternary;
  /** Takes no new pods, as its administrator wants it. */
  cordoned: boolean;
  version: string | null;
  /** Virtual nodes. */
  nodes: { ready: number; wanted: number } | null;
  /** Pods of the host there. */
  pods: { running: number; pending: number; total: number } | null;
  /** What the virtual nodes offer to pods of the host, those that are there included. */
  offered: Room | null;
  /** What of that no pod has asked for. */
  free: Room | null;
  region: string | null;
  provider: string | null;
  /** Why it is not ready: one word for programs, and the words. '' when it is. */
  reason: string;
  message: string;
  created: string | null;
}

/** What of the fleet the viewer could read. */
export interface FleetFacts {
  members: readonly KubeObject[];
  /** Virtual nodes; undefined: not allowed. */
  nodes: readonly Node[] | undefined;
  /** Pods on virtual nodes; undefined: not allowed. */
  pods: readonly Pod[] | undefined;
}

/** All members by name. */
export function clusterSummaries({ members, nodes, pods }: FleetFacts): ClusterSummary[] {
  const asked = pods === undefined ? undefined : requestsByNode(pods);
  return members
    .map((raw) => summary(raw, nodes, asked))
    .toSorted((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
}

/** The names of the virtual nodes of a member: those that are there, and those that its spec wants. */
export function nodeNamesOf(raw: KubeObject, nodes: readonly Node[] | undefined): string[] {
  const { name } = raw.metadata;
  const parsed = parseMemberCluster(raw);
  const wanted = 'member' in parsed ? virtualNodesOf(parsed.member).map((node) => node.name) : [name];
  const there = (nodes ?? []).filter((node) => memberOfNode(node) === name).map(({ metadata }) => metadata.name);
  return [...new Set([...wanted, ...there])];
}

function summary(
  raw: KubeObject,
  nodes: readonly Node[] | undefined,
  asked: ReadonlyMap<string, Amounts> | undefined,
): ClusterSummary {
  const { name, creationTimestamp } = raw.metadata;
  const parsed = parseMemberCluster(raw);
  const member: MemberCluster | undefined = 'member' in parsed ? parsed.member : undefined;
  const problems = 'problems' in parsed ? parsed.problems : [];
  const { conditions = [], version, pods, allocatable } = member?.status ?? {};
  const is = (type: string): Ternary => conditions.find((one) => one.type === type)?.status ?? 'Unknown';
  const ready = conditions.find(({ type }) => type === 'Ready');
  const offered = allocatable === undefined ? undefined : parseAmounts(allocatable);
  const own = (nodes ?? []).filter((node) => memberOfNode(node) === name && isNodeNameOf(name, node.metadata.name));
  return {
    name,
    ready: is('Ready'),
    reachable: is('Reachable'),
    credentials: is('CredentialsValid'),
    cordoned: member?.spec.unschedulable === true,
    version: version ?? null,
    nodes:
      nodes === undefined
        ? null
        : {
            ready: own.filter(isReady).length,
            wanted: member === undefined ? own.length : virtualNodesOf(member).length,
          },
    pods: pods ?? null,
    offered: offered === undefined ? null : roomOf(offered),
    free: offered === undefined || asked === undefined ? null : roomOf(remainder(offered, sumOf(raw, nodes, asked))),
    region: member?.spec.region ?? null,
    provider: member?.spec.provider ?? null,
    ...whyNot(ready, problems),
    ...memberTaints(member, nodes === undefined ? undefined : own),
    created: creationTimestamp ?? null,
  };
}

function whyNot(
  ready: { status: string; reason: string; message: string } | undefined,
  problems: readonly string[],
): { reason: string; message: string } {
  if (problems.length > 0) return { reason: 'InvalidSpec', message: problems.join('; ') };
  if (ready === undefined) {
    return {
      reason: 'NoManager',
      message: 'No manager has said anything of this member yet: none runs, or it was made just now.',
    };
  }
  return ready.status === 'True' ? { reason: '', message: '' } : { reason: ready.reason, message: ready.message };
}

/** What pods that hold resources ask for together, by node. */
export function requestsByNode(pods: readonly Pod[]): Map<string, Map<string, bigint>> {
  const byNode = new Map<string, Map<string, bigint>>();
  for (const pod of pods.filter(holdsResources)) {
    const node = pod.spec.nodeName ?? '';
    const sum = byNode.get(node) ?? new Map<string, bigint>();
    addTo(sum, podRequests(pod));
    byNode.set(node, sum);
  }
  return byNode;
}

function sumOf(raw: KubeObject, nodes: readonly Node[] | undefined, asked: ReadonlyMap<string, Amounts>): Amounts {
  const sum = new Map<string, bigint>();
  for (const node of nodeNamesOf(raw, nodes)) addTo(sum, asked.get(node) ?? new Map<string, bigint>());
  return sum;
}

export function roomOf(amounts: Amounts): Room {
  const [cpu, memory] = [amounts.get('cpu') ?? 0n, amounts.get('memory') ?? 0n];
  return { cpu: Number(cpu / 1_000_000n) / 1000, memory: Number(memory / 1_000_000_000n) };
}
