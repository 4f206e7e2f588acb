import type { Pod } from '../kube/core-v1.ts';

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
  readonly Error: string;
}

export interface HostPriority {
  readonly Host: string;
  /** 0 to 10. */
  readonly Score: number;
}

export const MAX_SCORE = 10;

/** What was sent is no question of a scheduler. The message is for whoever configured it. */
export class NotAQuestion extends Error {}

/** @throws NotAQuestion for what is no question of a scheduler that is configured with `nodeCacheCapable: true`. */
export function parseExtenderArgs(body: unknown): ExtenderArgs {
  if (typeof body !== 'object' || body === null) throw new NotAQuestion('the body is not a JSON object');
  const { Pod: pod, NodeNames: names, Nodes: nodes } = body as Record<string, unknown>;
  if (!isPod(pod)) throw new NotAQuestion('Pod is missing, or has no name, namespace, UID and containers');
  if (!isNames(names)) {
    throw new NotAQuestion(
      nodes === undefined || nodes === null
        ? 'NodeNames is not a list of names'
        : 'whole nodes were sent; set nodeCacheCapable: true in the configuration of the extender',
    );
  }
  return { pod, nodeNames: names };
}

function isPod(value: unknown): value is Pod {
  if (typeof value !== 'object' || value === null) return false;
  const { metadata, spec } = value as { metadata?: Record<string, unknown>; spec?: Record<string, unknown> };
  const named = [metadata?.['name'], metadata?.['namespace'], metadata?.['uid']].every(
    (text) => typeof text === 'string' && text !== '',
  );
  return named && Array.isArray(spec?.['containers']);
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

/** No answer, for all nodes; `why` is shown in FailedScheduling where the scheduler cannot go on without one. */
export function refusing(why: string): FilterResult {
  return { NodeNames: [], FailedAndUnresolvableNodes: {}, Error: why };
}
