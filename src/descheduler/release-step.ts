import type { Failover } from '../api/failover.ts';
import { isActive, isFinished } from '../api/pod-phase.ts';
import { releasedFrom } from '../api/released.ts';
import { isReady } from '../kube/conditions.ts';
import type { Pod } from '../kube/core-v1.ts';

/** A ReplicaSet as far as its released pods are concerned. */
export interface ReplicaSetFacts {
  /** 0 when it is being deleted. */
  readonly replicas: number;
  /** Pods that have been Ready for `minReadySeconds`; undefined without that. */
  readonly available: number | undefined;
}

/**
 * What is to become of a released pod. `evict`: it is not needed any more, and why. `giveBack`: its ReplicaSet is to have it again.
 * `wait`: for so long at most, in ms.
 */
export type ReleaseStep =
  | { readonly pod: Pod; readonly kind: 'evict'; readonly why: EvictReason }
  | { readonly pod: Pod; readonly kind: 'giveBack'; readonly why: GiveBackReason }
  | { readonly pod: Pod; readonly kind: 'wait'; readonly forMs: number };
export type EvictReason = 'Replaced' | 'Gone' | 'Finished' | 'TimedOut';
/** `NoReplicas`: its ReplicaSet is to have none, and ends it as its own, which no disruption budget holds up. */
export type GiveBackReason = 'TimedOut' | 'NoReplicas';

export interface ReleaseFacts {
  /** Undefined: it is gone. */
  readonly set: ReplicaSetFacts | undefined;
  readonly released: readonly Pod[];
  /** Pods that the ReplicaSet has. */
  readonly owned: readonly Pod[];
  readonly rules: NonNullable<Failover['cluster']>;
  /** Wall clock in ms. */
  readonly now: number;
  /** How much of its time has passed as far as this process has seen, in ms: none while its member does not answer. */
  readonly passedMs: (pod: Pod) => number;
}

/**
 * One step for each released pod of a ReplicaSet, the longest released first. One that is Ready goes only while without it as many
 * pods are Ready as the ReplicaSet asks for or, if it had fewer when the pod was released, as it had then.
 */
export function releaseSteps({ set, released, owned, rules, now, passedMs }: ReleaseFacts): ReleaseStep[] {
  const standing = readyOf(owned);
  let ready = Math.min(standing, set?.available ?? standing) + readyOf(released);
  return released
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .toSorted((a, b) => releasedAt(a) - releasedAt(b) || ((a.metadata.uid ?? '') < (b.metadata.uid ?? '') ? -1 : 1))
    .map((pod): ReleaseStep => {
      if (set === undefined) return { pod, kind: 'evict', why: 'Gone' };
      if (isFinished(pod)) return { pod, kind: 'evict', why: 'Finished' };
      if (set.replicas === 0) return { pod, kind: 'giveBack', why: 'NoReplicas' };
      const own = isReady(pod) ? 1 : 0;
      if (ready - own >= Math.min(set.replicas, releasedFrom(pod)?.ready ?? set.replicas)) {
        ready -= own;
        return { pod, kind: 'evict', why: 'Replaced' };
      }
      // Both have to agree: a wall clock that is ahead ends no time early.
      const rest = rules.gracePeriodSeconds * 1_000 - Math.min(now - releasedAt(pod), passedMs(pod));
      if (rest > 0) return { pod, kind: 'wait', forMs: rest };
      if (rules.onTimeout === 'GiveBack' && own === 1) return { pod, kind: 'giveBack', why: 'TimedOut' };
      ready -= own;
      return { pod, kind: 'evict', why: 'TimedOut' };
    });
}

/** How many of them are Ready. */
export function readyOf(pods: readonly Pod[]): number {
  return pods.filter(isActive).filter(isReady).length;
}

function releasedAt(pod: Pod): number {
  return Date.parse(releasedFrom(pod)?.at ?? '') || 0;
}
