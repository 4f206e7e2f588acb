import { isActive } from '../api/pod-phase.ts';
import type { Pod } from '../kube/core-v1.ts';
import { workloadOf } from '../placement/owner-chain.ts';
import type { OwnerChain, TypedObject } from '../placement/owner-chain.ts';
import type { HostView } from './host-view.ts';
import type { Rules } from '../placement/policy-selection.ts';

/** A workload with rules, as the writers look at it. */
export interface RuledWorkload {
  readonly object: TypedObject;
  readonly chain: OwnerChain;
  readonly rules: Rules;
  readonly replicas: number | undefined;
}

/**
 * The workload of a controller of pods and the rules it is under: those of the first pod that has any, as pods differ where a policy chooses them by
 * their own labels. Undefined when no rules speak about it, or it has no pods to tell.
 */
export function ruledWorkload(controller: TypedObject, view: HostView): RuledWorkload | undefined {
  const pods = view.podsOf(controller);
  return ruledBy(pods[0], view) ?? ruledBy(view.policies.firstChosen(pods), view);
}

function ruledBy(sample: Pod | undefined, view: HostView): RuledWorkload | undefined {
  if (sample === undefined) return undefined;
  const { chain, chosen } = view.selectionOf(sample);
  const { object, replicas } = workloadOf(chain);
  return chosen === undefined ? undefined : { object, chain, rules: chosen, replicas };
}

/** The controllers whose pods are the pods of the workload: itself, or the ReplicaSets it owns. */
export function controllersOf(workload: TypedObject, view: HostView): readonly TypedObject[] {
  const sets = view.owners.ownedBy(workload).filter(({ kind }) => kind === 'ReplicaSet');
  return sets.length > 0 ? sets : [workload];
}

/** Bound and not on its way out. */
export function holdsPlace(pod: Pod): boolean {
  const { nodeName = '' } = pod.spec;
  return nodeName !== '' && isActive(pod);
}
