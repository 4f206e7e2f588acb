import { isActive } from '../api/pod-phase.ts';
import type { Pod } from '../kube/core-v1.ts';
import { workloadOf } from '../placement/owner-chain.ts';
import type { OwnerChain, TypedObject } from '../placement/owner-chain.ts';
import type { HostView } from './host-view.ts';
import type { Rules } from '../placement/policy-selection.ts';
import type { WorkloadState } from './workload-state.ts';

/** A workload with rules, as the writers look at it. */
export interface RuledWorkload {
  readonly object: TypedObject;
  readonly chain: OwnerChain;
  readonly rules: Rules;
  readonly replicas: number | undefined;
}

/**
 * The workload of a controller of pods and the rules it is under; undefined when no rules speak about it, or when nothing is
 * known of it any more.
 */
export function ruledWorkload(controllerUid: string, view: HostView, state: WorkloadState): RuledWorkload | undefined {
  const controller = view.owners.byUid(controllerUid);
  if (controller === undefined) return undefined;
  const chain = chainBelow(controller, view, state);
  if (chain === undefined) return undefined;
  const { object, replicas } = workloadOf(chain);
  const { chosen } = view.selectionOf(chain[0], chain);
  return chosen === undefined ? undefined : { object, chain, rules: chosen, replicas };
}

/** From one of its pods; without any left from the last one that was decided about. */
function chainBelow(controller: TypedObject, view: HostView, state: WorkloadState): OwnerChain | undefined {
  const [sample] = view.podsOf(controller.metadata.uid ?? '');
  if (sample !== undefined) return view.owners.chainOf(sample);
  const last = state.memory(controller).last?.made.pod;
  return last === undefined ? undefined : view.owners.chainOf(last);
}

/** The controllers whose pods are the pods of the workload: itself, or the ReplicaSets it owns. */
export function controllersOf(workload: TypedObject, view: HostView): readonly TypedObject[] {
  const sets = view.owners.ownedBy(workload.metadata.uid ?? '').filter(({ kind }) => kind === 'ReplicaSet');
  return sets.length > 0 ? sets : [workload];
}

/** Bound and not on its way out. */
export function holdsPlace(pod: Pod): boolean {
  const { nodeName = '' } = pod.spec;
  return nodeName !== '' && isActive(pod);
}
