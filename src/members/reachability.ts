import type { Moment } from '../kube/clock.ts';

/** Why a probe failed: a CamelCase reason for the condition, and words for people. */
export interface ProbeFailure {
  reason: string;
  message: string;
}

export interface ProbeThresholds {
  failureThreshold: number;
  successThreshold: number;
}

/** What the probes so far say. */
export interface Reachability {
  /** Undefined before the first probe. */
  readonly reachable: boolean | undefined;
  /** Results in a row that contradict `reachable`. */
  readonly against: number;
  /** First failure of the row of failures that led here; undefined while the last probe was good. */
  readonly failingSince: Moment | undefined;
  /** The failure of the outage, or of the row that may become one: the first with the latest reason, so it is stable. */
  readonly failure: ProbeFailure | undefined;
}

export const NOT_PROBED: Reachability = {
  reachable: undefined,
  against: 0,
  failingSince: undefined,
  failure: undefined,
};

/**
 * The state after one more probe. The very first one decides at once; later ones change the state only after as many in
 * a row as the thresholds say, so a single lost packet is no news.
 */
export function afterProbe(
  state: Reachability,
  latest: ProbeFailure | undefined,
  thresholds: ProbeThresholds,
  now: Moment,
): Reachability {
  const good = latest === undefined;
  const failingSince = good ? undefined : (state.failingSince ?? now);
  const failure = latest?.reason === state.failure?.reason ? state.failure : latest;
  if (state.reachable === undefined || state.reachable === good) {
    return { reachable: good, against: 0, failingSince: good ? undefined : failingSince, failure };
  }
  const against = state.against + 1;
  const needed = good ? thresholds.successThreshold : thresholds.failureThreshold;
  if (against >= needed) return { reachable: good, against: 0, failingSince, failure };
  // A good probe among the bad ones, not yet enough of them: the outage has not ended.
  return {
    reachable: state.reachable,
    against,
    failingSince: failingSince ?? state.failingSince,
    failure: failure ?? state.failure,
  };
}

/** Since when the member counts as unreachable: the first failed probe of the row. */
export function unreachableSince(state: Reachability): Moment | undefined {
  return state.reachable === false ? state.failingSince : undefined;
}
