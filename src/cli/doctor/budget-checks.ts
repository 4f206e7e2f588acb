import type { PlacementPolicy } from '../../api/placement-policy.ts';
import type { WorkloadPlacement } from '../../api/workload-placement.ts';
import type { Pod } from '../../kube/core-v1.ts';
import { keyOf } from '../../kube/object.ts';
import { controllerOf } from '../../kube/owner-references.ts';
import type { PodDisruptionBudget } from '../../kube/policy-v1.ts';
import { ok, warning, type Finding } from './finding.ts';

const CHECK = 'budgets';

/** Budgets that ask for as many healthy pods as there are to be, or more, as their controller counts them. */
export function withNoneToSpare(budgets: readonly PodDisruptionBudget[]): PodDisruptionBudget[] {
  return budgets.filter(({ metadata, status }) => {
    const { expectedPods = 0, desiredHealthy = 0, observedGeneration = -1 } = status ?? {};
    // One that was written just now is judged next time; one for no pods is in nobody's way.
    return observedGeneration >= (metadata.generation ?? 0) && expectedPods > 0 && desiredHealthy >= expectedPods;
  });
}

export interface MovesFacts {
  /** Of all budgets with none to spare, the pods that each covers. */
  stuck: readonly { budget: PodDisruptionBudget; pods: readonly Pod[] }[];
  virtualNodes: ReadonlySet<string>;
  placements: readonly WorkloadPlacement[];
  policies: readonly PlacementPolicy[];
}

/** Budgets that let nobody move pods that are in members, or that a policy has moved. */
export function budgetsLetMove({ stuck, ...facts }: MovesFacts): Finding[] {
  const findings = stuck.flatMap(({ budget, pods }) => {
    const workloads = [...workloadsOf(pods, facts.virtualNodes)].flatMap(([workload, inMember]) => {
      const policy = policyOf(workload, budget.metadata.namespace, facts);
      if (policy?.spec.failover?.cluster?.purgeMode === 'Never') return [];
      if (!inMember && policy?.spec.failover === undefined) return [];
      return [{ workload, held: heldOf(workload, budget, policy) }];
    });
    const named = (held: Held): string[] =>
      workloads.filter((one) => one.held === held).map(({ workload }) => workload);
    const [always, whenLost] = [named('always'), named('when lost')];
    if (always.length > 0) return [neverMoved(budget, always)];
    return whenLost.length > 0 ? [heldWhenLost(budget, whenLost)] : [];
  });
  return findings.length > 0 ? findings : [ok(CHECK, 'none keeps all pods of a workload of members where they are')];
}

/** `Kind/name`, and whether pods of it are in members. What nobody makes anew, and what has a place on each node, is never moved. */
function workloadsOf(pods: readonly Pod[], virtualNodes: ReadonlySet<string>): Map<string, boolean> {
  const workloads = new Map<string, boolean>();
  for (const pod of pods) {
    const controller = controllerOf(pod);
    if (controller === undefined || controller.kind === 'DaemonSet') continue;
    const hash = pod.metadata.labels?.['pod-template-hash'];
    const ofDeployment = controller.kind === 'ReplicaSet' && hash !== undefined && controller.name.endsWith(`-${hash}`);
    const workload = ofDeployment
      ? `Deployment/${controller.name.slice(0, -hash.length - 1)}`
      : `${controller.kind}/${controller.name}`;
    const inMember = virtualNodes.has(pod.spec.nodeName ?? '');
    workloads.set(workload, inMember || workloads.get(workload) === true);
  }
  return workloads;
}

/** By what Spillway remembers of the workload. */
function policyOf(
  workload: string,
  namespace: string | undefined,
  { placements, policies }: Pick<MovesFacts, 'placements' | 'policies'>,
): PlacementPolicy | undefined {
  const by = placements.find(
    ({ metadata, spec: { workload: of } }) => metadata.namespace === namespace && `${of.kind}/${of.name}` === workload,
  )?.status?.policy;
  if (by?.kind !== 'PlacementPolicy' && by?.kind !== 'ClusterPlacementPolicy') return undefined;
  const place = by.kind === 'PlacementPolicy' ? namespace : undefined;
  return policies.find(({ metadata }) => metadata.name === by.name && metadata.namespace === place);
}

type Held = 'always' | 'when lost' | 'never';

/**
 * Of a Deployment another pod is Ready first, so there is one more than the budget asks for, or a tenth of them; not while its member
 * is lost. Then they are not Ready, and such ones go only by the word of the budget.
 */
function heldOf(workload: string, { spec, status }: PodDisruptionBudget, policy: PlacementPolicy | undefined): Held {
  const { expectedPods = 0, desiredHealthy = 0 } = status ?? {};
  const { cluster, onMemberLost } = policy?.spec.failover ?? {};
  const mode = cluster?.purgeMode ?? 'Gracefully';
  const another = workload.startsWith('Deployment/') && mode === 'Gracefully' ? Math.ceil(expectedPods / 10) : 0;
  if (desiredHealthy >= expectedPods + another) return 'always';
  // Or they are let go by their ReplicaSet, and wait for their member.
  const waits = (onMemberLost?.onHeal ?? 'KeepReplacement') !== 'KeepReplacement';
  return waits || spec.unhealthyPodEvictionPolicy === 'AlwaysAllow' ? 'never' : 'when lost';
}

function neverMoved(budget: PodDisruptionBudget, workloads: readonly string[]): Finding {
  return warning(
    CHECK,
    `${inWords(budget)}: pods of ${workloads.join(', ')} are never moved out of a member, whatever becomes of it`,
    `kubectl patch ${patchOf(budget, { minAvailable: null, maxUnavailable: 1 })}, or have more replicas than it asks for`,
    'concepts/failover.md#rules-of-every-move',
  );
}

function heldWhenLost(budget: PodDisruptionBudget, workloads: readonly string[]): Finding {
  return warning(
    CHECK,
    `${inWords(budget)}: pods of ${workloads.join(', ')} leave a member that answers, as another one is Ready first (but with strategy Recreate); out of one that is lost none is moved`,
    `kubectl patch ${patchOf(budget, { unhealthyPodEvictionPolicy: 'AlwaysAllow' })}: pods that are not Ready may go then`,
    'concepts/failover.md#rules-of-every-move',
  );
}

function inWords(budget: PodDisruptionBudget): string {
  const { minAvailable, maxUnavailable } = budget.spec;
  const rule =
    maxUnavailable === undefined
      ? `minAvailable: ${String(minAvailable)}`
      : `maxUnavailable: ${String(maxUnavailable)}`;
  const { expectedPods = 0 } = budget.status ?? {};
  return `PodDisruptionBudget ${keyOf(budget)} (${rule}, of ${String(expectedPods)}) can spare no pod`;
}

function patchOf({ metadata: { name, namespace = '' } }: PodDisruptionBudget, spec: object): string {
  return `poddisruptionbudget ${name} -n ${namespace} --type=merge -p '${JSON.stringify({ spec })}'`;
}
