import type { Pod } from '../kube/core-v1.ts';
import type { RefusedThere } from '../placement/avoided.ts';
import type { Strategy } from './strategies.ts';

/**
 * Why a pod is not moved now. Evaluated again at every check, from caches. `forMs`: earliest time at which it may end by itself
 * (ms). `ofWorkload`: it applies to the whole workload; `ofController`: to all pods of its controller, which need not be all of its workload: in a roll-out
 * a Deployment has several ReplicaSets. Both mean pods of that strategy that are Ready, or not, as this one is. `perhaps`: or to this pod alone, so the others of the workload have their turns before it is tried again.
 */
export interface Held {
  readonly why: string;
  readonly forMs?: number;
  readonly ofWorkload?: true | 'perhaps';
  readonly ofController?: boolean;
  /** Pods for which it is so as for this one: they rest with it, unread and untold. */
  readonly ofThese?: readonly Pod[];
}

/** A strategy's answer for the live pod: undefined: move it; `notWanted`: it need not be moved any more; else why it is held. */
export type Recheck = 'notWanted' | Held | undefined;

/** A pod that one strategy wants elsewhere. */
export interface WantedMove {
  readonly strategy: Strategy;
  readonly pod: Pod;
  /** The member it is in. */
  readonly from: string;
  readonly recheck: (live: Pod) => Recheck;
  /** Whether the object by which people ordered it still does, read past the caches. @throws what the host answers */
  readonly isOrdered?: (signal: AbortSignal) => Promise<boolean>;
  /** In a dry run: clusters that its workload would avoid by then if the move were made. */
  readonly wouldAvoid?: readonly RefusedThere[];
  /** Evict even if no place for the successor is known. */
  readonly leavesAnyway?: boolean;
  /** Cause, for Events: `member east has not answered since ...`. */
  readonly cause: string;
  /** Result, for Events, after "it was evicted, so that its controller makes another one, ". */
  readonly outcome: string;
  /** State while it is held, for Events. */
  readonly stays: string;
}

/** What a strategy itself says of a move. */
export type MoveWords = Pick<WantedMove, 'leavesAnyway' | 'cause' | 'outcome' | 'stays'>;
