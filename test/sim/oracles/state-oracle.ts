import { parseWorkloadPlacement, workloadPlacementName } from '../../../src/api/workload-placement.ts';
import type { KubeObject } from '../../../src/kube/object.ts';
import { controllerOf } from '../../../src/kube/owner-references.ts';
import { asPod } from '../pod-shapes.ts';
import { HANDED_ON } from '../placement-rules.ts';
import type { SimObject } from '../sim-cluster.ts';
import { PATHS, type World } from '../world.ts';
import type { Report } from './report.ts';

const PLACEMENTS = '/apis/spillway.dev/v1alpha1/workloadplacements';

/** No pod is let to a node before it has what the one before it left. */
export class StateOracle {
  readonly #world: World;
  readonly #report: Report;

  constructor(world: World, report: Report) {
    this.#world = world;
    this.#report = report;
  }

  /** The extender allows the pod some nodes. */
  allowed({ metadata: { name, namespace = '', uid } }: SimObject): void {
    const { host } = this.#world;
    const pod = host.get(`${PATHS.pods(namespace)}/${name}`);
    const owner = pod && controllerOf(asPod(pod));
    // Of others it depends on how many pods their owner has, which may be otherwise by now.
    if (pod?.metadata.uid !== uid || owner?.kind !== 'StatefulSet') return;
    const path = PLACEMENTS.replace('v1alpha1/', `v1alpha1/namespaces/${namespace}/`);
    const stored = host.get(`${path}/${workloadPlacementName(owner)}`);
    const placement = stored && parseWorkloadPlacement(stored as unknown as KubeObject);
    if (placement === undefined || placement.spec.workload.uid !== owner.uid) return;
    const left = placement.status?.preserved?.find((one) => one.pod === name && one.uid !== uid)?.labels[HANDED_ON];
    if (left === undefined || pod.metadata.labels?.[HANDED_ON] === left) return;
    this.#report('state', `${name} may go to a node without what the pod before it left (${HANDED_ON}=${left})`);
  }
}
