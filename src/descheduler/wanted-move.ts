import type { Pod } from '../kube/core-v1.ts';
import type { Displacement } from '../placement/better-place.ts';

/** Why pods are moved; the label `strategy` of metrics. */
export type Strategy =
  | 'RefusedInMember'
  | 'UnschedulableInMember'
  | 'MemberLost'
  | 'TaintNoExecute'
  | 'Drain'
  | Displacement
  | 'Rebalance'
  | 'GangTimedOut';

/**
 * Why a pod is not moved now. It holds as long as its cause: what says so is asked anew at every look, and costs nothing.
 * `forMs`: when it is over by itself, at the soonest. `others`: so it is for its whole workload.
 */
export interface Held {
  readonly why: string;
  readonly forMs?: number;
  readonly others?: boolean;
}

/** What a strategy says of a pod as it is now, past the caches: `void`: there is nothing to move any more. */
export type Recheck = 'void' | Held | undefined;

/** A pod that one strategy wants elsewhere. */
export interface WantedMove {
  readonly strategy: Strategy;
  readonly pod: Pod;
  /** The member it is in. */
  readonly from: string;
  readonly recheck: (live: Pod) => Recheck;
  /** Whether another virtual node of the same member is a place for the pod that comes instead. */
  readonly mayStayInMember?: boolean;
  /** Whether it goes although nothing may take the pod that comes instead: it gives back what is of no use to it. */
  readonly leavesAnyway?: boolean;
  /** For Events: `reason` when it is moved, `heldReason` when it stays. */
  readonly reason: string;
  readonly heldReason: string;
  /** What is the matter, for people: `member east has not answered since ...`. */
  readonly cause: string;
  /** What was done, and what comes of it, given the controller that makes another pod. */
  readonly outcome: (controller: string) => string;
  /** What it does instead while it stays. */
  readonly stays: string;
}
