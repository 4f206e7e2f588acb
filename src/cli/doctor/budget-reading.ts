import { memberOfNode } from '../../api/provider-id.ts';
import type { PlacementPolicy } from '../../api/placement-policy.ts';
import { WORKLOAD_PLACEMENTS, type WorkloadPlacement } from '../../api/workload-placement.ts';
import type { Node, Pod } from '../../kube/core-v1.ts';
import { labelMatcher } from '../../kube/label-matcher.ts';
import { labelSelectorOf } from '../../kube/label-selector.ts';
import type { KubeObject } from '../../kube/object.ts';
import type { PodDisruptionBudget } from '../../kube/policy-v1.ts';
import { POD_DISRUPTION_BUDGETS, PODS } from '../../kube/resource.ts';
import { MissingRight, type Viewer } from '../viewer.ts';
import { budgetsLetMove, withNoneToSpare } from './budget-checks.ts';
import { notAllowed, type Finding } from './finding.ts';
import { notInstalled } from './not-installed.ts';

/** Of a namespace so many pods are looked at. */
const MOST_PODS = 1_000;

/** Whether disruption budgets let pods be moved; asks for pods only where there is one that does not. */
export async function budgetsOf(
  host: Viewer,
  nodes: readonly Node[],
  policies: readonly KubeObject[],
): Promise<Finding[]> {
  const virtual = nodes.filter((node) => memberOfNode(node) !== undefined);
  if (virtual.length === 0) return [];
  const [budgets, placements] = await Promise.all([
    host.tryList<PodDisruptionBudget>(POD_DISRUPTION_BUDGETS),
    host.tryList<WorkloadPlacement>(WORKLOAD_PLACEMENTS).catch(notInstalled),
  ]);
  if (budgets instanceof MissingRight) return [notAllowed('budgets', budgets.right)];
  if (placements instanceof MissingRight) return [notAllowed('budgets', placements.right)];
  const pods = new Map<string, readonly Pod[]>();
  const stuck: { budget: PodDisruptionBudget; pods: Pod[] }[] = [];
  for (const budget of withNoneToSpare(budgets)) {
    const { namespace = '' } = budget.metadata;
    // One without a selector covers nothing.
    const covers =
      budget.spec.selector === undefined ? () => false : labelMatcher(labelSelectorOf(budget.spec.selector));
    const found = pods.get(namespace) ?? (await host.tryList<Pod>(PODS, { namespace, limit: MOST_PODS }));
    if (found instanceof MissingRight) return [notAllowed('budgets', found.right)];
    pods.set(namespace, found);
    stuck.push({ budget, pods: found.filter(({ metadata }) => covers(metadata.labels)) });
  }
  const virtualNodes = new Set(virtual.map(({ metadata }) => metadata.name));
  return budgetsLetMove({ stuck, virtualNodes, placements, policies: policies as readonly PlacementPolicy[] });
}
