import { MIRRORED_CONDITION } from '../api/marks.ts';
import type { Condition, Pod } from '../kube/core-v1.ts';
import { LOCAL } from '../api/cluster-tiers.ts';
import { parseDuration } from '../placement/duration.ts';
import type { TypedObject } from '../placement/owner-chain.ts';
import { workloadOf } from '../placement/owner-chain.ts';
import type { Rules } from '../placement/policy-selection.ts';
import type { HostView } from './host-view.ts';
import { MEMBER_SCHEDULED_CONDITION } from './projections.ts';

/**
 * Reasons of condition Mirrored that are a member's answer to the pod, and not a state of the network, of this program, or of
 * what the pod refers to: another member may well take it.
 */
const REFUSALS: ReadonlySet<string> = new Set([
  'MemberQuotaExceeded',
  'MemberPodSecurity',
  'MemberPriorityClass',
  'MemberServiceAccount',
  'MemberRefused',
  'MemberInvalid',
  'MemberForbidden',
  'NamespaceNotAllowed',
  'NamespaceMissing',
  'NamespaceCreateForbidden',
]);

/** What a pod that is bound to a member says about that member. */
export interface MemberRefusal {
  readonly workload: TypedObject;
  readonly rules: Rules;
  readonly cluster: string;
  readonly reason: string;
  readonly message: string;
  /** From when on it counts, wall clock in ms: at once, or after the patience of the tier with a Pending pod. */
  readonly at: number;
  /** The pod is to make way for another one. */
  readonly triesNext: boolean;
  /** The member took it, and finds no node for it. */
  readonly isUnschedulable: boolean;
}

/** The refusal that a pod shows, if it is under rules and bound to a member that does not run it. */
export function memberRefusal(pod: Pod, view: HostView): MemberRefusal | undefined {
  const { nodeName } = pod.spec;
  if (nodeName === undefined || pod.metadata.deletionTimestamp !== undefined) return undefined;
  const cluster = view.nodes.clusterOf(nodeName);
  const condition = cluster === LOCAL ? undefined : refusingCondition(pod);
  if (condition === undefined) return undefined;
  const { chain, chosen } = view.selectionOf(pod);
  if (chosen === undefined) return undefined;
  const since = Date.parse(condition.lastTransitionTime ?? pod.metadata.creationTimestamp ?? '');
  const { reason = 'Refused', message = '' } = condition;
  const { triesNext } = chosen.placement;
  const about = { workload: workloadOf(chain).object, rules: chosen, cluster, reason, message };
  if (condition.type === MIRRORED_CONDITION) return { ...about, at: since, triesNext, isUnschedulable: false };
  const patience = patienceWith(cluster, chosen, view);
  const own = unschedulableAfter(cluster, chosen, view);
  const waits = Math.min(patience === 0 ? Infinity : patience, own);
  if (waits === Infinity) return undefined;
  return { ...about, at: since + waits, triesNext: triesNext || own < Infinity, isUnschedulable: true };
}

/** How long a pod may be left Pending before it makes way, in ms; nodes that are made when they are needed get the time they take. */
function unschedulableAfter(name: string, { failover }: Rules, { nodes }: HostView): number {
  const after = failover?.onUnschedulable?.after;
  if (after === undefined) return Infinity;
  const groups = nodes.member(name)?.spec.capacity.elastic ?? [];
  return Math.max(parseDuration(after), ...groups.map(({ leadTimeSeconds }) => leadTimeSeconds * 1_000));
}

/** Whether the pod says that a member does not run it, whatever the rules are. */
export function showsRefusal(pod: Pod): boolean {
  return refusingCondition(pod) !== undefined;
}

function refusingCondition({ status }: Pod): Condition | undefined {
  return status?.conditions?.find(
    ({ type, status: value, reason = '' }) =>
      value === 'False' &&
      ((type === MIRRORED_CONDITION && REFUSALS.has(reason)) || type === MEMBER_SCHEDULED_CONDITION),
  );
}

/** `tryNextAfter` of the tier that the member is in; 0: pods wait there for ever. */
function patienceWith(name: string, { placement }: Rules, view: HostView): number {
  const cluster = view.nodes.clusters().find((one) => one.name === name);
  if (cluster === undefined) return 0;
  for (const { tiers } of placement.groups) {
    const tier = tiers.find(({ whyNot }) => whyNot(cluster) === undefined);
    if (tier !== undefined) return tier.tryNextAfterMs;
  }
  return 0;
}
