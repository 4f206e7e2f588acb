/** How moves differ by why they are made. */
interface StrategyRules {
  /** Of Events, when a pod is moved. */
  readonly reason: string;
  /** Of Events, while it stays. */
  readonly heldReason: string;
  /**
   * Pods so moved never ran where they are. Settings of their own (`onRefusal`, `onUnschedulable`, the gang's timeout) say when they go, so purgeMode says
   * nothing of them; and what the pod before them showed stands there still.
   */
  readonly neverRan?: true;
  /** They do not serve where they are, so that nothing is lost with them. */
  readonly servesNot?: true;
  /** Somebody asks for the moves of these workloads, and only for them: what a policy lets Spillway do by itself does not speak of that. */
  readonly isOrdered?: true;
  /** Another virtual node of the same member is a place for the pod that comes instead: it may have none of the taints, and one that has them takes no such pod. */
  readonly mayStayInMember?: true;
  /** The host does not wait for their end. */
  readonly isGoneAtOnce?: true;
}

const ALL = {
  RefusedInMember: { reason: 'RefusedPodReplaced', heldReason: 'RefusedPodStays', neverRan: true, servesNot: true },
  UnschedulableInMember: {
    reason: 'UnschedulablePodReplaced',
    heldReason: 'UnschedulablePodStays',
    neverRan: true,
    servesNot: true,
  },
  UnhealthyInMember: { reason: 'UnhealthyPodReplaced', heldReason: 'UnhealthyPodStays', servesNot: true },
  MemberLost: { reason: 'PodOfLostMemberReplaced', heldReason: 'PodOfLostMemberHeld' },
  OutOfService: {
    reason: 'OutOfServicePodReplaced',
    heldReason: 'OutOfServicePodHeld',
    servesNot: true,
    isGoneAtOnce: true,
  },
  TaintNoExecute: { reason: 'TaintedPodMoved', heldReason: 'TaintedPodHeld', mayStayInMember: true },
  Drain: { reason: 'DrainedPodMoved', heldReason: 'DrainedPodHeld', mayStayInMember: true },
  Repatriate: { reason: 'PodRepatriated', heldReason: 'PodNotRepatriated' },
  DivisionDrift: { reason: 'PodRedivided', heldReason: 'PodNotRedivided' },
  SpreadViolation: { reason: 'PodSpread', heldReason: 'PodNotSpread' },
  PolicyChanged: { reason: 'PodMovedByPolicy', heldReason: 'PodNotMovedByPolicy' },
  Rebalance: { reason: 'PodRebalanced', heldReason: 'PodNotRebalanced', isOrdered: true },
  Migrate: { reason: 'PodMigrated', heldReason: 'PodNotMigrated', isOrdered: true },
  GangTimedOut: { reason: 'GangPodGivenBack', heldReason: 'GangPodHeld', neverRan: true },
} as const satisfies Record<string, StrategyRules>;

/** Why pods are moved; the label `strategy` of metrics. */
export type Strategy = keyof typeof ALL;
export const STRATEGIES: Readonly<Record<Strategy, StrategyRules>> = ALL;
