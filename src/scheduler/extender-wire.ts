import type { Pod } from '../kube/core-v1.ts';
import { misshapen, PODS } from '../kube/resource.ts';

/**
 * What kube-scheduler sends to and takes from an extender (k8s.io/kube-scheduler/extender/v1): the names of the fields are
 * those of Go, with a capital letter, as those types have no others.
 */

/** A question of kube-scheduler: the pod, and the nodes that passed its own checks. */
export interface ExtenderArgs {
  readonly pod: Pod;
  readonly nodeNames: readonly string[];
}

export interface FilterResult {
  /** Of the nodes asked about, those that may take the pod. */
  readonly NodeNames: readonly string[];
  /** Why the others may not, where preempting other pods would not help either; shown in FailedScheduling. */
  readonly FailedAndUnresolvableNodes: Readonly<Record<string, string>>;
  /**
   * Why these may not, where others are on their way out for the pod. Said to be unresolvable, kube-scheduler would take back that it
   * nominated the pod to the node, and give what these leave to whoever comes first.
   */
  readonly FailedNodes?: Readonly<Record<string, string>>;
  readonly Error: string;
}

export interface HostPriority {
  readonly Host: string;
  /** 0 to 10. */
  readonly Score: number;
}

/** What kube-scheduler would evict on each node, by the UIDs of the pods. */
export interface PreemptionArgs {
  readonly pod: Pod;
  readonly victims: ReadonlyMap<string, NodeVictims>;
}

export interface NodeVictims {
  readonly uids: readonly string[];
  /** How many of them a disruption budget does not let go. */
  readonly violations: number;
}

export interface PreemptionResult {
  /** Of the nodes asked about, those where evictions help; nothing is evicted where none is left. */
  readonly NodeNameToMetaVictims: Readonly<Record<string, MetaVictims>>;
}

interface MetaVictims {
  readonly Pods: readonly { readonly UID: string }[];
  readonly NumPDBViolations: number;
}

export const MAX_SCORE = 10;

/** What was sent is no question of a scheduler. The message is for whoever configured it. */
export class NotAQuestion extends Error {}

/** @throws NotAQuestion for what is no question of a scheduler that is configured with `nodeCacheCapable: true`. */
export function parseExtenderArgs(body: unknown): ExtenderArgs {
  if (typeof body !== 'object' || body === null) throw new NotAQuestion('the body is not a JSON object');
  const { Pod: pod, NodeNames: names, Nodes: nodes } = body as Record<string, unknown>;
  checkPod(pod);
  if (!isNames(names)) {
    throw new NotAQuestion(
      nodes === undefined || nodes === null
        ? 'NodeNames is not a list of names'
        : 'whole nodes were sent; set nodeCacheCapable: true in the configuration of the extender',
    );
  }
  return { pod, nodeNames: names };
}

/** @throws NotAQuestion for what is no question about victims of a scheduler with `nodeCacheCapable: true`. */
export function parsePreemptionArgs(body: unknown): PreemptionArgs {
  if (typeof body !== 'object' || body === null) throw new NotAQuestion('the body is not a JSON object');
  const { Pod: pod, NodeNameToMetaVictims: nodes, NodeNameToVictims: whole } = body as Record<string, unknown>;
  checkPod(pod);
  if (whole !== undefined && whole !== null) {
    throw new NotAQuestion('whole pods were sent; set nodeCacheCapable: true in the configuration of the extender');
  }
  if (typeof nodes !== 'object' || nodes === null) throw new NotAQuestion('NodeNameToMetaVictims is missing');
  const victims = new Map<string, NodeVictims>();
  const byNode = nodes as Readonly<Record<string, Record<string, unknown> | null>>;
  for (const node of Object.keys(byNode)) {
    const { Pods: pods, NumPDBViolations: violations } = byNode[node] ?? {};
    const uids = Array.isArray(pods) ? pods.map((one: unknown) => (one as { UID?: unknown } | null)?.UID) : undefined;
    if (uids === undefined || !isNames(uids)) throw new NotAQuestion(`the victims on node ${node} have no UIDs`);
    victims.set(node, { uids, violations: typeof violations === 'number' ? violations : 0 });
  }
  return { pod, victims };
}

/** All that is looked at in it is of the type that Kubernetes writes, as in the caches. */
function checkPod(value: unknown): asserts value is Pod {
  const { metadata } = (value ?? {}) as { metadata?: Record<string, unknown> | null };
  const isNamed = ['name', 'namespace', 'uid'].every((field) => {
    const text = metadata?.[field];
    return typeof text === 'string' && text !== '';
  });
  if (!isNamed) throw new NotAQuestion('Pod is missing, or has no name, namespace and UID');
  const problem = misshapen(PODS, value);
  if (problem !== undefined) throw new NotAQuestion(`Pod: ${problem}`);
}

function isNames(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((name) => typeof name === 'string');
}

/** Only these nodes, no word about the others. */
export function passing(nodeNames: readonly string[]): FilterResult {
  return { NodeNames: nodeNames, FailedAndUnresolvableNodes: {}, Error: '' };
}

/** None of the nodes, each with its reason. */
export function failing(reasons: Readonly<Record<string, string>>): FilterResult {
  return { NodeNames: [], FailedAndUnresolvableNodes: reasons, Error: '' };
}

export function evicting(victims: ReadonlyMap<string, NodeVictims>): PreemptionResult {
  const nodes = [...victims].map(([node, { uids, violations }]): [string, MetaVictims] => [
    node,
    { Pods: uids.map((UID) => ({ UID })), NumPDBViolations: violations },
  ]);
  return { NodeNameToMetaVictims: Object.fromEntries(nodes) };
}

/** The same answer, if it is none, for a pod that only has to wait on the node until others have left it. */
export function waitingOn(node: string, result: FilterResult): FilterResult {
  const { [node]: why, ...others } = result.FailedAndUnresolvableNodes;
  if (why === undefined) return result;
  return { ...result, FailedAndUnresolvableNodes: others, FailedNodes: { [node]: why } };
}

/** No answer, for all nodes; `why` is shown in FailedScheduling where the scheduler cannot go on without one. */
export function refusing(why: string): FilterResult {
  return { NodeNames: [], FailedAndUnresolvableNodes: {}, Error: why };
}
