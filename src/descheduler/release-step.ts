import type { Failover } from '../api/failover.ts';
import { isActive, isFinished } from '../api/pod-phase.ts';
import { releasedFrom } from '../api/released.ts';
import { isReady } from '../kube/conditions.ts';
import type { Pod } from '../kube/core-v1.ts';

/** What deciding about released pods needs of their ReplicaSet. */
export interface ReplicaSetFacts {
  /** 0 when it is being deleted. */
  readonly replicas: number;
  /** Pods that have been Ready for `minReadySeconds`; undefined without that. */
  readonly available: number | undefined;
}

/**
 * Next step for a released pod. `evict`: no longer needed. `giveBack`: let its ReplicaSet adopt it again. `wait`: check again
 * after `forMs` at the latest.
 */
export type ReleaseStep =
  | { readonly pod: Pod; readonly kind: 'evict'; readonly why: EvictReason }
  | { readonly pod: Pod; readonly kind: 'giveBack'; readonly why: GiveBackReason }
  | { readonly pod: Pod; readonly kind: 'wait'; readonly forMs: number };
export type EvictReason = 'Replaced' | 'Gone' | 'Finished' | 'TimedOut';
/** `NoReplicas`: the ReplicaSet is scaled to 0 and deletes it itself, which no disruption budget blocks. */
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
  /** Time since the release that this process measured (ms), not counting while the member is unreachable. */
  readonly passedMs: (pod: Pod) => number;
}

/**
 * One step for each released pod of a ReplicaSet, oldest release first. A Ready one is evicted only while, without it, at least as
 * many pods are Ready as the ReplicaSet wants or, if it had fewer at the time of the release, as it had then.
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
      // The shorter of both counts: a wall clock that is ahead must not end the grace period early.
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
