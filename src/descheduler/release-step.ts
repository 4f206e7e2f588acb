import type { Failover } from '../api/failover.ts';
import { isActive, isFinished } from '../api/pod-phase.ts';
import { releasedFrom } from '../api/released.ts';
import { isReady } from '../kube/conditions.ts';
import type { Pod } from '../kube/core-v1.ts';
import { type HealStep, replacementOf } from './heal-step.ts';
import { readySuccessors } from './successors.ts';

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
 * Next step for a released pod. `evict`: no longer needed. `giveBack`: let its ReplicaSet adopt it again. `wait`: check again
 * after `forMs` at the latest.
 */
export type ReleaseStep =
  | { readonly pod: Pod; readonly kind: 'evict'; readonly why: EvictReason }
  | { readonly pod: Pod; readonly kind: 'giveBack'; readonly why: 'TimedOut' }
  | ChooseStep
  | WaitStep;
/** `keeps`: why it would go, if its policy did not say that nothing does. */
export interface WaitStep {
  readonly pod: Pod;
  readonly kind: 'wait';
  readonly forMs: number;
  readonly keeps?: EvictReason;
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
 * `NotWell`: its member answers again, and it is not Ready. `NoOther`: its ReplicaSet cannot make another one beside it. `NoReplicas`: that is scaled
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
  /** Wall clock in ms. */
  readonly now: number;
  /** Time since the release that this process measured (ms), not counting while the member is unreachable. */
  readonly passedMs: (pod: Pod) => number;
  /** Of one that was released as its member was lost. */
  readonly heal: (pod: Pod) => HealStep;
  /** Of one that was released while its member answered, and that is not Ready. */
  readonly stranded: (pod: Pod) => 'lost' | 'outOfService' | undefined;
  /** For how long the ReplicaSet has had fewer pods than it wants, in ms. */
  readonly shortForMs: number;
  /** The cluster of a node. */
  readonly clusterOf: (nodeName: string) => string;
}

/** A ReplicaSet that cannot make a pod for so long (ms) is kept from it, as by a quota, by those whose member is lost. */
const SHORT_MS = 60_000;
/**
 * A quota counts a pod that is going until its grace period has passed once more after its end (`QuotaV1Pod`). How long it may take from then on until
 * the quota is counted anew, and the ReplicaSet, which waits ever longer, has tried again, in ms.
 */
const FREED_MS = 600_000;
/** Between two looks at a pod that waits for its member, in ms. */
const LOOK_MS = 5_000;

/**
 * One step for each released pod of a ReplicaSet, oldest release first. A Ready one is evicted only while, without it, at least as
 * many pods are Ready as the ReplicaSet wants or, if it had fewer at the time of the release, as it had then, one in its place among them. Of those whose member answers
 * again one is given back at a time, when the ReplicaSet has no pod too many.
 */
