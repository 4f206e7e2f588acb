import type { Failover } from '../api/failover.ts';
import { isActive } from '../api/pod-phase.ts';
import { isReady } from '../kube/conditions.ts';
import type { Pod } from '../kube/core-v1.ts';
import type { HealStep } from './heal-step.ts';

/** What deciding about released pods needs of their ReplicaSet. */
export interface ReplicaSetFacts {
  /** 0 when it is being deleted. */
  readonly replicas: number;
  /** Pods that are Ready, as it says itself; undefined where only caches say so. */
  readonly ready: number | undefined;
  /** Pods that have been Ready for `minReadySeconds`; undefined without that. */
  readonly available: number | undefined;
}

/**
 * Next step for a released pod. `evict`: no longer needed; `instead`: the pod that came in its place, where that is told. `giveBack`: let its ReplicaSet adopt it again. `wait`: check again
 * after `forMs` at the latest.
 */
export type ReleaseStep =
  | { readonly pod: Pod; readonly kind: 'evict'; readonly why: EvictReason; readonly instead?: Pod | undefined }
  | { readonly pod: Pod; readonly kind: 'giveBack'; readonly why: 'TimedOut' }
  | ChooseStep
  | WaitStep;
/** One that changes something. */
export type EndStep = Exclude<ReleaseStep, WaitStep>;
/** `keeps`: why it would go, and what is against it, in words; without any its policy says that nothing goes. */
export interface WaitStep {
  readonly pod: Pod;
  readonly kind: 'wait';
  readonly forMs: number;
  readonly keeps?: { readonly from: EvictReason; readonly why?: string };
}
/**
 * Its member answers again, and it is Ready: it is given back, or goes. `instead`: the pod that came in its place; undefined when the
 * ReplicaSet has one too few. `mayGo`: enough others are Ready.
 */
export interface ChooseStep {
  readonly pod: Pod;
  readonly kind: 'choose';
  readonly instead: Pod | undefined;
  readonly mayGo: boolean;
}
/**
 * `NotWell`: its member answers again, and it is not Ready. `NoOther`: its ReplicaSet cannot make another one beside it, which has a place. `NoReplicas`: that is scaled
 * to 0. Where a disruption budget does not allow it, it is given back, as the ReplicaSet deletes it itself, which no budget blocks. Not before: a
 * ReplicaSet that goes before it has the pod leaves it to nobody.
 */
export type EvictReason =
  | 'Replaced'
  | 'Gone'
  | 'Finished'
  | 'TimedOut'
  | 'OutOfService'
  | 'NotWell'
  | 'NoOther'
  | 'NoReplicas';

export interface ReleaseFacts {
  /** Undefined: it is gone. */
  readonly set: ReplicaSetFacts | undefined;
  readonly released: readonly Pod[];
  /** Pods that the ReplicaSet has. */
  readonly owned: readonly Pod[];
  readonly rules: NonNullable<Failover['cluster']>;
  /** Time since the release that this process measured (ms), not counting while the member is unreachable. */
  readonly passedMs: (pod: Pod) => number;
  /** Of one that was released as its member was lost. */
  readonly heal: (pod: Pod) => HealStep;
  /** Of one that was released while its member answered, and that is not Ready. */
  readonly stranded: (pod: Pod) => 'lost' | 'outOfService' | undefined;
  /** Pods of lost members are moved at present, and have been since the last pause, and its own member lost, for as long as those of this ReplicaSet stay there. */
  readonly lossCounts: (pod: Pod) => boolean;
  /** Why that pod stays in its lost member all the same, by its policy or by itself, in words. */
  readonly whyItStaysLost: (pod: Pod) => string | undefined;
  /** The ReplicaSet may have any of the room that is left to it before by now (room-left.ts). */
  readonly mayMakeRoom: boolean;
  /** For how long the ReplicaSet has had fewer pods than it wants, in ms. */
  readonly shortForMs: number;
  /** The cluster of a node. */
  readonly clusterOf: (nodeName: string) => string;
}

/** How many pods the ReplicaSet has too few; less than 0: too many. */
export function missingOf(set: ReplicaSetFacts | undefined, owned: readonly Pod[]): number {
  return (set?.replicas ?? 0) - owned.filter(isActive).length;
}

/** How many of them are Ready. */
export function readyOf(pods: readonly Pod[]): number {
  return pods.filter(isActive).filter(isReady).length;
}
