import { labelSelectorOf, type LabelSelectorObject, matchesLabels } from '../../src/kube/label-selector.ts';
import { asPod, isFinal } from './pod-shapes.ts';
import type { Change, SimCluster, SimObject } from './sim-cluster.ts';

const BUDGETS = '/apis/policy/v1/poddisruptionbudgets';

interface Budget {
  spec?: { selector?: LabelSelectorObject; minAvailable?: number };
  status?: { observedGeneration?: number };
}

/** What kube-controller-manager says of budgets: how many pods may go now. It knows at once. */
export class DisruptionController {
  readonly #cluster: SimCluster;

  constructor(cluster: SimCluster) {
    this.#cluster = cluster;
  }

  /** To be told of all that happens in the cluster. */
  changed({ object, type }: Change): void {
    if (object['kind'] === 'PodDisruptionBudget' && type !== 'DELETED') {
      const { generation = 1 } = object.metadata as { generation?: number };
      if ((object as Budget).status?.observedGeneration !== generation) this.#count(object);
    }
    if (object['kind'] !== 'Pod') return;
    for (const budget of this.#cluster.list(BUDGETS)) if (covers(budget, object)) this.#count(budget);
  }

  #count(budget: SimObject): void {
    const {
      namespace = '',
      name,
      generation,
    } = budget.metadata as { namespace?: string; name: string; generation?: number };
    const pods = [...this.#cluster.list(`/api/v1/namespaces/${namespace}/pods`)].filter(
      (pod) => covers(budget, pod) && !isFinal(pod),
    );
    const expectedPods = pods.length;
    const currentHealthy = pods.filter(isReady).length;
    const desiredHealthy = (budget as Budget).spec?.minAvailable ?? Math.max(0, expectedPods - 1);
    const disruptionsAllowed = Math.max(0, currentHealthy - desiredHealthy);
    this.#cluster.patch(
      'disruption-controller',
      `/apis/policy/v1/namespaces/${namespace}/poddisruptionbudgets/${name}/status`,
      {
        status: {
          expectedPods,
          currentHealthy,
          desiredHealthy,
          disruptionsAllowed,
          observedGeneration: generation ?? 1,
        },
      },
    );
  }
}

export function covers(budget: SimObject, pod: SimObject): boolean {
  const { selector } = (budget as Budget).spec ?? {};
  const isThere = budget.metadata.namespace === pod.metadata.namespace && selector !== undefined;
  return isThere && matchesLabels(labelSelectorOf(selector), pod.metadata.labels);
}

export function isReady(pod: SimObject): boolean {
  const { metadata } = pod;
  const ready = asPod(pod).status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True');
  return ready === true && metadata.deletionTimestamp === undefined;
}