export function releaseSteps(facts: ReleaseFacts): ReleaseStep[] {
  const { set, released, owned, rules, now, passedMs, heal, stranded, shortForMs, clusterOf } = facts;
  // What the ReplicaSet has too many of goes. A watch can be silent without an error, so what it says itself counts, too.
  const { replicas, ready: said, available } = set ?? { replicas: Number.POSITIVE_INFINITY };
  const standing = Math.min(readyOf(owned), replicas);
  let ready = Math.min(standing, said ?? standing, available ?? standing) + readyOf(released);
  let room = missingOf(set, owned);
  // Those that came in the places of pods of lost members stand for no others.
  const count = released.filter(
    (pod) => pod.metadata.deletionTimestamp === undefined && releasedFrom(pod)?.lost !== true,
  ).length;
  let replaced = 0;
  const makingRoom = released.filter((pod) => makesRoom(pod, now)).length;
  return released
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .toSorted((a, b) => releasedAt(a) - releasedAt(b) || ((a.metadata.uid ?? '') < (b.metadata.uid ?? '') ? -1 : 1))
    .map((pod): ReleaseStep => {
      if (set === undefined) return { pod, kind: 'evict', why: 'Gone' };
      if (isFinished(pod)) return { pod, kind: 'evict', why: 'Finished' };
      if (set.replicas === 0) return { pod, kind: 'evict', why: 'NoReplicas' };
      const own = isReady(pod) ? 1 : 0;
      const waits = releasedFrom(pod)?.lost === true;
      // It may be given back, and that is all.
      const mustStay = waits && rules.purgeMode === 'Never';
      const evictOrKeep = (why: EvictReason): ReleaseStep =>
        mustStay ? { pod, kind: 'wait', forMs: LOOK_MS, keeps: why } : { pod, kind: 'evict', why };
      const step = waits ? heal(pod) : ((own === 0 ? stranded(pod) : undefined) ?? 'replaced');
      // One that is Ready serves: its MemberCluster only does not say that all of it can be relied on.
      if (step === 'lost' && own === 0 && room > makingRoom && shortForMs >= SHORT_MS) {
        if (!mustStay) room -= 1;
        return evictOrKeep('NoOther');
      }
      if ((step === 'lost' && waits) || step === 'wait') return { pod, kind: 'wait', forMs: LOOK_MS };
      if (step === 'notWell') {
        // While others are missing, too, it may be the first one to be Ready.
        const isTried = ready >= set.replicas || passedMs(pod) >= rules.gracePeriodSeconds * 1_000;
        return isTried ? evictOrKeep('NotWell') : { pod, kind: 'wait', forMs: LOOK_MS };
      }
      if (step === 'outOfService') {
        if (!mustStay) ready -= own;
        return evictOrKeep('OutOfService');
      }
      if (step === 'choose') {
        if (room < 0) return { pod, kind: 'wait', forMs: LOOK_MS };
        const instead = room > 0 ? undefined : replacementOf(pod, owned, clusterOf);
        if (room > 0 || instead !== undefined || mustStay) {
          const mayGo = ready - own >= set.replicas;
          // One of the two goes, the original or the other one.
          if (room === 0) ready -= 1;
          room -= 1;
          return { pod, kind: 'choose', instead, mayGo };
        }
      }
      const isReplaced = (): boolean =>
        own === 0 || ready - own >= set.replicas || readySuccessors(pod, count, owned, set.replicas) > replaced;
      if (ready - own >= wanted(set, pod, own) && isReplaced()) {
        ready -= own;
        if (!waits) replaced += 1;
        return { pod, kind: 'evict', why: 'Replaced' };
      }
      // What the mark says is by a wall clock, which may have been ahead, or be so now.
      const rest = rules.gracePeriodSeconds * 1_000 - passedMs(pod);
      if (rest > 0) return { pod, kind: 'wait', forMs: rest };
      if (rules.onTimeout === 'GiveBack' && own === 1) return { pod, kind: 'giveBack', why: 'TimedOut' };
      ready -= own;
      return { pod, kind: 'evict', why: 'TimedOut' };
    });
}

/** How many pods the ReplicaSet has too few; less than 0: too many. */
export function missingOf(set: ReplicaSetFacts | undefined, owned: readonly Pod[]): number {
  return (set?.replicas ?? 0) - owned.filter(isActive).length;
}

/** One that was released, and is going, which may take as long as its member does not answer: its ReplicaSet may not have had the time to make another one in the room that it leaves. */
function makesRoom(pod: Pod, now: number): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds = 0 } = pod.metadata;
  if (deletionTimestamp === undefined) return false;
  return !(now >= Date.parse(deletionTimestamp) + deletionGracePeriodSeconds * 1_000 + FREED_MS);
}

/** How many are to be Ready without it. How many were when its member was lost says nothing. */
function wanted({ replicas }: ReplicaSetFacts, pod: Pod, own: number): number {
  const { lost, ready = replicas } = releasedFrom(pod) ?? {};
  if (lost === true) return own === 0 ? 0 : replicas;
  return Math.min(replicas, ready);
}

/** How many of them are Ready. */
export function readyOf(pods: readonly Pod[]): number {
  return pods.filter(isActive).filter(isReady).length;
}

function releasedAt(pod: Pod): number {
  return Date.parse(releasedFrom(pod)?.at ?? '') || 0;
}
